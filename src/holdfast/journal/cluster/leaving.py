"""Giving up the log of a partition that this disk is no replica of any more.

Ranges are closed, copied to the disks of the next ones, and only then named after those in the
chain. A disk that no range of the chain names is needed by nobody: whatever is acknowledged is on a
quorum of the open range, and all of its disks hold the closed ones. The order of the steps matters:

    from now on   surveys are told that the disk has nothing: no range is given to it for what it
                  is about to lose
    chain         is read; it names this disk nowhere, and the disk has not seen more than the chain
    promise       of the next epoch, durable: if the chain is ever put back to one that names this
                  disk, the disk answers with what proves it, not with an empty log
    state         its rows are removed
    log           its runs are noted to be gone, durable; then the space is freed

A crash between any two of them leaves a disk that is behind, like one that was away for a while.
"""

from collections.abc import Awaitable, Callable

from holdfast.journal.cluster.disk import ClusterDisk
from holdfast.journal.cluster.receiving import Receiving
from holdfast.sequence.api import Chain, Replica


class Leaving:
    """Gives up partitions on one disk."""

    def __init__(
        self,
        receiving: Receiving,
        disk: ClusterDisk,
        learn: Callable[[int], Awaitable[Chain]],
    ) -> None:
        self._receiving = receiving
        self._disk = disk
        self._learn = learn  # a linearizable read

    def has_entries(self, partition: int) -> bool:
        """Whether the log of this disk has anything of a partition."""
        return bool(self._disk.counts(partition))

    async def leave(self, partition: int, remove_rows: Callable[[], Awaitable[None]]) -> bool:
        """Removes rows and entries of a partition; False if this disk is needed after all."""
        leaving = self._receiving.leaving
        if partition in leaving:
            return False
        leaving.add(partition)
        try:
            return await self._leave(partition, remove_rows)
        finally:
            leaving.discard(partition)

    async def _leave(self, partition: int, remove_rows: Callable[[], Awaitable[None]]) -> bool:
        chain = await self._learn(partition)
        if is_named(chain, self._receiving.replica):
            return False
        rules = self._receiving.rules(partition)
        promise = rules.leave(chain.epoch)
        if promise is None:
            return False
        await self._disk.raise_promise(partition, promise.opens)
        rules.promised(promise.opens)
        await remove_rows()
        await self._disk.landed()
        if not rules.left(chain.epoch):  # a newer range is here already, and begins with this disk
            return False
        await self._disk.drop(partition)
        return True


def is_named(chain: Chain, replica: Replica) -> bool:
    """Whether a disk may be asked for a range; so it is while nobody knows of any."""
    last = chain.last
    return (
        last is None
        or last.owner == replica.member
        or any(replica in each.replicas for each in chain.ranges)
    )
