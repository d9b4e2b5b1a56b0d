"""Looks after the closed ranges of the partitions that are owned here.

Their replica sets follow that of the open range once all its disks have them, so that a member
which left is named by no range any more. The oldest leave the chain when snapshots stand for them.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence

from holdfast.errors import HoldfastError
from holdfast.journal.cluster.chain import pruned
from holdfast.journal.cluster.settling import Settling
from holdfast.limits import CLUSTER_TEND_MS
from holdfast.logs import log
from holdfast.sequence.api import Chain


class Tending:
    """Other members and etcd are asked only where something is to be done, as seen from here."""

    def __init__(
        self,
        settling: Settling,
        chain: Callable[[int], Chain],
        owned: Callable[[], Sequence[int]],
        needed: Callable[[int], Mapping[str, int]],
    ) -> None:
        """`needed`: by topic, the first offset that this disk has no snapshot for."""
        self._settling = settling
        self._chain = chain
        self._owned = owned
        self._needed = needed

    async def run(self) -> None:
        """Tends from time to time, until it is cancelled."""
        while True:
            await asyncio.sleep(CLUSTER_TEND_MS / 1_000)
            await self.tend()

    async def tend(self) -> None:
        """Does what is to be done now; what fails is tried the next time."""
        for partition in self._owned():
            try:
                if are_sets_behind(self._chain(partition)):
                    await self._settling.resettle(partition)
                chain = self._chain(partition)
                if pruned(chain, self._needed(partition)) is not chain:
                    await self._settling.prune(partition)
            except HoldfastError as error:
                log.info("closed ranges not tended", partition=partition, why=error.message)


def are_sets_behind(chain: Chain) -> bool:
    """Whether a closed range is on other disks than the open one."""
    wanted = set(chain.last.replicas) if chain.last is not None else set()
    return any(set(each.replicas) != wanted for each in chain.ranges[:-1])
