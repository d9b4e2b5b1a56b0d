"""Snapshots in a blob store: put there beside the work, and taken from there where state is lost.

Without a store nothing happens here.
"""

import asyncio
import contextlib
from collections.abc import Collection, Generator, Iterator, Mapping

from holdfast.errors import DataLoss, HoldfastError
from holdfast.journal import Bounds
from holdfast.limits import SCRUB_PAUSE_MS
from holdfast.logs import log
from holdfast.metrics import StorageMetrics
from holdfast.pieces import in_thread
from holdfast.state import Store
from holdfast.state.copies import Positions
from holdfast.state.moving import has_rows, offset_of, remove_partition
from holdfast.state.rocks import RocksStore
from holdfast.state.snapshots import Snapshots
from holdfast.state.stored import StoredSnapshots


class Uploads:
    """Stores each snapshot of a node, partition by partition, in small pieces with pauses."""

    def __init__(
        self,
        snapshots: Snapshots,
        stored: StoredSnapshots | None,
        metrics: StorageMetrics,
        *,
        is_shared: bool = False,
    ) -> None:
        self.is_shared = is_shared  # the log and the store, with other members
        self.owned: Collection[int] = ()  # of a log that is shared: the partitions to store
        self._snapshots = snapshots
        self._stored = stored
        self._metrics = metrics
        self._done: Positions = {}  # of the snapshot that was stored last
        self._failure = ""
        self._one = asyncio.Lock()

    def is_behind(self) -> bool:
        """Whether the newest snapshot is not in the blob store yet."""
        return self._stored is not None and self._newest() != self._done

    def _newest(self) -> Positions:
        newest = self._snapshots.newest()
        return {} if newest is None else newest[1]

    def needed_from(self) -> list[Positions]:
        """What of the log the stored snapshots need, as of a reader."""
        return [] if self._stored is None else [self._stored.kept_from()]

    def warnings(self) -> list[str]:
        """What somebody should look at."""
        return [self._failure] if self._failure else []

    @property
    def is_anywhere(self) -> bool:
        """Whether there is a blob store for them."""
        return self._stored is not None

    def kept_from(self) -> Positions:
        """From where on the log is needed, if a member with an empty disk is to start from it."""
        return {} if self._stored is None else self._stored.kept_from()

    async def run(self) -> None:
        """Stores the newest snapshot. What fails is told, counted and tried again with the next."""
        if self._stored is None:
            return
        async with self._one:
            positions = self._newest()
            try:
                async with contextlib.aclosing(in_thread(self._store(self._stored))) as pieces:
                    async for _ in pieces:
                        await asyncio.sleep(SCRUB_PAUSE_MS / 1000)
            except (HoldfastError, OSError) as error:
                self._metrics.uploads_failed += 1
                self._failure = f"The newest snapshot is not in {self._stored.url}: {error}"
                log.error("snapshot not stored", store=self._stored.url, error=str(error))
                return
            self._done, self._failure = positions, ""
            self._metrics.uploads += 1
            log.info("snapshot stored", store=self._stored.url, positions=positions)

    def _store(self, stored: StoredSnapshots) -> Iterator[None]:
        newest = self._snapshots.newest()
        if newest is None:
            return
        store = RocksStore(newest[0], read_only=True)
        try:
            for partition in newest[1]:
                if has_rows(store, partition) and self._is_stored_here(partition):
                    yield from stored.take(store, partition)
        finally:
            store.abandon()

    def _is_stored_here(self, partition: int) -> bool:
        return not self.is_shared or partition in self.owned

    def restore_newer(
        self, store: Store, partition: int, bounds: Bounds, newer_min: int
    ) -> Generator[None, None, list[str]]:
        """Puts a stored snapshot in the place of rows that the log does not go on from.

        And of those that stand for an offset which is `newer_min` before the snapshot's. DataLoss
        where neither reaches the beginning of the log.
        """
        here = offset_of(store, partition)
        reaches = bounds.earliest <= (here or 0) <= bounds.next
        found = [] if self._stored is None else self._stored.found(partition)
        newest = found[-1].offset if found else 0
        if reaches and newest - (here or 0) < newer_min:
            return []
        if self._stored is not None:
            if here is not None:
                remove_partition(store, partition)
            is_there, said = yield from self._stored.restore(store, partition, *bounds)
            if is_there or bounds.earliest == 0:
                return said
        raise DataLoss(
            f"Expected state of partition {partition} for a log that begins at {bounds.earliest},"
            " but neither this member nor the snapshot store has it; set snapshot_store to the"
            " one that all members use",
            partition=partition,
        )

    def restore_missing(
        self, store: Store, logs: Mapping[int, Bounds]
    ) -> Generator[None, None, list[str]]:
        """Imports stored snapshots of partitions without state; what was done.

        A partition whose log is whole can do without one. Where there is no log at all the store is
        asked, too: it knows whether this is a new node or one that has lost its log.
        """
        if self._stored is None:
            return []
        done: list[str] = []
        is_new = not any(end for _, end in logs.values())
        for partition, (earliest, end) in logs.items():
            if has_rows(store, partition) or (end == 0 and not is_new):
                continue
            try:
                is_there, said = yield from self._stored.restore(store, partition, earliest, end)
            except DataLoss:
                raise
            except HoldfastError as error:
                if earliest > 0 or end == 0:
                    raise
                done.append(f"the log is replayed from its beginning: {error.message}")
                continue
            done += said
            if not is_there and earliest > 0:
                raise DataLoss(
                    f"Expected a snapshot of partition {partition} in {self._stored.url} for a log"
                    f" that begins at {earliest}, but"
                    f" {'; '.join(said) or 'there is none'}; restore the folder from a backup",
                    partition=partition, store=self._stored.url,
                )  # fmt: skip
        return done
