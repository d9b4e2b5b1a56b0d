"""Faults planted around the rules: each is a mistake that lost entries in some system.

Every fault is a subclass of `Exploration` that breaks one rule or one promise of the world, by
overriding the rule's own class where the rule has one.
"""

from collections.abc import Iterator

from tests.journal.cluster.cluster_scopes import (
    CUTS,
    FEW,
    FEW_CUTS,
    LOST_DISK,
    OTHER_SET,
    TWO_TAKERS,
)
from tests.journal.cluster.exploring import (
    TOPIC,
    Disk,
    Exploration,
    Log,
    Next,
    Scope,
    State,
    put,
    with_disk,
)

from holdfast.journal.cluster.owner import OwnerRange
from holdfast.journal.cluster.replica import Decision, Keep, ReplicaRules
from holdfast.journal.cluster.taker import TakeOver, TakePhase
from holdfast.sequence.api import Chain


class Fault(Exploration):
    """One thing is wrong."""

    scope_of: Scope = TWO_TAKERS
    is_faulty = True


class AcknowledgedEarly(Fault):
    """One report is enough for an acknowledgement."""

    class owner_rules(OwnerRange):  # noqa: N801
        def __init__(self, opened) -> None:
            super().__init__(opened)
            self.quorum = 1


class PromiseIgnored(Fault):
    """A replica accepts appends of an epoch below its promise."""

    class replica_rules(ReplicaRules):  # noqa: N801
        def append(self, epoch: int, topic: str, number: int, count: int) -> Decision:
            return self._extend(epoch, topic, number, count)

        def may_report(self, epoch: int) -> bool:
            return True


class Restarting(Fault):
    """A disk of the set restarts once, and something is lost by it."""

    def failures(self, s: State) -> Next:
        yield from super().failures(s)
        for r, disk in enumerate(s.disks) if not s.restarts else ():
            yield (
                ("disk", r, "restarts"),
                with_disk(s, r, self.restarted(disk))._replace(restarts=1),
            )

    def restarted(self, disk: Disk) -> Disk:
        raise NotImplementedError


class PromiseVolatile(Restarting):
    """A replica forgets its promise in a restart."""

    def restarted(self, disk: Disk) -> Disk:
        return disk._replace(promise=self.rules(0, 0, disk.logs).promise)


class ReportedEarly(Restarting):
    """A replica reports before its sync, and restarts without what it reported."""

    def restarted(self, disk: Disk) -> Disk:
        last = max((epoch for epoch, log in enumerate(disk.logs) if log), default=0)
        return disk._replace(logs=put(disk.logs, last, disk.logs[last][:-1]))


class OwnDiskOpen(Fault):
    """The owner's writes to its own disk ignore the promise."""

    owner_disk_is_special = True

    def _append(self, r: int, disk: Disk, p: int, epoch: int) -> Disk | None:
        if r != 0 or p != 0:
            return super()._append(r, disk, p, epoch)
        after = super()._append(r, disk._replace(promise=0), p, epoch)
        return after and after._replace(promise=max(after.promise, disk.promise))

    def rules(self, r: int, promise: int, logs: tuple[Log, ...]) -> ReplicaRules:
        if promise or r:
            return super().rules(r, promise, logs)
        return PromiseIgnored.replica_rules(
            promise, {epoch: {TOPIC: len(log)} for epoch, log in enumerate(logs) if log}
        )


class OneAnswer(Fault):
    """The end is chosen after one answer to the fence."""

    class taker_rules(TakeOver):  # noqa: N801
        @property
        def can_choose(self) -> bool:
            return self.phase is TakePhase.FENCING and len(self.answered()) >= 1


class ShortestAnswer(Fault):
    """The shortest answer is chosen, not the longest."""

    class taker_rules(TakeOver):  # noqa: N801
        def choose(self) -> dict[str, int]:
            super().choose()
            held = [counts.get(TOPIC, 0) for counts in self._holding.values()]
            self.tail = {TOPIC: min(held)}
            return self.tail


class TailNotCopied(Fault):
    """The range is closed before its tail is on a quorum."""

    class taker_rules(TakeOver):  # noqa: N801
        @property
        def can_close(self) -> bool:
            return self.phase in (TakePhase.COPYING, TakePhase.CLOSING)


class CloseUnguarded(Fault):
    """The transaction that closes and opens has no guard."""

    scope_of = FEW

    def is_guarded(self, s: State, wanted: Chain) -> bool:
        return True


class OutcomeAssumed(Fault):
    """A taker assumes that a timed-out transaction has won."""

    scope_of = FEW

    class taker_rules(TakeOver):  # noqa: N801
        def read_back(self, chain: Chain) -> TakePhase:
            return TakePhase.WON


