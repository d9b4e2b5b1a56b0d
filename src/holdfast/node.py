"""Puts one node together from a Config; the only place that knows every room.

<folder>/journal   the log
<folder>/state     the store and its snapshots
<folder>/tables    what `holdfast pipeline run` makes of the log, if it does
<folder>/readers   how far readers in other processes are, one JSON file each
<folder>/running   there while a node runs: see `starts.py`
"""

import asyncio
import contextlib
import gc
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from holdfast.clock import Clock, SystemClock
from holdfast.config import DEFAULT_PARTITIONS, Config
from holdfast.engine.batch.selector import Selector
from holdfast.engine.kernel.cut import cut_before
from holdfast.engine.kernel.runner import TOPIC, Runner
from holdfast.engine.partition import open_partition
from holdfast.engine.state import EngineState
from holdfast.errors import InvalidArgument
from holdfast.gateway.as_of import AsOf
from holdfast.gateway.batch_tables import BatchTables, OpenTables
from holdfast.gateway.rest.pinned import PinnableClock
from holdfast.gateway.service import Gateway
from holdfast.journal import Bounds, Journal
from holdfast.journal.local import LocalJournal
from holdfast.logs import configure_unless_done, log
from holdfast.metrics import Metrics, PipelineLag
from holdfast.pipeline.lag import lag_of
from holdfast.pipeline.search.serving import FolderTables
from holdfast.pipeline.tables.progress import load_progress
from holdfast.starts import Starts
from holdfast.state import Store
from holdfast.state.snapshots import Positions, Snapshots

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
    ) -> None:
        self.journal = journal
        self.store = store
        self.config = config
        self.metrics = metrics
        partitions = range(1, journal.topics()[TOPIC] + 1)
        processors = {
            partition: open_partition(store, partition, len(partitions)) for partition in partitions
        }
        self.runner: Runner[EngineState] = Runner(
            processors, journal, store, clock, metrics, config.commands_in_flight_max
        )
        if isinstance(clock, PinnableClock):
            clock.on_turn = self.runner.clock_turned
        self.gateway = Gateway(self.runner, journal, config, clock, metrics, open_tables)
        if selector is not None:
            self.gateway.batches.selector = selector
        self.replayed_events = self.runner.recover()
        self.runner.start()

    async def close(self) -> None:
        """Finishes what was accepted and lets go of the files."""
        self.gateway.batches.stop()
        await self.runner.close()
        self.gateway.tables.close()
        self.store.close()
        await self.journal.close()


