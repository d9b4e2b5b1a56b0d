"""The journal of a cluster: ranges in etcd, entries on a quorum of members' disks.

This is where the parts meet: `sending` has the ranges that this member owns, `receiving` its disk
as a replica, `fetching` what it lacks, `positions` what it knows of all logs, `taking` take-overs.
"""

import asyncio
import copy
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from holdfast.clock import Clock
from holdfast.errors import (
    DataLoss,
    HoldfastError,
    InvalidArgument,
    Moved,
    ResourceExhausted,
    Unavailable,
)
from holdfast.journal.api import (
    Append,
    Appended,
    Bounds,
    Needed,
    Outcome,
    Refused,
    Retention,
    Taken,
)
from holdfast.journal.checks import (
    check_append_bytes,
    check_entries,
    check_epoch,
    check_offset,
    not_newer,
)
from holdfast.journal.cluster.asking import ReplicaDisks
from holdfast.journal.cluster.confirming import Confirming
from holdfast.journal.cluster.disk import Begin, ClusterDisk
from holdfast.journal.cluster.fetching import Fetching
from holdfast.journal.cluster.leaving import Leaving
from holdfast.journal.cluster.messages import (
    Answer,
    Appending,
    Call,
    Confirm,
    Copy,
    Fence,
    Fenced,
    Fetch,
    Marks,
    Reached,
    Reporting,
    Told,
)
from holdfast.journal.cluster.owning import Owning
from holdfast.journal.cluster.ports import Peers
from holdfast.journal.cluster.positions import Positions
from holdfast.journal.cluster.reading import ClusterReading
from holdfast.journal.cluster.receiving import Receiving
from holdfast.journal.cluster.sending import OwnerSending
from holdfast.journal.cluster.taking import Taking
from holdfast.journal.cluster.topics import ClusterTopics
from holdfast.limits import LATE_APPEND_MS
from holdfast.logs import log
from holdfast.sequence.api import Chain, Coordination, LiveMember, LogKey, Replica


