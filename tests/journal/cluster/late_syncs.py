"""Explorations in which nothing is durable at once: writes are allowed, then synced, or lost.

Entries reach a disk in the order in which they were taken; promises are in a file of their own, so
they may become durable before or after them. A restart loses what is on its way. What is reported
and answered goes by what the rules say after the sync.
"""

from typing import Any

from tests.journal.cluster.exploring import (
    BEATEN,
    COPYING,
    FENCING,
    TOPIC,
    Disk,
    Exploration,
    Log,
    Next,
    State,
    Taker,
    put,
    with_disk,
)

from holdfast.journal.cluster.replica import Again, Decision, Keep, Promise, ReplicaRules

WRITES_MAX = 2  # on their way to one disk
APPEND, FENCE, COPY = "append", "fence", "copy"


class LateSyncs(Exploration):
    """Writing and syncing are two steps, and so are promising and answering."""

    def being(self, disk: Disk) -> ReplicaRules:
        """The rules of a disk with what is on its way to it."""
        counts = {epoch: {TOPIC: len(log)} for epoch, log in enumerate(disk.logs) if log}
        rules = self.replica_rules(0, counts)
        for kind, _, epoch, entries in disk.writing:  # they were taken before promises above them
            if kind == APPEND:
                rules.append(epoch, TOPIC, entries[0][1], 1)
            elif kind == COPY:
                rules.copy(epoch, epoch + 1, TOPIC, 0, len(entries))
        if disk.promise > rules.durable_promise:
            rules.fence(disk.promise - 1, disk.promise)
            rules.promised(disk.promise)
        for kind, _, epoch, _ in disk.writing:
            if kind == FENCE:
                rules.fence(epoch, epoch + 1)
        return rules

    def appends(self, s: State) -> Next:
        yield from self.syncs(s)
        for p, epoch in self.owners(s):
            for r in self.sets[epoch]:
                disk = s.disks[r]
                under_way = sum(each[:2] == (APPEND, p) for each in disk.writing)
                index = disk.reported[p] + under_way
                if index >= self.limit(s, p) or len(disk.writing) == WRITES_MAX:
                    continue
                after = self.once(("take", disk, p, epoch, index), self._take)
                if after is not None and after != disk:
                    yield ("disk", r, "takes entry", index, "of process", p), with_disk(s, r, after)

    def _take(self, disk: Disk, p: int, epoch: int, index: int) -> Disk | None:
        rules = self.being(disk)
        decided = rules.append(epoch, TOPIC, index, 1)
        if isinstance(decided, Keep):
            return self.taken(disk, rules, (APPEND, p, epoch, ((p, index),)))
        if isinstance(decided, Again) and rules.may_report(epoch):
            return disk._replace(reported=put(disk.reported, p, max(index, decided.durable)))
        return None

    def taken(self, disk: Disk, rules: ReplicaRules, write: tuple[Any, ...]) -> Disk:
        return disk._replace(writing=(*disk.writing, write))

    def sent(self, s: State) -> int:
        own = [each for disk in s.disks for each in disk.writing if each[:2] == (APPEND, 0)]
        return max([super().sent(s), *(entries[0][1] + 1 for _, _, _, entries in own)])

    def fences(self, s: State, t: int, taker: Taker) -> Next:
        if taker.phase == FENCING:
            yield from self._asks(s, t, (FENCE, t, taker.read, ()), self.sets[taker.read])

    def copies(self, s: State, t: int, taker: Taker) -> Next:
        if taker.phase == COPYING:
            yield from self._asks(s, t, (COPY, t, taker.read, taker.tail), self.sets[taker.read])

    def _asks(self, s: State, t: int, write: tuple[Any, ...], replicas: tuple[int, ...]) -> Next:
        for r in replicas:
            disk = s.disks[r]
            if len(disk.writing) == WRITES_MAX or write in disk.writing or disk.told[t]:
                continue
            if self.once(("allows", disk, write), self._allows):
                after = disk._replace(writing=(*disk.writing, write))
                yield ("disk", r, "takes a", write[0], "of taker", t + 1), with_disk(s, r, after)

    def _allows(self, disk: Disk, write: tuple[Any, ...]) -> bool:
        kind, _, epoch, entries = write
        rules = self.being(disk)
        if kind == FENCE:
            return isinstance(rules.fence(epoch, epoch + 1), Promise)
        decided: Decision = rules.copy(epoch, epoch + 1, TOPIC, 0, len(entries))
        return isinstance(decided, Keep | Again)

    def syncs(self, s: State) -> Next:
        """The next write of entries becomes durable, or any promise; or all of it is lost."""
        for r, disk in enumerate(s.disks):
            has_passed = False
            for at, (kind, who, epoch, entries) in enumerate(disk.writing):
                if kind != FENCE and has_passed:
                    continue
                has_passed = has_passed or kind != FENCE
                owner = s.chain[epoch - 1][0]
                after = self.once(("sync", disk, at, owner), self._sync)
                what = ("disk", r, "has synced a", kind, entries)
                if kind == APPEND:
                    yield what, with_disk(s, r, after[0])
                else:
                    yield from self._answered(s, r, who, after, what)
            if disk.writing and s.restarts < 1:
                lost = with_disk(s, r, disk._replace(writing=()))
                yield (
                    ("disk", r, "restarts, and loses what was on its way"),
                    lost._replace(restarts=1),
                )

    def _sync(self, disk: Disk, at: int, owner: int) -> tuple[Disk, Log, int]:
        rules = self.being(disk)
        kind, who, epoch, entries = disk.writing[at]
        left = disk._replace(writing=disk.writing[:at] + disk.writing[at + 1 :])
        log, report = disk.logs[epoch], None
        if kind == APPEND:
            log += entries
        elif kind == COPY:
            log += entries[len(log) :]
        if kind != FENCE:
            report = rules.stored(epoch, TOPIC, len(log))
            left = left._replace(logs=put(left.logs, epoch, log))
        if kind != APPEND:
            rules.promised(epoch + 1)
        if report is not None:
            process = who if kind == APPEND else owner
            most = max(left.reported[process], report)
            left = left._replace(reported=put(left.reported, process, most))
        answer = log[: rules.counts(epoch).get(TOPIC, 0)]
        return left._replace(promise=rules.durable_promise), answer, rules.newest

    def _answered(self, s: State, r: int, t: int, synced: Any, what: tuple[Any, ...]) -> Next:
        after, answer, newest = synced
        yield (*what, "unheard"), with_disk(s, r, after)
        phase = s.takers[t].phase
        if phase == FENCING:
            heard = with_disk(s, r, after._replace(told=put(after.told, t, answer)))
            if self.is_late(s, t, r, answer, newest):
                heard = self.ended(heard, t, BEATEN)
            yield (*what, "heard"), heard
        elif phase == COPYING and len(answer) >= len(s.takers[t].tail):
            yield (*what, "heard"), with_disk(s, r, after._replace(told=put(after.told, t, True)))


