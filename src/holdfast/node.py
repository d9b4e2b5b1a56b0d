"""Puts one node together from a Config; the only place that knows every room.

<folder>/journal   the log
<folder>/state     the store and its snapshots
<folder>/content   large files of content distribution, unless they are stored elsewhere
<folder>/tables    what `holdfast pipeline run` makes of the log, if it does
<folder>/readers   how far readers in other processes are, one JSON file each; those of another
                   topic than the records' in a folder of its name
<folder>/running   there while a node runs: see `starts.py`
"""

import asyncio
import gc
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from holdfast import timekeeping
from holdfast.backup_life import BackupLife
from holdfast.blobs import Blobs
from holdfast.blobs.memory import MemoryBlobs
from holdfast.clock import Clock, SystemClock
from holdfast.config import Config
from holdfast.content.publisher import ContentService
from holdfast.content.publisher.retention import ContentNeeds
from holdfast.content_life import ContentLife
from holdfast.engine.batch.selector import Selector
from holdfast.engine.kernel import Processor
from holdfast.engine.kernel.runner import TOPIC, Runner
from holdfast.engine.partition import open_partition
from holdfast.engine.state import EngineState
from holdfast.errors import DataLoss, HoldfastError, Unavailable
from holdfast.folders import (
    check_division,
    content_blobs,
    create_records,
    disk_numbers,
    make_private,
    stored_snapshots,
)
from holdfast.gateway.as_of import AsOf
from holdfast.gateway.batch.tables import BatchTables, OpenTables
from holdfast.gateway.content.blobs import ContentBlobs
from holdfast.gateway.content.home import ContentHome
from holdfast.gateway.content.near import NearContent
from holdfast.gateway.far import answer_call, far
from holdfast.gateway.groups.home import PREFIX, GroupsPort
from holdfast.gateway.node.shapes import Health
from holdfast.gateway.rest.pinned import PinnableClock
from holdfast.gateway.service import Gateway
from holdfast.groups_life import GroupsLife
from holdfast.journal import Bounds, DiskJournal, Journal
from holdfast.journal.local import LocalJournal
from holdfast.logs import configure_embedded, log
from holdfast.metrics import Metrics, PipelineLag
from holdfast.partitions import Partitions
from holdfast.pieces import finished
from holdfast.pipeline.lag import lag_of
from holdfast.pipeline.search.serving import FolderTables
from holdfast.pipeline.tables.progress import load_progress
from holdfast.places import OpenElsewhere, OpenJournal, Place
from holdfast.runtime import Runtime
from holdfast.starts import Starts
from holdfast.state import Store
from holdfast.state.copies import Positions
from holdfast.state.moving import has_rows, remove_partition
from holdfast.state.rocks import RocksStore
from holdfast.state.snapshots import Snapshots
from holdfast.steady_clock import SteadyClock
from holdfast.upgrades import make_current
from holdfast.upkeep import Processors, Upkeep
from holdfast.uploads import Uploads

# The engine makes many short-lived objects without cycles: collecting rarely saves a tenth of the
# time.
_GC_THRESHOLD = (50_000, 20, 50)


