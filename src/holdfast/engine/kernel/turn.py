"""A turn: what one command may read and write while it is being processed."""

from collections import deque
from collections.abc import Callable, Hashable, Sequence
from enum import IntEnum
from typing import Any, Generic, TypeVar

import msgspec

from holdfast.engine.kernel.careful import Careful, Unstorable, reason_of
from holdfast.engine.kernel.domain import CommandHandler, Dispatch
from holdfast.engine.kernel.quarantine import SetAside
from holdfast.errors import Code, DataLoss, HoldfastError, Internal, error_of
from holdfast.records import Delivery, Record, RecordKind, Rejection, ValueType, key_of
from holdfast.records.keys import NO_KEY
from holdfast.state import PartitionState

S_co = TypeVar("S_co", covariant=True)

# Looking up a member of an enum takes as long as making a small struct: the hot ones are looked up
# once.
_COMMAND, _EVENT, _REJECTION = RecordKind.COMMAND, RecordKind.EVENT, RecordKind.REJECTION

FROM_OUTSIDE = -1  # the source position of a command that no other record led to


class Command(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """A command that is not on the log yet."""

    value_type: ValueType
    intent: IntEnum
    key: int
    value: Any
    claims: dict[str, Any] | None = None
    delivery: Delivery | None = None
    # a repetition with the same id gets the first answer, for a while
    request_id: str | None = None


class CommandRefused(msgspec.Struct, frozen=True, gc=False):
    """Effect: a command that another partition distributed threw here; it is told why."""

    key: int
    partition: int
    reason: str


class Submission(msgspec.Struct, frozen=True):
    """Commands that are appended together, with the ticket that their replies go to."""

    commands: Sequence[Command]
    ticket: Any = None
    size_bytes: int = 0  # how much content they carry, at most: a step takes a bounded amount
    during: float = 0.0  # when the round began in which they came; 0: none was under way


class Reply(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """What became of one command."""

    key: int = NO_KEY
    value: Any = None
    rejection: Rejection | None = None

    def error(self) -> HoldfastError | None:
        """The rejection as an error that can be raised."""
        if self.rejection is None:
            return None
        return error_of(self.rejection.code, self.rejection.reason, key=self.key)


def failure(error: Exception) -> Rejection:
    """Why a command that threw is rejected."""
    if isinstance(error, (Unstorable, SetAside)):
        return Rejection(error.code, error.message)
    return Rejection(Code.INTERNAL, reason_of(error))


Mark = tuple[int, int, int, int, int, int]
"""How much there was of everything that a command can add to."""


def _no_time() -> float:
    """Without a clock a step is bounded by what it does alone."""
    return 0.0


class Turn(Generic[S_co]):
    """The pen of a command handler; what it writes stays in memory until the step is durable."""

    def __init__(self, rows: PartitionState, state: S_co, tables: Dispatch) -> None:
        self.partition = rows.partition
        self._rows = rows
        self._first_key = key_of(rows.partition, 0)
        self.state = state
        self.now_ms = 0
        self.key_counter = 0
        self.next_position = 0
        self.records: list[Record] = []
        self.follow_ups: deque[Record] = deque()
        self.effects: list[Any] = []
        # what is said once in a step; in order, so that the last can be taken back
        self.said: dict[Hashable, Any] = {}
        self.careful: Careful | None = None  # looks at what is done, after a failure
        self.is_braked = False  # the command ended the process before: nothing may move on
        self.tables = tables
        self.is_distributed = False  # the command came from another partition
        self.distributed_key = 0  # the last key that was distributed, or given out before
        self._appliers = tables.appliers
        self._source = FROM_OUTSIDE
        self.reply: Reply | None = None  # to the command that is being processed
        self.moves = 0  # tokens moved in this step
        self.elapsed: Callable[[], float] = _no_time  # seconds; only their differences count
        self.share_seconds = 0.0  # what deferred work may take of this step

    # --- what a handler uses ------------------------------------------------------------------

    def new_key(self) -> int:
        """A key that this partition has never given out."""
        self.key_counter += 1
        return self._first_key + self.key_counter

    def last_key(self) -> int:
        """The last key that was given out."""
        return self._first_key + self.key_counter

    def event(self, value_type: ValueType, intent: IntEnum, key: int, value: Any) -> None:
        """Tells that something happened: it is recorded, and applied to the state at once."""
        record = Record(
            self.next_position, _EVENT, value_type, intent, key,
            self._source, self.now_ms, value,
        )  # fmt: skip
        self.next_position += 1
        self.records.append(record)
        if self.reply is None:
            self.reply = Reply(key)
        self._appliers[value_type, intent](self.state, record)

    def recorded(self, value_type: ValueType, intent: IntEnum, key: int, value: Any) -> None:
        """Like `event`, for what its decider applies to the state by itself."""
        self.records.append(
            Record(
                self.next_position, _EVENT, value_type, intent, key,
                self._source, self.now_ms, value,
            )
        )  # fmt: skip
        self.next_position += 1
        if self.reply is None:
            self.reply = Reply(key)

    def command(
        self, value_type: ValueType, intent: IntEnum, key: int, value: Any,
        claims: dict[str, Any] | None = None,
    ) -> None:  # fmt: skip
        """Asks for a follow-up: it is recorded now and processed after this command."""
        record = Record(
            self.next_position, _COMMAND, value_type, intent, key,
            self._source, self.now_ms, value, claims,
        )  # fmt: skip
        self.next_position += 1
        self.records.append(record)
        self.follow_ups.append(record)

    def reject(self, command: Record, code: Code, reason: str, key: int | None = None) -> None:
        """Answers that the command cannot be done. Nothing of what it asks for may be written."""
        rejection = Rejection(code, reason)
        about = command.key if key is None else key
        self.records.append(
            Record(
                self.next_position, _REJECTION, command.value_type, command.intent, about,
                self._source, self.now_ms, None, None, rejection,
            )
        )  # fmt: skip
        self.next_position += 1
        self.reply = Reply(about, None, rejection)

    def answer(self, value: Any, key: int = NO_KEY) -> None:
        """What the asker is told, where the key of the first event is not enough."""
        self.reply = Reply(key, value)

    def effect(self, effect: Any) -> None:
        """Something to do outside once the step is durable."""
        self.effects.append(effect)

    def effect_once(self, effect: Hashable) -> None:
        """Like `effect`, for what is enough to be said once in a step."""
        if effect not in self.said:
            self.said[effect] = None
            self.effects.append(effect)

    def attempt(self, command: Record) -> Rejection | None:
        """Like `tried`, for whom it is enough why not; None: it was done."""
        return self.tried(command).rejection

    def tried(self, command: Record) -> Reply:
        """Does another command as part of this one, which is the source of all that it writes.

        If it is refused, or throws, nothing of it stays, and the caller is told why.
        """
        mark, reply, is_braked = self.mark(), self.reply, self.is_braked
        self.reply = None
        try:
            if self.careful is not None:
                self.is_braked = self.careful.begin(command)
            self.handle(self.tables.handlers[command.value_type, command.intent], command)
            answer: Reply = self.reply or Reply(command.key)
            if len(self.records) == mark[0]:
                raise Internal("the command wrote nothing: neither an event nor a rejection")
            if self.careful is not None:
                self.careful.check(self.records[mark[0] :])
        except DataLoss:  # no bug: the state cannot be read, and nothing may be decided by it
            raise
        except Exception as error:  # a bug of one must not stop those it is attempted with
            answer = Reply(command.key, None, failure(error))
        self.reply, self.is_braked = reply, is_braked
        if answer.rejection is not None:
            self.take_back(mark)
        return answer

    # --- what the processor uses --------------------------------------------------------------

    def handle(self, handler: CommandHandler, command: Record) -> None:
        """Does a command, or refuses it if its asker lacks the permission."""
        if command.claims is not None:
            refusal = self.tables.refusal(self.state, command)
            if refusal is not None:
                return self.reject(command, refusal.code, refusal.reason)
        handler(self, command)

    def write_command(self, command: Command) -> Record:
        """Puts a command from outside on the log."""
        record = Record(
            self.next_position, _COMMAND, command.value_type, command.intent, command.key,
            FROM_OUTSIDE, self.now_ms, command.value, command.claims, None, command.delivery,
        )  # fmt: skip
        self.next_position += 1
        self.records.append(record)
        return record

    def mark(self) -> Mark:
        """A point that `take_back` can go back to."""
        return (
            len(self.records), len(self._rows.undo_log), len(self.effects), len(self.follow_ups),
            len(self.said), self.key_counter,
        )  # fmt: skip

    def take_back(self, mark: Mark) -> None:
        """Undoes what was done since the mark."""
        records, changes, effects, follow_ups, said, self.key_counter = mark
        if len(self._rows.undo_log) > changes:
            self._rows.undo_to(changes)
        self.next_position -= len(self.records) - records
        while len(self.said) > said:
            self.said.popitem()
        del self.records[records:], self.effects[effects:]
        while len(self.follow_ups) > follow_ups:
            self.follow_ups.pop()

    def begin(self, source: int) -> Mark:
        """A command is processed from now on; what there was of everything before it."""
        self._source = source
        self.reply = None
        self.is_distributed = False
        self.distributed_key = self._first_key + self.key_counter
        return (
            len(self.records), len(self._rows.undo_log), len(self.effects), len(self.follow_ups),
            len(self.said), self.key_counter,
        )  # fmt: skip