class ClusterJournal(ClusterReading):
    """Keeps the ports `Journal` and `PeerHandler`, in the thread of one event loop."""

    def __init__(
        self,
        member: str,
        disk: ClusterDisk,
        coordination: Coordination,
        peers: Peers,
        clock: Clock,
        choose_set: Callable[[int], tuple[Replica, ...]],
        nonce: str,
    ) -> None:
        self.member = member
        self.disk = disk
        self.folder, self.heal = disk.local.folder, disk.local.heal  # of the member's own log
        self.nonce = nonce
        self.positions = positions = Positions()
        self.on_chain = positions.on_chain
        self.is_registered: Callable[[str], bool] = lambda member: True
        self._coordination = coordination
        self._topics = ClusterTopics(disk.local, coordination)
        self._receiving = receiving = Receiving(member, disk, peers, positions)
        self._sending = OwnerSending(receiving.replica, peers, positions, clock)
        self._fetching = Fetching(receiving, disk, peers, positions, self._topics.learn)
        super().__init__(disk, positions, self._fetching, self._topics)
        self._confirming = Confirming(self._sending, receiving, peers)
        self.leaving = Leaving(receiving, disk, self.learn)
        self.taking = Taking(
            ReplicaDisks(self, peers), coordination, clock,
            nonce=nonce, choose_set=choose_set, learned=self.learned,
        )  # fmt: skip
        self._owning = Owning(
            receiving.replica, self.taking, self._sending, self, positions, self._topics, choose_set
        )
        self._tasks: set[asyncio.Task[None]] = set()
        self._learning: set[int] = set()
        self._is_over = False  # other members get no answers any more
        self.on_fenced, self.is_fenced = self._sending.on_fenced, self._sending.is_ended
        self.on_cut = self._fetching.on_cut
        self._connect_parts()

    @classmethod
    async def open(
        cls,
        member: str,
        disk: ClusterDisk,
        coordination: Coordination,
        peers: Peers,
        clock: Clock,
        *,
        choose_set: Callable[[int], tuple[Replica, ...]],
        nonce: str,
    ) -> "ClusterJournal":
        """Opens the journal with what the coordination knows; Unavailable if it is not reached."""
        journal = cls(member, disk, coordination, peers, clock, choose_set, nonce)
        await journal._topics.learn()
        for chain in (await coordination.chains()).values():
            journal.learned(chain)
        return journal

    def _connect_parts(self) -> None:
        receiving, sending = self._receiving, self._sending
        receiving.is_owning = sending.is_owning
        receiving.is_registered = lambda member: self.is_registered(member)
        receiving.on_missed = self._fetching.missed
        receiving.on_promised = sending.fenced
        receiving.on_stored = lambda reports: sending.reported(receiving.replica, reports)
        sending.store_own = lambda stretches: receiving.append(self.member, stretches)
        self.positions.on_unknown.append(self._learn_soon)
        self.on_chain += [self.disk.take_up_discards, self._follow_chain, self._fetching.learned]

    # --- topics -------------------------------------------------------------------------------

    def create_topic(self, topic: str, partitions: int, retention: Retention | None = None) -> None:
        """Makes sure that the topic exists; other members learn of it soon."""
        self._check_open()
        self._topics.create(topic, partitions, retention)

    def topics(self) -> dict[str, int]:
        """The topics with their number of partitions."""
        self._check_open()
        return {topic: settings.partitions for topic, settings in self._topics.known.items()}

    def retention(self, topic: str) -> Retention:
        """How much of a topic is kept."""
        self._topics.partitions(topic)
        return self._topics.known[topic].retention

    # --- chains -------------------------------------------------------------------------------

    def chain(self, partition: int) -> Chain:
        """The chain of a partition, as it is known."""
        return self.positions.chain(partition)

    async def learn(self, partition: int) -> Chain:
        """The chain of a partition, as it is now."""
        chain = await self._coordination.chain(partition)
        self.learned(chain)
        return chain

    def learned(self, chain: Chain) -> None:
        """Somebody has read a chain."""
        self.positions.learned(chain)
        self.taking.heard(chain)

    def _follow_chain(self, chain: Chain) -> None:
        """A range of ours that is not the last any more was closed by somebody else."""
        owned = self._sending.owned.get(chain.partition)
        if owned is not None and chain.epoch > owned.epoch:
            self._sending.fenced(chain.partition, chain.epoch)

    def _learn_soon(self, partition: int) -> None:
        """An owner told of an epoch that is newer than the chain that is known."""
        if partition not in self._learning and not self._is_closed:
            self._learning.add(partition)
            task = asyncio.get_running_loop().create_task(self._learn(partition))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _learn(self, partition: int) -> None:
        try:
            await self.learn(partition)
        except HoldfastError as error:  # the next mark tries again
            log.warning("a chain was not read", partition=partition, error=str(error))
        finally:
            self._learning.discard(partition)

    # --- taking -------------------------------------------------------------------------------

    async def take(self, topic: str, partition: int, epoch: int | None = None) -> Taken | Refused:
        """Takes a partition with all its topics, unless another member that is heard has it."""
        self._check(topic, partition)
        if epoch is not None:
            check_epoch(epoch)
        await self._topics.announced()
        chain, following = await self.learn(partition), self.positions.mark(topic, partition)
        last = chain.last
        if epoch is not None and epoch != chain.epoch + 1:
            return Refused(partition, chain.epoch, following, not_newer(epoch, chain.epoch))
        if last is not None and last.owner != self.member and self._receiving.hears(last):
            reason = f"{last.owner} has the partition, in epoch {chain.epoch}"
            return Refused(partition, chain.epoch, following, reason)
        taken = await self.take_over(partition)
        if isinstance(taken, Refused):
            return taken
        return Taken(taken.epoch, self._sending.owned[partition].next(topic))

    async def take_over(self, partition: int, *, is_drain: bool = False) -> Taken | Refused:
        """Opens the next range of a partition for this start of this member, and begins it."""
        return await self._owning.take_over(partition, is_drain=is_drain)

    async def hand_over(self, partition: int, to: LiveMember) -> Chain | Refused:
        """Closes the range of this member and opens the next one for another, which is live."""
        return await self._owning.hand_over(partition, to)

    # --- appending ----------------------------------------------------------------------------

    async def append(self, topic: str, partition: int, entries: Sequence[bytes]) -> int:
        """Appends in the epoch in which this member owns the partition."""
        (outcome,) = await self.append_many([Append(topic, partition, entries)])
        if isinstance(outcome, asyncio.Future):
            outcome = await outcome
        if isinstance(outcome, Appended):
            return outcome.first
        assert isinstance(outcome, Refused)
        raise Moved(outcome.reason, partition=partition)

    async def append_many(self, appends: Sequence[Append]) -> list[Outcome]:
        """Sends to the replicas and to the own disk; futures are done when a quorum has it."""
        if self.disk.failed is not None:
            raise copy.copy(self.disk.failed)
        for topic, partition, entries, epoch, _ in appends:
            self._check(topic, partition)
            check_append_bytes(sum(check_entries(entries)))
            if epoch is not None:
                check_epoch(epoch)
            if not _BYTES.issuperset(map(type, entries)):
                raise InvalidArgument("expected entries to be bytes, but found something else")
        return self._sending.append(appends)

    async def confirm(self, partition: int) -> bool:
        """Whether this member still owns a partition: a quorum has promised nothing newer."""
        return await self._confirming.confirm(partition)

    # --- reading ------------------------------------------------------------------------------

    def marks(self) -> Mapping[LogKey, int]:
        """How far all logs are acknowledged, as heard."""
        return self.positions.marks()

    def is_caught_up(self, partition: int) -> bool:
        """Whether this disk has everything of a partition that is acknowledged."""
        return self._fetching.is_caught_up(partition)

    def lags(self) -> dict[tuple[str, int], int]:
        """By member and partition, how many entries replicas have not reported of what was sent."""
        return {
            (replica.member, partition): sum(
                lack.end - lack.first for lack in owned.rules.lacks(replica)
            )
            for partition, owned in self._sending.owned.items()
            for replica in owned.opened.replicas
        }

    # --- giving up ----------------------------------------------------------------------------

    def discard(self, topic: str, partition: int, before: int) -> None:
        """Gives up entries on this disk; other members discard theirs."""
        earliest, following = self.bounds(topic, partition)
        check_offset(topic, partition, before, Bounds(min(before, earliest), following))
        self.disk.discard(self.chain(partition), topic, before)

    async def begin_at(self, partition: int, positions: Mapping[str, int]) -> None:
        """A snapshot stands for all below these offsets, by topic: the log goes on there."""
        begins: dict[int, dict[str, Begin]] = {}
        for topic, offset in positions.items():
            self.positions.stands(topic, partition, offset)
            found = self.positions.spans(partition, topic, offset)
            if found is None:
                continue
            opened, span = found
            number = offset - span.start
            begins.setdefault(opened.epoch, {})[topic] = Begin(number, offset)
        for epoch, topics in begins.items():
            await self.disk.begin_at(partition, epoch, topics)
            for topic, begin in topics.items():
                self._receiving.rules(partition).jump(epoch, topic, begin.number)
        self._fetching.begin_again(partition)

    def bytes_used(self, topic: str) -> int:
        """How much space the topic takes on this disk."""
        self._check(topic, 1)
        return self.disk.local.bytes_used(topic)

    def enforce_retention(
        self, now_ms: int | None = None, needed: Needed = MappingProxyType({})
    ) -> None:
        """Drops what the topics' retention no longer keeps on this disk, and is acknowledged."""
        self._check_open()
        physical: dict[str, dict[int, int]] = {}
        for topic, settings in self._topics.known.items():
            first_needed = needed.get(topic, {})
            for partition in range(1, settings.partitions + 1):
                mark = self.positions.mark(topic, partition)
                before = min(mark, first_needed.get(partition, mark))
                place = self.disk.needed(self.chain(partition), topic, before)
                physical.setdefault(topic, {})[partition] = place
        self.disk.local.enforce_retention(now_ms, physical)
        for chain in self.positions.chains().values():
            self.disk.take_up_discards(chain)

    async def close(self) -> None:
        """Waits for what has no quorum yet, for a while, and lets go of the disk."""
        if self._is_closed:
            return
        self._is_closed = True
        if waiting := self._sending.waiting():
            await asyncio.wait(waiting, timeout=LATE_APPEND_MS / 1000)
        for partition in list(self._sending.owned):
            self._sending.end(partition)
        self._is_over = True
        self._sending.close()
        self.positions.wake_all()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(
            *self._tasks, self._confirming.close(), self._fetching.close(), self._topics.close(),
            return_exceptions=True,
        )  # fmt: skip
        await self.disk.close()

    # --- what other members say ---------------------------------------------------------------

    @property
    def replica(self) -> Replica:
        """This member's disk."""
        return self._receiving.replica

    def told(self, member: str, message: Told) -> None:
        """Takes what another member tells."""
        if self._is_over:
            return
        if isinstance(message, Appending):
            self._receiving.appending(member, message)
        elif isinstance(message, Reporting):
            self._sending.reported(Replica(member, message.disk), message.reports)
        elif isinstance(message, Marks):
            for each in message.marks:
                self._heard(each)
        elif isinstance(message, Fenced):
            self._sending.fenced(message.partition, message.promise)

    def _heard(self, mark: Reached) -> None:
        self.positions.heard(mark)
        rules = self._receiving.rules(mark.partition)
        if rules.taken(mark.epoch, mark.topic) < mark.count:
            self._fetching.catch_up(mark.partition)

    async def called(self, member: str, message: Call) -> Answer:
        """Answers another member, or this one's own take-over."""
        if self._is_over:
            raise Unavailable(f"the journal of {self.member} is closed")
        try:
            if isinstance(message, Fence):
                for topic, count in (message.cut or {}).items():
                    self._heard(Reached(message.partition, message.epoch, topic, count))
                return await self._receiving.fence(member, message)
            if isinstance(message, Copy):
                return await self._receiving.copy(message)
        except (ResourceExhausted, DataLoss) as error:  # this disk promises and takes nothing now
            raise Unavailable(f"the disk of {self.member} does not write: {error}") from error
        if isinstance(message, Fetch):
            return await self._receiving.fetch(message)
        if isinstance(message, Confirm):
            return self._receiving.confirm(message)
        return self._receiving.survey(message)

    def reached(self, member: str) -> None:
        """A member is connected: it reports what it has, and hears how far we are."""
        self._sending.probe(member)
        self._sending.tell_marks([member])
        for partition in self.positions.chains():
            self._fetching.catch_up(partition)

    def lost(self, member: str) -> None:
        """A member is not connected any more: nothing to do, what it lacks it will ask for."""


_BYTES = frozenset({bytes})