class OpenerUnchecked(Fault):
    """A taker takes a range that another opened for its own."""

    scope_of = FEW

    class taker_rules(TakeOver):  # noqa: N801
        def read_back(self, chain: Chain) -> TakePhase:
            return TakePhase.WON if chain.epoch >= self.opens else TakePhase.CLOSING


class CopiesCounted(Fault):
    """Copies count as reports while the range is not closed."""

    class replica_rules(ReplicaRules):  # noqa: N801
        def may_report(self, epoch: int) -> bool:
            return True


class VoidTailCounted(Fault):
    """An answer to the fence begins with the void tail of the range before."""

    scope_of = FEW

    def answer(self, s: State, r: int, epoch: int) -> Log:
        answer = super().answer(s, r, epoch)
        if epoch == 1:
            return answer
        end = s.chain[epoch - 1][1] - s.chain[epoch - 2][1]
        return s.disks[r].logs[epoch - 1][end:] + answer


class LateCopyReplaces(Fault):
    """A late copy overwrites entries of the next range."""

    scope_of = FEW

    class replica_rules(ReplicaRules):  # noqa: N801
        def copy(self, epoch: int, opens: int, topic: str, number: int, count: int) -> Decision:
            decided = super().copy(epoch, opens, topic, number, count)
            if isinstance(decided, Keep):
                self._taken.pop(opens, None)
                self._durable.pop(opens, None)
            return decided


class EpochReused(Fault):
    """An owner restarts and goes on in its epoch, from its own disk."""

    owner_disk_is_special = True

    def owners(self, s: State) -> list[tuple[int, int]]:
        again = [(self.processes, 1)] if s.restarts else []
        return [*super().owners(s), *again]

    def failures(self, s: State) -> Next:
        yield from super().failures(s)
        if not s.restarts:
            after = s._replace(restarts=1)
            for r, disk in enumerate(s.disks):
                known = min(len(s.disks[0].logs[1]), len(disk.logs[1]))
                reported = put(disk.reported, self.processes, known)
                after = with_disk(after, r, disk._replace(reported=reported))
            yield ("process 0 restarts in epoch 1 as process", self.processes), after


class LostDiskAnswers(Fault):
    """An empty disk takes part under its old identity."""

    scope_of = LOST_DISK
    blank_promise = 0


class FenceOnNewSet(Fault):
    """The next replica set is fenced, not the range's own."""

    scope_of = OTHER_SET

    class taker_rules(TakeOver):  # noqa: N801
        def __init__(self, chain: Chain, opening) -> None:
            super().__init__(chain, opening)
            self.replicas = opening.replicas


class CutOfOneReport(Fault):
    """A cut names what one replica has reported."""

    scope_of = CUTS

    def marked(self, s: State, process: int, epoch: int) -> int:
        return max(self.reports(s, process, epoch))


class CutOfCopies(Fault):
    """A cut names what a taker copied, before the range is closed."""

    scope_of = FEW_CUTS

    def marked(self, s: State, process: int, epoch: int) -> int:
        lengths = tuple(len(s.disks[r].logs[epoch]) for r in self.sets[epoch])
        return self.once(("acknowledged", process, epoch, lengths), self._acknowledged)


class CutSkipsTail(Fault):
    """A cut names entries of a range, but not all of the one before."""

    scope_of = CUTS

    def named(self, s: State, epoch: int, end: int) -> Log:
        start = s.chain[epoch - 1][1]
        named = super().named(s, epoch, end)
        return named[: max(start - 1, 0)] + named[start:]


class CutUnguarded(Fault):
    """The transaction that publishes a cut has no guard."""

    scope_of = CUTS

    def published(self, s: State, rest: State, expected: int, cut: Log) -> Next:
        if expected == len(s.cuts):
            yield from super().published(s, rest, expected, cut)
        else:
            read = ((expected, s.cuts[expected]),)
            again = rest._replace(cuts=put(s.cuts, expected, cut), beliefs=read)
            yield ("cut", expected, "is read, then published again:", cut), again


class CutAssumed(Fault):
    """A writer orders by its own cut, without having read it back."""

    scope_of = CUTS

    def published(self, s: State, rest: State, expected: int, cut: Log) -> Next:
        yield from super().published(s, rest, expected, cut)
        yield ("a writer acts on cut", expected, cut), rest._replace(beliefs=((expected, cut),))


def faults() -> Iterator[type[Fault]]:
    """All of them, in the order of this page."""
    for each in globals().values():
        if isinstance(each, type) and issubclass(each, Fault) and each not in (Fault, Restarting):
            yield each