class ReportsBeforeSync(LateSyncs):
    """What is taken is reported at once."""

    is_faulty = True

    def taken(self, disk: Disk, rules: ReplicaRules, write: tuple[Any, ...]) -> Disk:
        _, p, epoch, ((_, index),) = write
        told = max(disk.reported[p], index + 1) if rules.may_report(epoch) else disk.reported[p]
        return disk._replace(reported=put(disk.reported, p, told), writing=(*disk.writing, write))


class AnswersWhatIsOnItsWay(LateSyncs):
    """The answer to a fence has entries that are not durable yet."""

    is_faulty = True

    class replica_rules(ReplicaRules):  # noqa: N801
        def counts(self, epoch: int) -> dict[str, int]:
            return {TOPIC: self.taken(epoch, TOPIC)}

    def _sync(self, disk: Disk, at: int, owner: int) -> tuple[Disk, Log, int]:
        after, _, newest = super()._sync(disk, at, owner)
        epoch = disk.writing[at][2]
        on_its_way = [
            entry
            for kind, _, each, entries in after.writing
            if kind == APPEND and each == epoch
            for entry in entries
        ]
        return after, after.logs[epoch] + tuple(on_its_way), newest


class ReportsAfterPromise(LateSyncs):
    """What was on its way when the promise was given is reported after it."""

    is_faulty = True

    class replica_rules(ReplicaRules):  # noqa: N801
        def may_report(self, epoch: int) -> bool:
            return True
