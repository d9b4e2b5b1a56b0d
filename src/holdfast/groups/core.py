"""One member of a group, pure and synchronous: what happened goes in, what is to be done comes out.

The shell feeds what it reads, what its work reports and the time, and does the effects in order.
Messages come out of `flush` and `tick` alone: `flush` at the end of a turn of the loop has what
others wait for, `tick` has commits as well.
"""

from collections.abc import Iterable, Sequence

from holdfast.errors import ResourceExhausted
from holdfast.groups.api import Entry, Generation, MemberId, NewPartition, Offset
from holdfast.groups.core_leading import Leading
from holdfast.groups.core_runs import ACTIVE, LocalRun, LocalRuns, RunPhase
from holdfast.groups.core_saying import Saying
from holdfast.groups.effects import (
    Alarm,
    Checkpoint,
    Durable,
    Effect,
    EpochStarted,
    LeftOut,
    Send,
)
from holdfast.groups.merge import Verdict, merge
from holdfast.groups.messages import (
    Ask,
    Committed,
    Finished,
    NewEpoch,
    Proposed,
    RebalanceAnswer,
    Regular,
    SyncMessage,
    UpdateEpoch,
)
from holdfast.groups.read_back import UnreadableMessage, decoded_entry, read_back
from holdfast.groups.sharing import moves
from holdfast.groups.state import GroupState, Rebalance
from holdfast.limits import GROUP_MOVES_MAX, GROUP_PARTITIONS_MAX


