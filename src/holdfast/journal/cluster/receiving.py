"""The replica's side: takes what owners send, promises to takers, answers for what its disk has.

All that arrives in a turn of the loop is stored with one sync, and reported after it. The owner's
own disk is a replica like the others, and goes through the same rules.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from functools import partial

import msgspec

from holdfast.errors import Forbidden, Unavailable
from holdfast.journal.cluster.chain import range_of
from holdfast.journal.cluster.disk import ClusterDisk
from holdfast.journal.cluster.messages import (
    Answer,
    Appending,
    Confirm,
    Confirmed,
    Copy,
    Fence,
    Fenced,
    Fetch,
    Fetched,
    Gap,
    OwnerHeard,
    Promised,
    Reached,
    Reporting,
    Stretch,
    Survey,
    Surveyed,
    TailCopied,
)
from holdfast.journal.cluster.ports import Peers
from holdfast.journal.cluster.positions import Positions
from holdfast.journal.cluster.replica import (
    Again,
    Bound,
    Keep,
    Missing,
    OwnerAlive,
    ReplicaRules,
    Unregistered,
)
from holdfast.sequence.api import Range, Replica


class Receiving:
    """One disk and its rules, for all partitions."""

    def __init__(self, member: str, disk: ClusterDisk, peers: Peers, positions: Positions) -> None:
        self.replica = Replica(member, disk.id)
        self.is_registered: Callable[[str], bool] = lambda _: True
        self.is_owning: Callable[[int, int], bool] = lambda partition, epoch: False
        self.on_missed: Callable[[str, Stretch], None] = lambda member, stretch: None
        self.on_promised: Callable[[int, int], None] = lambda partition, promise: None
        self.on_stored: Callable[[list[Reached]], None] = lambda reports: None  # of own ranges
        self.leaving: set[int] = set()  # partitions whose entries may be gone in a moment
        self._member = member
        self._disk = disk
        self._peers = peers
        self._positions = positions
        self._rules: dict[int, ReplicaRules] = {
            partition: ReplicaRules(disk.promise(partition), disk.counts(partition))
            for partition in disk.partitions()
        }

    def rules(self, partition: int) -> ReplicaRules:
        """The rules of a partition on this disk."""
        rules = self._rules.get(partition)
        if rules is None:
            rules = self._rules[partition] = ReplicaRules()
        return rules

    # --- appends ------------------------------------------------------------------------------

    def appending(self, member: str, message: Appending) -> None:
        """Appends of an owner, for partitions of which this disk is a replica."""
        positions = self._positions
        for each in message.stretches:
            if each.acknowledged or not each.number:  # the first of a range tells of its epoch
                positions.reached(each.partition, each.epoch, each.topic, each.acknowledged)
        self.append(member, message.stretches)

    def append(self, member: str, stretches: Sequence[Stretch]) -> None:
        """Stores what the rules allow; reports, or tells what stands against it."""
        kept: dict[str, list[Stretch]] = {}
        again: list[Reached] = []
        gaps: list[Reached] = []
        missed: list[Stretch] = []
        accepts = self._disk.accepts
        for each in stretches:
            topic, partition, epoch = each.topic, each.partition, each.epoch
            rules = self._rules.get(partition) or self.rules(partition)
            if not accepts(topic, partition):
                gaps.append(Reached(partition, epoch, topic, rules.taken(epoch, topic)))
                missed.append(each)
                continue
            decided = rules.append(epoch, topic, each.number, len(each.entries))
            if type(decided) is Keep:
                several = kept.get(topic)
                if several is None:
                    several = kept[topic] = []
                several.append(_behind(each, decided.skip) if decided.skip else each)
            elif type(decided) is Again:
                again.append(Reached(partition, epoch, topic, decided.durable))
            elif type(decided) is Missing:
                gaps.append(Reached(partition, epoch, topic, decided.has))
                missed.append(each)
            else:
                self._bound(member, partition, decided)
        for topic, several in kept.items():
            self._disk.store(
                topic, several, lambda error, several=several: self._landed(member, several, error)
            )
        if again:
            self._report(member, again)
        if gaps and member != self._member:
            self._peers.tell([member], Gap(self.replica.disk, gaps))
        for each in missed:
            self.on_missed(member, each)

    def _bound(self, member: str, partition: int, bound: object) -> None:
        assert isinstance(bound, Bound)
        if member == self._member:
            self.on_promised(partition, bound.promise)
        else:
            self._peers.tell([member], Fenced(self.replica.disk, partition, bound.promise))

    def _landed(self, member: str, stretches: list[Stretch], error: BaseException | None) -> None:
        reports: list[Reached] = []
        for each in stretches:
            rules, topic, epoch = self._rules[each.partition], each.topic, each.epoch
            if error is not None:
                rules.lost(epoch, topic)
                continue
            count = rules.stored(epoch, topic, each.number + len(each.entries))
            if count is not None:
                reports.append(Reached(each.partition, epoch, topic, count))
        if reports:
            self._report(member, reports)
        if error is not None:
            for each in stretches:
                self.on_missed(member, each)

    def _report(self, member: str, reports: list[Reached]) -> None:
        """What is not heard is told again when the owner asks: see `OwnerSending.probe`."""
        if member == self._member:
            self.on_stored(reports)
        else:
            self._peers.tell([member], Reporting(self.replica.disk, reports))

    # --- what was fetched ---------------------------------------------------------------------

    async def fill(self, stretches: Iterable[Stretch], end: int) -> None:
        """Stores entries of a range that was closed behind so many; Unavailable if it cannot."""
        kept: list[Stretch] = []
        for each in stretches:
            rules = self.rules(each.partition)
            decided = rules.fill(each.epoch, each.topic, each.number, len(each.entries), end)
            if type(decided) is Keep:
                kept.append(_behind(each, decided.skip))
        await self._store(kept)

    async def _store(self, kept: list[Stretch]) -> None:
        """Stores what is not reported, and waits for it."""
        by_topic: dict[str, list[Stretch]] = {}
        for each in kept:
            by_topic.setdefault(each.topic, []).append(each)
        waiting: list[asyncio.Future[BaseException | None]] = []
        for topic, several in by_topic.items():
            done: asyncio.Future[BaseException | None] = asyncio.get_running_loop().create_future()
            waiting.append(done)
            self._disk.store(topic, several, partial(_tell, done))
        failed: BaseException | None = None
        for (_, several), done in zip(by_topic.items(), waiting, strict=True):
            error = await done
            failed = failed or error
            for each in several:
                rules = self.rules(each.partition)
                if error is not None:
                    rules.lost(each.epoch, each.topic)
                else:
                    rules.stored(each.epoch, each.topic, each.number + len(each.entries))
        if failed is not None:
            raise failed

    # --- calls --------------------------------------------------------------------------------

    async def fence(self, member: str, message: Fence) -> Answer:
        """Promises to take nothing of an epoch any more, and tells what the disk has of it."""
        self._check_disk(message.disk)
        partition, epoch = message.partition, message.epoch
        rules = self.rules(partition)
        decided = rules.fence(
            epoch,
            message.opens,
            hears_owner=self._hears_owner(partition, epoch, member),
            is_drain=message.is_drain,
            is_registered=self.is_registered(member),
        )
        if isinstance(decided, OwnerAlive):
            return OwnerHeard(self.replica.disk)
        if isinstance(decided, Bound):
            return Fenced(self.replica.disk, partition, decided.promise)
        if isinstance(decided, Unregistered):
            raise Forbidden(f"{member} is not a member of this cluster any more")
        self.on_promised(partition, message.opens)
        await self._disk.raise_promise(partition, message.opens)
        rules.promised(message.opens)
        return Promised(self.replica.disk, rules.counts(epoch), rules.newest)

    async def copy(self, message: Copy) -> Answer:
        """Stores what a taker brings of the range that it fenced."""
        self._check_disk(message.disk)
        kept: list[Stretch] = []
        partition = epoch = 0
        for each in message.stretches:
            partition, epoch = each.partition, each.epoch
            count = len(each.entries)
            decided = self.rules(partition).copy(
                epoch, message.opens, each.topic, each.number, count
            )
            if type(decided) is Bound:
                return Fenced(self.replica.disk, partition, decided.promise)
            if type(decided) is Keep:
                if not self._disk.accepts(each.topic, partition):
                    self.rules(partition).lost(epoch, each.topic)
                    raise Unavailable(f"this disk cannot take topic {each.topic!r} now")
                kept.append(_behind(each, decided.skip))
        rules = self.rules(partition)
        await self._disk.raise_promise(partition, message.opens)
        rules.promised(message.opens)
        await self._store(kept)
        return TailCopied(self.replica.disk, rules.counts(epoch))

    async def fetch(self, message: Fetch) -> Answer:
        """Entries of a range, as far as they are on this disk."""
        partition, epoch, topic, first, end, bytes_max = msgspec.structs.astuple(message)
        found = self._disk.stretches(topic, partition, epoch, first, end, bytes_max)
        if not found and self.rules(partition).taken(epoch, topic) > first:
            await self._disk.landed()
            found = self._disk.stretches(topic, partition, epoch, first, end, bytes_max)
        return Fetched(found)

    def confirm(self, message: Confirm) -> Answer:
        """The promises of partitions, by which an owner knows that nobody has taken over."""
        self._check_disk(message.disk)
        promises = [self.rules(partition).promise for partition, _ in message.ranges]
        return Confirmed(self.replica.disk, promises)

    def survey(self, message: Survey) -> Answer:
        """What the disk has of a partition."""
        self._check_disk(message.disk)
        rules = self.rules(message.partition)
        if message.partition in self.leaving:  # nobody may rely on what it has
            return Surveyed(self.replica.disk, rules.promise, {}, {})
        counts = {epoch: rules.counts(epoch) for epoch in rules.epochs()}
        return Surveyed(
            self.replica.disk, rules.promise, counts, self._disk.earliest_of(message.partition)
        )

    def _check_disk(self, disk: str) -> None:
        if disk != self.replica.disk:
            raise Unavailable(
                f"expected to answer for disk {disk}, but {self._member} has {self.replica.disk}"
                " now and does not know what the other one promised"
            )

    def hears(self, found: Range) -> bool:
        """Whether the owner of a range is heard.

        A member with a new disk is not it any more. Nor is a new start of one that keeps no log of
        the range: by its disk it cannot take the partition back, so others must.
        """
        owner = found.owner
        if owner not in self._peers.heard() or not self.is_registered(owner):
            return False
        disks = [each.disk for each in found.replicas if each.member == owner]
        if not disks:
            return self._peers.nonce(owner) in (found.nonce, None)
        return self._peers.disk(owner) in disks

    def _hears_owner(self, partition: int, epoch: int, taker: str) -> bool:
        found = range_of(self._positions.chain(partition), epoch)
        if found is None or found.owner == taker:
            return False
        if found.owner == self._member:
            return self.is_owning(partition, epoch)
        return self.hears(found)


def _tell(done: "asyncio.Future[BaseException | None]", error: BaseException | None) -> None:
    if not done.done():  # a canceled caller does not listen
        done.set_result(error)


def _behind(stretch: Stretch, skip: int) -> Stretch:
    """Without the first entries, which are here already."""
    if not skip:
        return stretch
    return msgspec.structs.replace(
        stretch, number=stretch.number + skip, entries=stretch.entries[skip:]
    )
