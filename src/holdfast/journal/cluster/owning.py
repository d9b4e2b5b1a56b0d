"""Ranges that this member takes, begins and hands over. `taking` does what other disks see."""

import asyncio
from collections.abc import Callable

from holdfast.journal.api import Append, Refused, Taken
from holdfast.journal.cluster.opened import OPENED_TOPIC, encode_opened
from holdfast.journal.cluster.positions import Positions
from holdfast.journal.cluster.reading import ClusterReading
from holdfast.journal.cluster.sending import OwnerSending
from holdfast.journal.cluster.taking import NotTaken, Taking
from holdfast.journal.cluster.topics import ClusterTopics
from holdfast.sequence.api import Chain, LiveMember, Replica


class Owning:
    """What this start of this member owns."""

    def __init__(
        self,
        replica: Replica,
        taking: Taking,
        sending: OwnerSending,
        reading: ClusterReading,
        positions: Positions,
        topics: ClusterTopics,
        choose_set: Callable[[int], tuple[Replica, ...]],
    ) -> None:
        self.member = replica.member
        self._taking = taking
        self._sending = sending
        self._reading = reading
        self._positions = positions
        self._topics = topics
        self._choose_set = choose_set
        self._used: dict[int, int] = {}  # by partition, the last epoch that was taken here
        self._locks: dict[int, asyncio.Lock] = {}

    async def take_over(self, partition: int, *, is_drain: bool = False) -> Taken | Refused:
        """Opens the next range of a partition for this start of this member, and begins it.

        One at a time: a range that was opened once is begun once, or two would number its entries.
        """
        async with self._locks.setdefault(partition, asyncio.Lock()):
            return await self._take_over(partition, is_drain)

    async def _take_over(self, partition: int, is_drain: bool) -> Taken | Refused:
        owned = self._sending.owned.get(partition)
        if owned is not None and owned.fenced_by and not is_drain:
            outcome = await self._taking.heal(partition, owned.epoch, owned.fenced_by)
            self._sending.end(partition)
        else:
            self._sending.end(partition)
            used = self._used.get(partition, 0)
            outcome = await self._taking.take_over(partition, used=used, is_drain=is_drain)
        if isinstance(outcome, NotTaken):
            return self._refused(partition, outcome)
        assert outcome.last is not None
        assert outcome.epoch > self._used.get(partition, 0), "a range is begun once"
        self._used[partition] = outcome.epoch
        owned = self._sending.begin(partition, outcome.last, self._last_ms(partition))
        if OPENED_TOPIC in self._topics.known:
            opened = encode_opened(outcome.epoch, self.member)
            (answer,) = self._sending.append([Append(OPENED_TOPIC, partition, [opened])])
            if isinstance(answer, asyncio.Future):
                answer.add_done_callback(lambda done: done.cancelled() or done.exception())
        return Taken(outcome.epoch, owned.next(OPENED_TOPIC))

    async def hand_over(self, partition: int, to: LiveMember) -> Chain | Refused:
        """Closes the range of this member and opens the next one for another, which is live."""
        async with self._locks.setdefault(partition, asyncio.Lock()):
            owned = self._sending.owned.get(partition)
            if owned is None:
                return self._refused(partition, NotTaken(None, "this member does not own it"))
            replicas = self._choose_set(partition)
            outcome = await self._taking.hand_over(partition, owned.rules, to, replicas)
            if isinstance(outcome, NotTaken):
                return self._refused(partition, outcome)
            self._sending.end(partition)
            return outcome

    def _refused(self, partition: int, outcome: NotTaken) -> Refused:
        chain = outcome.chain or self._positions.chain(partition)
        following = self._positions.mark(OPENED_TOPIC, partition)
        return Refused(partition, chain.epoch, following, outcome.reason)

    def _last_ms(self, partition: int) -> int:
        """Time never goes back in a partition, also when its owner and thus the clock changes."""
        return max(
            (
                self._reading.last_ms(topic, partition)
                for topic, settings in self._topics.known.items()
                if partition <= settings.partitions
            ),
            default=0,
        )