class GroupCore:
    """A member's view of the sync log, what it runs, and what it has to say."""

    def __init__(self, member: MemberId, partitions: Sequence[NewPartition] = ()) -> None:
        """`partitions` are those that are to exist; more can be declared later."""
        self.member = member
        self.state = GroupState()
        self.generation: Generation | None = None
        self._runs = LocalRuns(member)
        self._saying = Saying(member, self._runs, partitions)
        self.leading = Leading(member)
        self._is_out = False  # the membership is without this member
        self._balanced_at = -1  # the offset after which the load was looked at last

    # --- what can be asked --------------------------------------------------------------------

    @property
    def epoch(self) -> int:
        return self.state.epoch

    @property
    def is_in(self) -> bool:
        """Whether this member counts in the present epoch."""
        return self.member in self.state.members and not self._is_out

    @property
    def is_leader(self) -> bool:
        return self.generation is not None and self.generation.leader == self.member

    @property
    def running(self) -> list[str]:
        """The partitions on which something runs here, be it only to end."""
        return [each for each, run in self._runs.runs.items() if run.phase in ACTIVE]

    def owns(self, token: str) -> bool:
        """Whether the log says that a partition is this member's."""
        partition = self.state.partitions.get(token)
        return self.is_in and partition is not None and partition.owner == self.member

    # --- the log and the membership -----------------------------------------------------------

    def restore(self, entries: Sequence[Entry], is_complete: bool = True) -> list[Effect]:
        """Reads back all that the log keeps, at the start or after falling behind its beginning.

        `is_complete`: nothing was discarded before the first entry. DataLoss where entries are
        missing.
        """
        decoded = [(entry.offset, decoded_entry(entry)) for entry in entries]
        messages = [
            (offset, each) for offset, each in decoded if not isinstance(each, UnreadableMessage)
        ]
        self.state = read_back(messages, is_complete)
        self._saying.begin_anew()
        alarms = [Alarm(each.text) for _, each in decoded if isinstance(each, UnreadableMessage)]
        return [*alarms, *self._epoch_read(self.state.generation), *self._settle_all()]

    def joined(self, generation: Generation) -> list[Effect]:
        """The membership has a new generation."""
        self.generation = generation
        was_out = self._is_out
        self._is_out = self.member not in generation.members
        effects = list(self._settle_all()) if self._is_out != was_out else []
        if self._is_out and not was_out:
            effects.append(LeftOut(f"generation {generation.number} is without this member"))
        elif not self._is_out and self._has_begun_without(generation):
            effects.append(LeftOut(f"epoch {self.epoch} is without this member"))
        return effects

    def _has_begun_without(self, generation: Generation) -> bool:
        """Whether the epoch of a generation was read before this member heard that it is in it."""
        state = self.state
        is_begun = state.generation == generation.number and state.rebalance is None
        return is_begun and self.member not in state.members

    def read(self, entry: Entry) -> list[Effect]:
        """The next entry of the sync log."""
        message = decoded_entry(entry)
        if isinstance(message, UnreadableMessage):
            return [Alarm(message.text)]
        return self.fold(entry.offset, message, len(entry.payload))

    def fold(self, offset: int, message: SyncMessage, size_bytes: int) -> list[Effect]:
        """The next message of the sync log, decoded."""
        self.leading.bytes_since += size_bytes
        merged = merge(self.state, offset, message)
        effects: list[Effect] = [Alarm(text) for text in merged.alarms] if merged.alarms else []
        is_accepted = merged.verdict is Verdict.ACCEPTED
        if is_accepted and isinstance(message, NewEpoch):
            effects += self._new_epoch(message)
        elif message.member == self.member:
            effects += self._read_own(message, merged.verdict)
        if is_accepted and isinstance(message, UpdateEpoch):
            self.leading.update_read(message, self._runs.now_ms)
        if self.state.touched:
            touched, self.state.touched = self.state.touched, set()
            effects += self._settle(touched)
        return effects

    # --- what the work reports ----------------------------------------------------------------

    def declare(self, partitions: Sequence[NewPartition]) -> list[Effect]:
        """These partitions are to exist."""
        self._saying.declare(partitions)
        return []

    def started(self, token: str) -> list[Effect]:
        """The work on a partition has begun."""
        run = self._runs.runs.get(token)
        if run is not None and run.phase is RunPhase.STARTING:
            run.phase = RunPhase.RUNNING
            self._saying.say([token], is_urgent=False)
        return []

    def committed(self, token: str, offset: Offset, watermark: int | None = None) -> list[Effect]:
        """The work on a partition came so far; `Durable` tells when that has been read back."""
        run = self._active(token)
        if run is None or not self.owns(token):
            return []
        run.offset = run.offset if offset is None else offset
        if watermark is not None and (run.watermark is None or watermark > run.watermark):
            run.watermark = watermark
        if self._runs.changes(self.state, token):
            self._saying.say([token], is_urgent=False)
            return []
        return [Durable(token, run.offset)]

    def finished(self, token: str, children: Sequence[NewPartition] = ()) -> list[Effect]:
        """The work on a partition is done, and all of it is committed.

        ResourceExhausted where the group has no room for the children.
        """
        run = self._active(token)
        if run is None:
            return []
        if len(self.state.partitions) + len(self.state.gone) + len(children) > GROUP_PARTITIONS_MAX:
            raise ResourceExhausted(
                f"Partition {token!r} has {len(children)} children, but the group has"
                f" {len(self.state.partitions)} partitions already and can have"
                f" {GROUP_PARTITIONS_MAX}; finish some first"
            )
        run.phase = RunPhase.FINISHED
        run.children = tuple(children)
        return self._ended(token)

    def failed(self, token: str, error: str) -> list[Effect]:
        """The work on a partition ended with an error: it is parked, and retried later."""
        if self._active(token) is None:
            return []
        partition = self.state.partitions.get(token)
        self._runs.fail(token, error, partition.attempts if partition is not None else 0)
        return self._ended(token)

    def released(self, token: str, offset: Offset = None) -> list[Effect]:
        """Nothing runs for a partition any more, as `StopRun` asked; None: as committed last."""
        run = self._active(token)
        if run is None:
            return []
        if run.phase is not RunPhase.STOPPING:
            return self.failed(token, "The work ended before it was asked to leave")
        run.phase = RunPhase.STOPPED
        run.offset = run.offset if offset is None else offset
        return self._ended(token)

    def ask(self, ask: Ask) -> list[Effect]:
        """Somebody wants a partition moved, parked or resumed."""
        self._saying.ask(ask)
        return []

    def leave(self) -> list[Effect]:
        """This member is about to leave: it lets go of everything, and says how far it came.

        What it owns is shared anew in the epoch that is without it.
        """
        self._runs.is_leaving = True
        return self._settle_all()

    # --- what is to be sent -------------------------------------------------------------------

    def flush(self) -> list[Effect]:
        """What others wait for, in one message."""
        return self._send(is_tick=False)

    def tick(self, now_ms: int) -> list[Effect]:
        """Time has passed: everything that is to be sent, retries, what was not heard of."""
        self._runs.now_ms = max(self._runs.now_ms, now_ms)
        if self._saying.sent.is_lost(now_ms):
            self._saying.give_up()
        effects = list(self._runs.due(self.state)) if self.is_in else []
        return effects + self._send(is_tick=True)

    def _send(self, is_tick: bool) -> list[Effect]:
        state, leading, sent = self.state, self.leading, self._saying.sent
        if leading.begins(state, self.generation) and not sent.is_waiting(UpdateEpoch):
            counter = self._saying.note(UpdateEpoch)
            return [Send(leading.begin(state, self.generation, counter))]
        if state.rebalance is not None:
            return self._send_in_rebalance(state.rebalance)
        effects: list[Effect] = []
        if not self.is_in:
            return effects
        if is_tick or self._saying.is_urgent or not self._saying.has_started:
            message = self._saying.regular(state, self._proposals() if is_tick else [])
            if message is not None:
                effects.append(Send(message))
        if is_tick and leading.is_checkpoint_due(state) and not sent.is_waiting(UpdateEpoch):
            counter = self._saying.note(UpdateEpoch)
            effects.append(Send(leading.checkpoint(state, counter)))
        return effects

    def _send_in_rebalance(self, going: Rebalance) -> list[Effect]:
        """Nothing is shared now: members answer, and the leader begins the epoch."""
        state, sent = self.state, self._saying.sent
        effects: list[Effect] = []
        is_asked = self.member in going.members and self.member not in going.answered
        if is_asked and not self._is_out and not sent.is_waiting(RebalanceAnswer):
            effects.append(Send(self._saying.answer(state, going.generation)))
        is_end = self.leading.ends(state, self.generation, self._runs.now_ms)
        if is_end and not sent.is_waiting(NewEpoch):
            declared = tuple(self._saying.declared.values())
            counter = self._saying.note(NewEpoch)
            effects.append(Send(self.leading.new_epoch(state, declared, counter)))
        return effects

    def _proposals(self) -> list[Proposed]:
        """Partitions to hand over; the fold decides which of them move."""
        if self._balanced_at == self.state.offset or not self._saying.has_started:
            return []
        self._balanced_at = self.state.offset
        on_the_way = self._saying.sent.tokens
        planned = moves(self.state, self.member, GROUP_MOVES_MAX)
        return [Proposed(*each) for each in planned if each.token not in on_the_way]

    # --- inside -------------------------------------------------------------------------------

    def _new_epoch(self, message: NewEpoch) -> Iterable[Effect]:
        self._saying.begin_anew()
        self.leading.epoch_read()
        yield from self._epoch_read(message.generation)
        if message.member == self.member:
            yield Checkpoint(message.snapshot.as_of)

    def _epoch_read(self, generation: int) -> Iterable[Effect]:
        """The epoch is another: this member is in, or the group goes on without it."""
        if self.is_in:
            yield EpochStarted(self.state.epoch)
        elif self.generation is not None and generation >= self.generation.number:
            yield LeftOut(f"epoch {self.state.epoch} is without this member")

    def _read_own(self, message: SyncMessage, verdict: Verdict) -> Iterable[Effect]:
        """What was sent is read back: now it has happened, or it has to be said anew."""
        if verdict is Verdict.ACCEPTED:
            self._saying.read(message.counter)
            yield from _durable(message)
        elif verdict is Verdict.GAP:
            self._saying.is_missing(message.counter)
        elif verdict is not Verdict.DUPLICATE:
            self._saying.refused(message.counter)

    def _settle_all(self) -> list[Effect]:
        own = self.state.owned.get(self.member, set()) | self.state.shared.get(self.member, set())
        return self._settle(own | self._runs.runs.keys())

    def _settle(self, tokens: Iterable[str]) -> list[Effect]:
        """Brings the work in line with the log, and notes what there is to say."""
        effects: list[Effect] = []
        for token in sorted(self._near(tokens)):
            effects += self._runs.settle(self.state, token, self.is_in)
            is_news = self.is_in and bool(self._runs.changes(self.state, token))
            if is_news and token not in self._saying.sent.tokens:
                self._saying.say([token])
        return effects

    def _near(self, tokens: Iterable[str]) -> list[str]:
        """The partitions that this member has to do with, by the log or by what it runs."""
        member, partitions, runs = self.member, self.state.partitions, self._runs
        near: list[str] = []
        for token in tokens:
            partition = partitions.get(token)
            is_mine = partition is not None and member in (partition.owner, partition.target)
            if is_mine or token in runs.runs or token in runs.retries:
                near.append(token)
        return near

    def _active(self, token: str) -> LocalRun | None:
        run = self._runs.runs.get(token)
        return run if run is not None and run.phase in ACTIVE else None

    def _ended(self, token: str) -> list[Effect]:
        """Nothing runs for a partition any more; it is said, unless it is another's by now."""
        self._saying.say([token])
        return self._settle([token])


def _durable(message: SyncMessage) -> Iterable[Effect]:
    """What is certain since a message of this member was read back."""
    if isinstance(message, UpdateEpoch) and message.snapshot is not None:
        yield Checkpoint(message.snapshot.as_of)
    if isinstance(message, Regular | RebalanceAnswer):
        for change in message.changes:
            if isinstance(change, Committed | Finished):
                yield Durable(change.token, change.offset, isinstance(change, Finished))
