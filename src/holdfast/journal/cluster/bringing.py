"""Bringing the tail of a fenced range to a disk that lacks some of it.

Entries come from a disk that has them. Where the log of the tail is cut on all of those, because
their snapshots stand for it, the disk that lacks it has to get a snapshot first.
"""

import asyncio
import contextlib

from holdfast.errors import Unavailable, Unknown
from holdfast.journal.cluster.asking import ReplicaDisks, tries
from holdfast.journal.cluster.messages import (
    Copy,
    Fence,
    Fenced,
    Fetch,
    Fetched,
    Promised,
    Stretch,
    Survey,
    Surveyed,
    TailCopied,
)
from holdfast.journal.cluster.owner import Lack
from holdfast.journal.cluster.taker import TakeOver, TakePhase
from holdfast.limits import READ_BYTES_MAX
from holdfast.sequence.api import Replica


class TailBringing:
    """Brings tails, for one member."""

    def __init__(self, disks: ReplicaDisks) -> None:
        self._disks = disks

    async def bring(self, take: TakeOver, replica: Replica, fence: "asyncio.Task[None]") -> None:
        """Gives one disk what it lacks of the tail, once it has promised.

        Where the log of the tail is cut, the disk is told so and asked again: it gets a snapshot.
        """
        await asyncio.wait([fence])
        partition, epoch, cut = take.chain.partition, take.opens - 1, dict[str, int]()
        async for attempt in tries():
            with attempt:
                if attempt.retry_state.attempt_number > 1 and take.lacks(replica):
                    again = Fence(replica.disk, partition, epoch, take.opens, cut=cut)
                    answer = await self._disks.ask(replica, again)
                    if isinstance(answer, Promised):
                        take.promised(replica, answer.counts, answer.newest)
                for lack in take.lacks(replica):
                    try:
                        await self._bring_topic(take, replica, lack)
                    except Unavailable:
                        cut[lack.topic] = await self._cut(take, lack)
                        raise

    async def _bring_topic(self, take: TakeOver, replica: Replica, lack: Lack) -> None:
        while lack.first < lack.end and take.phase is TakePhase.COPYING:
            stretches = await self._fetch(take, lack)
            answer = await self._disks.ask(replica, Copy(replica.disk, take.opens, stretches))
            if isinstance(answer, Fenced):
                take.saw(answer.promise, 0)
                return
            assert isinstance(answer, TailCopied), answer
            take.copied(replica, answer.counts)
            has = answer.counts.get(lack.topic, 0)
            if has <= lack.first:
                raise Unavailable(f"Member {replica.member} did not take the tail")
            lack = lack._replace(first=has)

    async def _fetch(self, take: TakeOver, lack: Lack) -> list[Stretch]:
        """Entries of the tail, from a member that has them; the own disk is the nearest."""
        partition, epoch = take.chain.partition, take.opens - 1
        message = Fetch(partition, epoch, lack.topic, lack.first, lack.end, READ_BYTES_MAX)
        holders = sorted(take.holders(lack.topic), key=lambda each: each != self._disks.own)
        for holder in holders:
            with contextlib.suppress(Unavailable, Unknown):
                answer = await self._disks.ask(holder, message)
                assert isinstance(answer, Fetched), answer
                if answer.stretches:
                    return answer.stretches
        raise Unavailable(f"No disk gives entry {lack.first} of {lack.topic} in epoch {epoch}")

    async def _cut(self, take: TakeOver, lack: Lack) -> int:
        """How many entries of the range nobody has in a log any more, but in snapshots."""
        needed: list[int] = []
        for holder in take.holders(lack.topic):
            with contextlib.suppress(Unavailable, Unknown):
                answer = await self._disks.ask(holder, Survey(holder.disk, take.chain.partition))
                assert isinstance(answer, Surveyed), answer
                needed.append(answer.needed.get(lack.topic, 0))
        start = take.chain.ranges[-1].starts.get(lack.topic, 0)
        return max(min(needed, default=0) - start, 0)