class Node:
    """A running node: a journal, a store, partitions and the gateway to them."""

    def __init__(
        self,
        journal: Journal,
        store: Store,
        config: Config,
        clock: Clock,
        metrics: Metrics,
        selector: Selector | None = None,
        open_tables: OpenTables | None = None,
        place: Place | None = None,
        content_store: Callable[[], Blobs] = MemoryBlobs,
        content_uploads: Path | None = None,
    ) -> None:
        self._place = place
        self.journal = journal
        self.store = store
        self.config = config
        self.metrics = metrics
        self.runner: Runner[EngineState] = Runner(
            self._open_processors(store), journal, store, clock, metrics,
            config.commands_in_flight_max, self._open_processor,
        )  # fmt: skip
        self._is_pinnable = isinstance(clock, PinnableClock)
        if isinstance(clock, PinnableClock):
            clock.on_turn = self.runner.clock_turned
        self.runtime = Runtime(self.runner, journal, clock, metrics)
        partitions: Partitions = self.runtime.partitions
        if place is not None:
            partitions = self.runtime.routed = place.around(self.runtime)
        self.gateway = Gateway(partitions, config, clock, metrics, open_tables)
        self.runtime.batches.selector = selector or self.gateway.selector
        self.content = ContentService(
            journal, content_store, clock, config.content_subscriber_kept_ms
        )
        metrics.content.numbers = self.content.numbers
        self._to_home = to_home = None if place is None else place.far_content
        self.content_life = ContentLife(self.content, self.runner)
        self.runtime.partitions.on_opened.append(self.content_life.opened)
        self.runtime.on_stopped.append(self.content_life.stopped)
        self.content_home: ContentHome = NearContent(self.content)
        self.groups = GroupsLife(journal, clock, self.runner)
        self.runtime.partitions.on_opened.append(self.groups.opened)
        self.runtime.on_stopped.append(self.groups.stopped)
        metrics.groups.numbers = self.groups.home.numbers
        self._here = {"": (ContentHome, self.content_home), PREFIX: (GroupsPort, self.groups.port)}
        if to_home is not None:
            self.content_home = far(ContentHome, to_home)
            self.groups.port = far(GroupsPort, to_home, PREFIX)
        blobs = ContentBlobs(content_store, content_uploads, clock)
        near = self.content if to_home is None else None
        self.gateway.serve_content(self.content_home, blobs, near)
        self.gateway.serve_groups(self.groups.port)
        self.replayed_events = 0

    def answer_call(self, call: bytes) -> Coroutine[Any, Any, bytes]:
        """Answers another process of the node about what lives beside partition 1."""
        return answer_call(self._here, call)

    async def begin(self) -> None:
        """Brings all partitions to the end of their logs and begins to run."""
        try:
            self.replayed_events = await self.runner.recover()
            if self._is_pinnable:  # its log may be of any time
                self.runner.clock_turned()
            # From here on nothing is awaited: partitions are watched before their first step.
            self.runner.start()
            self.content_life.begin()
            self.groups.begin()
        except BaseException:
            self.runtime.stop()
            self.runner.forget_timers()
            raise

    def _open_processors(self, store: Store) -> Processors:
        """The processors of all partitions over a store."""
        count = self.journal.topics()[TOPIC]
        own = range(1, count + 1) if self._place is None else self._place.own
        return {each: self._open_processor(store, each) for each in own}

    def _open_processor(self, store: Store, partition: int) -> Processor[EngineState]:
        return open_partition(store, partition, self.journal.topics()[TOPIC])

    def has_rows(self, partition: int) -> bool:
        """Whether the store knows anything of a partition."""
        return has_rows(self.runner.standbys.store, partition)

    async def remove_rows(self, partition: int) -> None:
        """Removes the state of a partition that is neither open nor a standby here."""
        with self.runner.standbys.arriving(partition):
            remove_partition(self.runner.standbys.store, partition)

    async def close(self) -> None:
        """Finishes what was accepted and lets go of the files."""
        self.runtime.stop()
        await self.content_life.settled()
        await self.content.stop()
        await self.groups.close()
        try:
            await self.runner.close()
            self.gateway.tables.close()
            self.store.close()
        except HoldfastError as error:  # the log has it all
            log.warning("state not written; the next start replays the log", error=error.message)
        await self.journal.close()


