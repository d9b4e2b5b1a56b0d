"""What a member has to say: gathered until a message goes out, and again where it did not count."""

from collections.abc import Iterable, Sequence

from holdfast.groups.api import MemberId, NewPartition
from holdfast.groups.core_runs import LocalRuns
from holdfast.groups.core_sending import SentMessage, SentMessages
from holdfast.groups.messages import Ask, Change, Declared, Proposed, RebalanceAnswer, Regular
from holdfast.groups.state import GroupState


class Saying:
    """The changes of one member on their way into the log."""

    def __init__(self, member: MemberId, runs: LocalRuns, partitions: Sequence[NewPartition]):
        self._member = member
        self._runs = runs
        self.declared = {each.token: each for each in partitions}
        self.sent = SentMessages()
        self.is_urgent = False  # somebody waits for what is to be said
        self.has_started = False  # has said something in the present epoch
        self._dirty: set[str] = set()  # partitions of which something is to be said
        self._asks: list[Ask] = []
        self._is_whole = True  # the next message does not build on those before it
        self._whole_counter = 0  # of the last message that did not

    def say(self, tokens: Iterable[str], is_urgent: bool = True) -> None:
        """Something about these partitions is not in the log."""
        self._dirty.update(tokens)
        self.is_urgent |= is_urgent

    def ask(self, ask: Ask) -> None:
        self._asks.append(ask)
        self.is_urgent = True

    def declare(self, partitions: Sequence[NewPartition]) -> None:
        """These partitions are to exist."""
        self.declared |= {each.token: each for each in partitions}
        self._is_whole = self.is_urgent = True

    # --- messages -----------------------------------------------------------------------------

    def regular(self, state: GroupState, proposals: Sequence[Proposed]) -> Regular | None:
        """All that is to be said, if there is anything."""
        is_whole = self._is_whole or not self.has_started
        changes, tokens = self._changes(state, is_whole)
        changes += proposals
        tokens |= {each.token for each in proposals}
        asks, self._asks = tuple(self._asks), []
        self.is_urgent = False
        if not changes and not asks and not is_whole:
            return None
        counter = self.note(Regular, tokens, asks)
        self.has_started, self._is_whole = True, False
        self._whole_counter = counter if is_whole else self._whole_counter
        return Regular(state.epoch, self._member, counter, is_whole, tuple(changes), asks)

    def answer(self, state: GroupState, generation: int) -> RebalanceAnswer:
        """The same for a rebalance."""
        changes, tokens = self._changes(state, is_whole=True)
        counter = self.note(RebalanceAnswer, tokens)
        return RebalanceAnswer(state.epoch, self._member, counter, generation, tuple(changes))

    def note(self, kind: type, tokens: Iterable[str] = (), asks: tuple[Ask, ...] = ()) -> int:
        """A message is sent; its counter."""
        sent = SentMessage(kind, self._runs.now_ms, frozenset(tokens), asks)
        return self.sent.send(sent)

    def _changes(self, state: GroupState, is_whole: bool) -> tuple[list[Change], set[str]]:
        """What is to be said, and of which partitions."""
        tokens = self._dirty | self.sent.tokens if is_whole else self._dirty
        self._dirty = set()
        changes: list[Change] = []
        for token in sorted(tokens):
            changes += self._runs.changes(state, token)
        if is_whole and state.rebalance is None:
            missing = sorted(self.declared.keys() - state.partitions.keys() - state.gone)
            if missing:
                changes.append(Declared(tuple(self.declared[each] for each in missing)))
        return changes, set(tokens)

    # --- what became of them ------------------------------------------------------------------

    def read(self, counter: int) -> None:
        """A message was read back and counts; asks of lost ones before it are repeated."""
        for lost in self.sent.read(counter):
            self._asks += lost.asks

    def refused(self, counter: int) -> None:
        """A message was read back and does not count."""
        sent = self.sent.refused(counter)
        if sent is not None:
            self._again([sent])

    def is_missing(self, counter: int) -> None:
        """A message before this one was lost; a whole one makes good for it, once."""
        if counter > self._whole_counter:
            self.give_up()
        else:
            self.sent.refused(counter)

    def give_up(self) -> None:
        """Nothing that is on its way is relied upon."""
        self._again(self.sent.give_up())

    def begin_anew(self) -> None:
        """Nothing that was said before is relied upon, as in a new epoch."""
        self.give_up()
        self.has_started = False
        self._dirty |= self._runs.runs.keys()

    def _again(self, messages: Iterable[SentMessage]) -> None:
        for sent in messages:
            self._dirty |= sent.tokens
            self._asks += sent.asks
        self._is_whole = self.is_urgent = True
