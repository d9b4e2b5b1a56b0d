"""The processor of one partition: pure, synchronous, and the only writer of its log.

A step takes many commands and gives one append. The order in which its owner must act on a step:

    1. append `step.entries` to the journal and wait until they are durable
    2. `commit(step, appended)`: the changes of the step can no longer be taken back
    3. hand out `step.replies` and `step.effects`

If the append is refused (a full disk, a newer epoch), `abandon(step)` takes everything back as if
the step had not been. If its outcome is unknown, another processor reads the log in its place.

Records are numbered by position, without gaps. Their offset is the journal's own count.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar

import msgspec

from holdfast.engine.kernel.careful import Careful, Unstorable, reason_of
from holdfast.engine.kernel.domain import Dispatch
from holdfast.engine.kernel.due import DueTurn
from holdfast.engine.kernel.quarantine import Quarantine
from holdfast.engine.kernel.standing import LogStanding
from holdfast.engine.kernel.step import Awaited, Before, Demand, DueSource, Step, no_demand
from holdfast.engine.kernel.turn import (
    FROM_OUTSIDE,
    Command,
    CommandRefused,
    Reply,
    Submission,
    Turn,
    failure,
)
from holdfast.errors import Code, DataLoss, Internal
from holdfast.journal import Appended, Entry
from holdfast.limits import (
    RECORDS_HELD_MAX,
    STEP_COMMANDS_MAX,
    STEP_LIVE_MS_MAX,
    STEP_MOVES_MAX,
    STEP_MS_MAX,
)
from holdfast.records import Record, RecordKind, counter_of, key_of
from holdfast.records.keys import KEY_COUNTER_MAX
from holdfast.state import PartitionState, Progress

S = TypeVar("S")

_COMMAND, _EVENT = RecordKind.COMMAND, RecordKind.EVENT
_NOT_YET = Reply()


class Processor(LogStanding, Generic[S]):
    """Runs the commands of one partition."""

    def __init__(
        self, state: PartitionState, domains_state: S, tables: Dispatch, due: DueSource
    ) -> None:
        super().__init__(state)
        self.view = domains_state
        self._tables = tables
        self._handlers = tables.handlers
        self._requests = tables.requests
        self._due = DueTurn(due)
        self._turn: Turn[S] = Turn(state, domains_state, tables)
        self._awaited: dict[int, tuple[Awaited, int]] = {}  # position -> whose reply, which one
        self.unserved: list[Submission] = []  # what the last step that raised had demanded
        self._quarantine: Quarantine | None = None
        self._watching: Careful | None = None
        self._began = 0.0  # when the step did, by the clock that it is measured with
        self._load(state.stored_progress)

    def measure(self, elapsed: Callable[[], float]) -> None:
        """From now on steps are bounded by time, too, as this clock tells it in seconds."""
        self._turn.elapsed = elapsed

    def _load(self, progress: Progress | Before) -> None:
        self._applied = progress.applied_position
        self._processed = progress.processed_position
        self._turn.key_counter = progress.key_counter
        self._turn.next_position = progress.applied_position + 1
        self._last_ms = progress.last_ms

    @property
    def progress(self) -> Progress:
        """What the state stands for now."""
        held = self._held
        return Progress(
            self._applied, self._processed, self._turn.key_counter,
            held[0][1] if held else self.next_offset, self._last_ms, is_counted=True,
        )  # fmt: skip

    @property
    def next_position(self) -> int:
        """Where the next record will stand."""
        return self._turn.next_position

    @property
    def lag(self) -> int:
        """How far the log is ahead of the last command that was processed, if some are waiting."""
        return self.next_position - 1 - self._processed if self._leftover else 0

    def awaits(self, ticket: Any) -> bool:
        """Whether commands of a ticket are on the log and not processed yet."""
        return any(awaited.ticket is ticket for awaited, _ in self._awaited.values())

    def awaited_tickets(self) -> list[Any]:
        """The callers of commands that are on the log and not processed yet."""
        return [awaited.ticket for awaited, _ in self._awaited.values()]

    def next_due_ms(self) -> int | None:
        """When time will next give a command; 0: at once, though the clock may be behind."""
        due_ms = self._due.next_ms(self._turn.now_ms)
        return 0 if due_ms is not None and due_ms <= self._last_ms else due_ms

    def clock_jumped(self, before_ms: int, after_ms: int) -> None:
        """Time has gone on at once: what must not be due because of that is put off."""
        self._due.source.clock_jumped(before_ms, after_ms)

    def watch(self, quarantine: Quarantine | None) -> None:
        """From now on commands that come back after a restart are noted; None: no longer."""
        self._quarantine = quarantine
        self._watching = None if quarantine is None else Careful(None, quarantine)

    # --- processing ---------------------------------------------------------------------------

    def step(
        self,
        submissions: Sequence[Submission],
        now_ms: int,
        demand: Demand = no_demand,
        careful: Careful | None = None,
    ) -> Step:
        """Processes what is left over, what is due and what was submitted; nothing leaves yet.

        If that fails as a whole, it is done again carefully: one command must not cost the others.
        """
        turn = self._turn
        now_ms = self.time_ms(now_ms)
        turn.now_ms, turn.careful, turn.is_braked = now_ms, careful or self._watching, False
        before = Before(
            self._applied, self._processed, turn.key_counter, self._last_ms,
            tuple(self._leftover), dict(self._awaited),
        )  # fmt: skip
        step = Step(turn.next_position, [], [], [], 0, 0, [], before)
        turn.records, turn.effects, turn.follow_ups = [], step.effects, self._leftover
        turn.said.clear()
        turn.moves = 0
        turn.share_seconds = (STEP_LIVE_MS_MAX if submissions else STEP_MS_MAX) / 1_000
        self._began = turn.elapsed()
        try:
            self._fill(step, submissions, now_ms, demand)
            self._encode(step)
        except Exception as error:
            self.abandon(step)
            self.unserved = step.demanded
            if careful is not None or isinstance(error, DataLoss):
                raise
            return self.step_again(step, submissions, now_ms, demand)
        if turn.careful is not None:
            turn.careful.end()
        self._applied = turn.next_position - 1
        if step.entries:
            self._last_ms = now_ms
        return step

    def step_again(
        self, step: Step, submissions: Sequence[Submission], now_ms: int, demand: Demand
    ) -> Step:
        """Processes carefully what an abandoned step had processed."""
        careful = Careful(self._tables.codec.encode, self._quarantine)
        again = self.step((*submissions, *step.demanded), now_ms, demand, careful)
        again.demanded[:0] = step.demanded
        return again

    def _fill(
        self, step: Step, submissions: Iterable[Submission], now_ms: int, demand: Demand
    ) -> None:
        careful = self._turn.careful
        if careful is not None:
            careful.returning(True)
        self._drain(step)
        for due in self._due.now(now_ms, step.bugs) if not self._leftover else ():
            if self._leftover or self._is_enough():
                break
            reply = self._take(Command(due.value_type, due.intent, due.key, due.value), step)
            if reply.rejection is not None:
                self._due.source.put_off(due, now_ms)
        if careful is not None:
            careful.returning(False)
        self._submit(submissions, step)
        asked = 0
        while asked < len(step.effects):
            fresh, asked = step.effects[asked:], len(step.effects)
            self._submit(self._demanded(demand, fresh, step), step)

    def _demanded(self, demand: Demand, effects: list[Any], step: Step) -> Iterator[Submission]:
        """What the effects call for, one after the other: each may depend on the one before."""
        try:
            for submission in demand(effects):
                step.demanded.append(submission)
                yield submission
        except Exception as error:  # what demands is outside the kernel, and may be wrong
            step.bugs.append(f"What effects call for cannot be told: {reason_of(error)}")

    def _submit(self, submissions: Iterable[Submission], step: Step) -> None:
        for submission in submissions:
            replies: list[Reply] = []
            awaited = Awaited(submission.ticket, replies, 0)
            for command in submission.commands:  # not a comprehension: _take counts the replies
                replies.append(self._take(command, step, awaited))  # noqa: PERF401
            if submission.ticket is not None and not awaited.missing:
                step.replies.append((submission.ticket, replies))

    def _take(self, command: Command, step: Step, awaited: Awaited | None = None) -> Reply:
        """Puts a command on the log and processes it, unless others on the log come first."""
        turn, request_id = self._turn, command.request_id
        if request_id is not None and (known := self._known(request_id, command)) is not None:
            return known
        record, careful = turn.write_command(command), turn.careful
        if careful is not None and (refused := self._unwritable(record, careful, step)) is not None:
            return refused
        if turn.follow_ups or (careful is not None and careful.is_full):
            turn.follow_ups.append(record)
            if awaited is not None:
                self._awaited[record.position] = awaited, len(awaited.replies)
                awaited.missing += 1
            if request_id is not None and self._requests is not None:
                turn.begin(FROM_OUTSIDE)  # nothing is processed by it
                self._requests.accept(turn, request_id, record.position)
            return _NOT_YET
        reply = self._process(record, step, request_id)
        if turn.follow_ups:
            self._drain(step)
        return reply

    def _unwritable(self, record: Record, careful: Careful, step: Step) -> Reply | None:
        """The answer to a command that cannot even be put on the log: nothing is written of it."""
        turn = self._turn
        try:
            careful.check([record])
        except Unstorable as error:
            turn.records.pop()
            turn.next_position -= 1
            step.bugs.append(error.message)
            step.rejections += 1
            return Reply(record.key, None, failure(error))
        return None

    def _is_enough(self) -> bool:
        """Whether the step has done as much deferred work as live commands wait for."""
        turn = self._turn
        return turn.moves > STEP_MOVES_MAX or turn.elapsed() - self._began > turn.share_seconds

    def _drain(self, step: Step) -> None:
        """Processes follow-ups in the order of the log, as many as a step may hold."""
        follow_ups, careful = self._turn.follow_ups, self._turn.careful
        while follow_ups and step.commands < STEP_COMMANDS_MAX and not self._is_enough():
            if careful is not None and careful.is_full:
                return
            record = follow_ups.popleft()
            request_id = None
            if self._requests is not None and record.source_position < 0:
                request_id = self._requests.waiting(self.view, record.position)
            reply = self._process(record, step, request_id)
            if self._awaited and (waiting := self._awaited.pop(record.position, None)):
                awaited, index = waiting
                awaited.replies[index] = reply
                awaited.missing -= 1
                if not awaited.missing and awaited.ticket is not None:
                    step.replies.append((awaited.ticket, awaited.replies))

    def _known(self, request_id: str, command: Command) -> Reply | None:
        """What somebody was answered who asked the same before."""
        if self._requests is None:
            return None
        return self._requests.known(self.view, self._tables, request_id, command)

    def _process(self, command: Record, step: Step, request_id: str | None = None) -> Reply:
        turn, records = self._turn, self._turn.records
        if len(records) > RECORDS_HELD_MAX:
            self._encode(step)
        written = len(records)
        mark = turn.begin(command.position)
        step.commands += 1
        try:
            if turn.careful is not None:
                turn.is_braked = turn.careful.begin(command)
            handler = self._handlers.get((command.value_type, command.intent))
            if handler is None:
                turn.reject(
                    command, Code.INVALID_ARGUMENT, "Expected a command, but found an event"
                )
            elif command.claims is None:
                handler(turn, command)
            else:
                turn.handle(handler, command)
            if len(records) == written:
                raise Internal("the command wrote nothing: neither an event nor a rejection")
            reply = turn.reply or _NOT_YET
            if request_id is not None and self._requests is not None:
                self._requests.answer(turn, request_id, command, reply)
            if turn.careful is not None:
                turn.careful.check(records[written:])
        except DataLoss:  # no bug: the state cannot be read, and nothing may be decided by it
            raise
        except Exception as error:  # a bug of a handler must not stop the partition
            turn.take_back(mark)
            code, reason = msgspec.structs.astuple(failure(error))
            step.bugs.append(reason)
            turn.begin(command.position)
            turn.reject(command, code, reason)
            reply = turn.reply or _NOT_YET
            if request_id is not None and self._requests is not None:
                self._requests.answer(turn, request_id, command, reply)
            if command.delivery is not None:
                turn.effect(CommandRefused(command.key, turn.partition, reason))
        self._processed = command.position
        if reply.rejection is not None:
            step.rejections += 1
        return reply

    def _encode(self, step: Step) -> None:
        """What was written so far becomes bytes."""
        step.entries += self._tables.codec.encode_many(self._turn.records)
        self._turn.records.clear()

    def commit(self, step: Step, appended: Appended | None) -> None:
        """The step's entries are durable; None: it had none."""
        self.state.commit()
        if appended is None:
            return
        self.next_offset = appended.next
        if self._leftover or self._held:
            self._hold(self._applied, appended.first)

    def abandon(self, step: Step) -> None:
        """The step's entries could not be written: takes back all that it did."""
        self.state.undo_to(0)
        self._load(step.before)
        self._leftover = deque(step.before.leftover)
        self._awaited = step.before.awaited
        for awaited, _ in self._awaited.values():
            awaited.missing = 0
        for awaited, _ in self._awaited.values():
            awaited.missing += 1

    # --- recovery -----------------------------------------------------------------------------

    def take_over(self, other: "Processor[S]") -> None:
        """Goes on for another processor of the same partition whose state was damaged."""
        assert self.next_position == other.next_position, "it stands at another place of the log"
        self._awaited = other._awaited
        self.next_offset = other.next_offset
        self.watch(other._quarantine)

    def succeed(self, other: "Processor[S]") -> None:
        """Comes after a processor of the same partition whose memory was dropped."""
        self.watch(other._quarantine)
        self._turn.elapsed = other._turn.elapsed

    def replay(self, entries: Sequence[Entry]) -> int:
        """Applies the events among these entries; returns how many. Called in the log's order."""
        if not entries:
            return 0
        appliers, state, partition = self._tables.appliers, self.view, self.partition
        records = self._tables.codec.decode_many([entry.payload for entry in entries])
        already, processed, events = self._applied, self._processed, 0
        self._check_no_gap(records, already)
        last_key, keys_end = key_of(partition, 0), key_of(partition, KEY_COUNTER_MAX)
        undo_log, last_keys = self.state.undo_log, self._tables.last_keys
        for record in records:
            # A follow-up, too, says that its cause was processed.
            if record.source_position > processed:
                processed = record.source_position
            if record.kind is _EVENT and record.position > already:
                appliers[record.value_type, record.intent](state, record)
                undo_log.clear()  # it is on the log: there is nothing to take back
                events += 1
                if last_key < record.key <= keys_end:  # it was given out here
                    last_key = record.key
                if record.value_type in last_keys:
                    last_key = max(last_key, last_keys[record.value_type](record.value))
        self.state.replayed()
        self._processed = processed
        self._applied = max(already, records[-1].position)
        self._last_ms = max(self._last_ms, records[-1].timestamp_ms)
        self.next_offset, self.replayed_position = entries[-1].offset + 1, records[-1].position
        self._turn.next_position = self._applied + 1
        self._turn.key_counter = max(self._turn.key_counter, counter_of(last_key))
        while self._leftover and self._leftover[0].position <= processed:
            self._leftover.popleft()
        self._leftover.extend(
            [each for each in records if each.kind is _COMMAND and each.position > processed]
        )
        if self._leftover or self._held:
            self._hold(records[-1].position, entries[0].offset)
        return events