class LocalNode(Node):
    """A node over a folder of this machine."""

    def __init__(
        self, folder: Path, journal: LocalJournal, config: Config, clock: Clock, metrics: Metrics
    ) -> None:
        self._folder = folder
        self._tables = FolderTables(folder / "tables", self._tables_as_of)
        self._snapshots = Snapshots(folder / "state")
        store, repairs = self._snapshots.open_store()
        for repair in repairs:
            log.warning("state repaired", what=repair)
        try:
            super().__init__(journal, store, config, clock, metrics, open_tables=self._open_tables)
        except BaseException:
            store.close()
            raise
        self._starts = Starts(folder)
        self._starts.begin(self.runner)
        self._snapshot_positions: Positions = {}
        self._clock = clock
        self.gateway.show_tables(self._tables)
        metrics.pipeline_lag = self._pipeline_lag
        self._snapshot_task = asyncio.get_running_loop().create_task(self._snapshot_regularly())

    @classmethod
    async def open(
        cls, folder: Path, config: Config | None = None, clock: Clock | None = None
    ) -> "LocalNode":
        """Opens the node in a folder; a new folder becomes a new node."""
        config, clock, metrics = config or Config(), clock or SystemClock(), Metrics()
        configure_unless_done(json=config.log_json, level=config.log_level)
        gc.set_threshold(*_GC_THRESHOLD)
        folder.mkdir(parents=True, exist_ok=True)  # noqa: ASYNC240 - once, before anything runs
        journal = LocalJournal.open(
            folder / "journal", clock=clock, segment_bytes=config.segment_bytes, observer=metrics
        )
        try:
            _create_topic(journal, config)
            # The log keeps the time of the machine, whatever a test does with the node's.
            hands = PinnableClock(clock) if config.clock_pinning else clock
            return cls(folder, journal, config, hands, metrics)
        except BaseException:
            await journal.close()
            raise

    async def close(self) -> None:
        self._snapshot_task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._snapshot_task
        await super().close()
        self._starts.end()

    # --- snapshots and the end of the log -----------------------------------------------------

    async def _snapshot_regularly(self) -> None:
        while True:
            await asyncio.sleep(self.config.snapshot_interval_ms / 1000)
            await self.take_snapshot()

    async def take_snapshot(self) -> None:
        """Takes a snapshot if something has happened since the last, and cuts the log behind it."""
        await self.runner.settled()
        self.runner.write_state()
        positions = {
            partition: processor.replay_from
            for partition, processor in self.runner.processors.items()
        }
        if positions == self._snapshot_positions:
            return
        # RocksDB flushes its memtable for a checkpoint: not something to wait for on the loop.
        number = await asyncio.to_thread(self._snapshots.take, self.store, positions)
        self._snapshot_positions = positions
        cut = cut_before(
            self._snapshots.kept_from(), self._reader_positions(),
            self.journal.bytes_used(TOPIC), self.config.journal_bytes_max,
        )  # fmt: skip
        for partition, position in cut.items():
            self.journal.discard(TOPIC, partition, position)
        log.info("snapshot taken", number=number, cut=cut)

    async def _open_tables(self) -> BatchTables:
        """The tables beside the log, for batch operations. They may come while the node runs."""
        # Arrow and DuckDB take a moment to load, which live commands do not wait for.
        return await asyncio.to_thread(self._batch_tables)

    def _batch_tables(self) -> BatchTables:
        search = self._tables.opened()  # one for all that is asked of the tables
        from holdfast.pipeline.batch.tables import PipelineTables

        return PipelineTables(self._folder / "tables", search, self._clock, self._tables_as_of)

    def _pipeline_lag(self) -> PipelineLag | None:
        """How far the tables beside the log are behind it, if there are tables."""
        progress = load_progress(self._folder / "tables")
        if progress.batch < 0:
            return None
        lag = lag_of(progress, self._ends(), self._clock.now_ms())
        return PipelineLag({each.partition: each.records for each in lag.partitions}, lag.seconds)

    def _tables_as_of(self) -> AsOf | None:
        """Where the tables beside the log stand, if there are tables."""
        progress = load_progress(self._folder / "tables")
        if progress.batch < 0:
            return None
        lag = lag_of(progress, self._ends(), self._clock.now_ms())
        return AsOf(datetime.fromtimestamp(progress.timestamp_ms / 1_000, UTC), lag.records)

    def _ends(self) -> dict[int, Bounds]:
        return {each: self.journal.bounds(TOPIC, each) for each in self.runner.processors}

    def _reader_positions(self) -> list[Positions]:
        """How far each reader is that left word in the readers' folder."""
        return [
            msgspec.json.decode(path.read_bytes(), type=dict[int, int], strict=False)
            for path in (self._folder / "readers").glob("*.json")
        ]


def _create_topic(journal: Journal, config: Config) -> None:
    """The number of partitions is fixed when a folder is first used."""
    existing = journal.topics().get(TOPIC)
    if existing is None:
        journal.create_topic(TOPIC, config.partitions or DEFAULT_PARTITIONS)
    elif config.partitions not in (None, existing):
        raise InvalidArgument(
            f"Expected {config.partitions} partitions, but the folder was made with {existing};"
            " the number cannot be changed"
        )