class LocalNode(Node):
    """A node over a folder of this machine."""

    def __init__(
        self,
        folder: Path,
        journal: Journal,
        disk: DiskJournal | None,
        snapshots: Snapshots,
        uploads: Uploads,
        store: RocksStore,
        config: Config,
        clock: Clock,
        metrics: Metrics,
        place: Place | None = None,
    ) -> None:
        self._home = folder if place is None else place.home
        self._tables_root = Path(config.tables) if config.tables else self._home / "tables"
        self._tables = FolderTables(self._tables_root, self._tables_as_of)
        content = self._home / "content"
        super().__init__(
            journal, store, config, clock, metrics, open_tables=self._open_tables, place=place,
            content_store=partial(content_blobs, config, journal, content / "blobs"),
            content_uploads=content / "uploads",
        )  # fmt: skip
        self._starts, self._opened = Starts(folder), store
        self._clock, self._uploads = clock, uploads
        self.gateway.show_tables(self._tables)
        metrics.pipeline_lag = self._pipeline_lag
        metrics.storage.disk = partial(disk_numbers, folder)
        self.upkeep = Upkeep(
            snapshots, self.runner, journal, disk, config, clock, metrics.storage,
            self._open_processor, self._reader_positions, uploads, self._content_needs,
        )  # fmt: skip
        self.gateway.show_health(self.health)
        self.backups = BackupLife(
            folder, self._home, journal, self.runner, self.upkeep, clock, self._to_home, disk
        )
        self._here |= self.backups.serve(self.gateway)

    async def begin(self) -> None:
        await super().begin()
        self._starts.begin(self.runner)
        self.runtime.partitions.on_opened.append(self._starts.opened)
        self.upkeep.start(self._opened)

    @classmethod
    async def open(
        cls,
        folder: Path,
        config: Config | None = None,
        clock: Clock | None = None,
        place: Place | None = None,
        over: OpenJournal | None = None,
        elsewhere: OpenElsewhere | None = None,
    ) -> "LocalNode":
        """Opens the node in a folder, or a member of it; a new folder becomes a new node.

        With `over` its journal is one that keeps its files in the folder's own, with `elsewhere`
        one that has no files here.
        """
        config, clock, metrics = config or Config(), clock or SystemClock(), Metrics()
        configure_embedded(json=config.log_json, level=config.log_level)
        gc.set_threshold(*_GC_THRESHOLD)
        home = None if place is None else place.home
        check_division(folder, home)
        try:
            make_current(folder if home is None else home)
            make_private(folder)
            steady = SteadyClock(clock)
            local: LocalJournal | None = None
            disk: DiskJournal | None = None
            if elsewhere is not None:
                journal = await elsewhere(steady, metrics)
            else:
                journal = disk = local = LocalJournal.open(
                    folder / "journal", clock=steady, segment_bytes=config.segment_bytes,
                    observer=metrics,
                )  # fmt: skip
            try:
                check_division(folder, home)  # it may have changed until the lock was taken
                if over is not None and local is not None:
                    journal = disk = await over(local, steady)
                create_records(journal, config)
                if local is not None and over is None:  # else the log has times of other machines
                    timekeeping.go_on_from(steady, local)
                # The log keeps the time of the machine, whatever a test does with the node's.
                hands = PinnableClock(steady) if config.clock_pinning else steady
                node = await cls._over_good_state(
                    folder, journal, disk, config, hands, metrics, place
                )
                timekeeping.listen(steady, node.runner, metrics)
                return node
            except BaseException:
                await journal.close()
                raise
        except OSError as error:
            raise Unavailable(
                f"Expected to read and write the folder {folder}, but {error}", path=str(folder)
            ) from error

    @classmethod
    async def _over_good_state(
        cls,
        folder: Path,
        journal: Journal,
        disk: DiskJournal | None,
        config: Config,
        clock: Clock,
        metrics: Metrics,
        place: Place | None,
    ) -> "LocalNode":
        """A node over the live state; if that is damaged, over a good snapshot and the log."""
        snapshots = Snapshots(folder / "state")
        is_shared = disk is None
        stored = stored_snapshots(config, is_shared=is_shared)
        uploads = Uploads(snapshots, stored, metrics.storage, is_shared=is_shared)
        own = range(1, journal.topics()[TOPIC] + 1) if place is None else place.own
        logs = {each: journal.bounds(TOPIC, each) for each in own}
        store, repairs = snapshots.open_store()
        for _ in range(2):
            try:
                repairs += await finished(uploads.restore_missing(store, logs))
                node = cls(
                    folder, journal, disk, snapshots, uploads, store, config, clock, metrics, place
                )
                await node.begin()
            except BaseException as error:
                store.abandon()
                if not isinstance(error, DataLoss) or store.damage is None:
                    raise
                repairs.append(error.message)
            else:
                for repair in repairs:
                    log.warning("state repaired", what=repair)
                metrics.storage.rebuilds += bool(repairs)
                return node
            repairs += snapshots.go_back()
            store = RocksStore(snapshots.live)
        store.abandon()
        raise DataLoss(
            f"Expected state in {snapshots.live} that can be used, but {'; '.join(repairs)};"
            " restore the folder from a backup",
            path=str(snapshots.live),
        )

    async def close(self) -> None:
        await self.backups.close()
        self.store = await self.upkeep.stop()
        await super().close()
        self._starts.end()

    async def _content_needs(self) -> ContentNeeds:
        found = await self.content_life.needs(self.content_home)
        return found._replace(recovery=found.recovery | await self.groups.needs())

    async def remove_rows(self, partition: int) -> None:
        """Removes the state of a partition that is neither open nor a standby here."""
        await self.upkeep.remove_rows(partition)

    async def take_snapshot(self) -> None:
        """Takes a snapshot if something has happened since the last, and cuts the log behind it."""
        await self.upkeep.take_snapshot()

    def health(self) -> Health:
        """What is known to be wrong, and what somebody should look at."""
        warnings = [
            *self._starts.warnings(), *timekeeping.warnings(self.metrics),
            *self._uploads.warnings(), *self.content.warnings(), *self.groups.home.warnings(),
        ]  # fmt: skip
        return msgspec.structs.replace(self.upkeep.health(), warnings=warnings)

    async def _open_tables(self) -> BatchTables:
        """The tables beside the log, for batch operations. They may come while the node runs."""
        # Arrow and DuckDB take a moment to load, which live commands do not wait for.
        return await asyncio.to_thread(self._batch_tables)

    def _batch_tables(self) -> BatchTables:
        search = self._tables.opened()  # one for all that is asked of the tables
        from holdfast.pipeline.batch.tables import PipelineTables

        return PipelineTables(self._tables_root, search, self._clock, self._tables_as_of)

    def _pipeline_lag(self) -> PipelineLag | None:
        """How far the tables beside the log are behind it, if there are tables."""
        progress = load_progress(self._tables_root)
        if progress.batch < 0:
            return None
        lag = lag_of(progress, self._ends(), self._clock.now_ms())
        return PipelineLag({each.partition: each.records for each in lag.partitions}, lag.seconds)

    def _tables_as_of(self) -> AsOf | None:
        """Where the tables beside the log stand, if there are tables."""
        progress = load_progress(self._tables_root)
        if progress.batch < 0:
            return None
        lag = lag_of(progress, self._ends(), self._clock.now_ms())
        return AsOf(datetime.fromtimestamp(progress.timestamp_ms / 1_000, UTC), lag.records)

    def _ends(self) -> dict[int, Bounds]:
        return {each: self.journal.bounds(TOPIC, each) for each in self.runner.processors}

    def _reader_positions(self, topic: str) -> list[Positions]:
        """How far each reader of a topic is that left word in the readers' folder."""
        readers = self._home / "readers"
        return [
            msgspec.json.decode(path.read_bytes(), type=dict[int, int], strict=False)
            for path in (readers if topic == TOPIC else readers / topic).glob("*.json")
        ]
