"""What a node does for its files beside its work: snapshots, scrubbing, and rebuilding the state.

Everything long is a generator of small pieces. They run in a thread, one at a time and with a pause
between them, so that live commands do not wait for them.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any, TypeVar

from holdfast.blobs import Blobs
from holdfast.clock import Clock
from holdfast.config import Config
from holdfast.content.publisher.retention import ContentNeeds
from holdfast.engine.kernel.processor import Processor
from holdfast.engine.kernel.recovery import TOPIC, recover, write_state
from holdfast.engine.kernel.runner import Runner
from holdfast.errors import DataLoss, HoldfastError, Unavailable
from holdfast.gateway.node.shapes import Health
from holdfast.journal import DiskJournal, Journal
from holdfast.limits import (
    RETENTION_INTERVAL_MS,
    SCRUB_INTERVAL_MS,
    SCRUB_PAUSE_MS,
    SETTLE_BRIEFLY_MS,
    SNAPSHOT_NEWER_MIN,
    SNAPSHOT_SHARE_MAX,
    SNAPSHOTS_KEPT,
)
from holdfast.live_store import open_live
from holdfast.log_scrub import LogScrub
from holdfast.logs import log
from holdfast.metrics import StorageMetrics
from holdfast.pieces import attempted, finished, in_thread
from holdfast.retained import Retained
from holdfast.state.copies import Positions, pieces_of
from holdfast.state.moving import (
    check_export,
    export_partition,
    import_partition,
    remove_partition,
)
from holdfast.state.portable import Header
from holdfast.state.rocks import RocksStore
from holdfast.state.snapshots import Snapshots
from holdfast.uploads import Uploads

T = TypeVar("T")

Processors = dict[int, Processor[Any]]


class Upkeep:
    """Looks after the files of a node that runs."""

    def __init__(
        self,
        snapshots: Snapshots,
        runner: Runner[Any],
        journal: Journal,
        disk: DiskJournal | None,
        config: Config,
        clock: Clock,
        metrics: StorageMetrics,
        open_processor: Callable[[RocksStore, int], Processor[Any]],
        readers: Callable[[str], list[Positions]],
        uploads: Uploads,
        content_needs: Callable[[], Coroutine[Any, Any, ContentNeeds]],
    ) -> None:
        self._snapshots = snapshots
        self._runner = runner
        self._journal = journal
        self._config = config
        self._clock = clock
        self.metrics = metrics
        self._open_processor = open_processor
        self._uploads = uploads
        uploads.owned = runner.epochs
        self._retained = Retained(journal, config, snapshots, uploads, readers, content_needs)
        self.held = self._retained.held
        self._positions: Positions = {}  # of the last snapshot
        self._files = asyncio.Lock()  # its holder may use the store beside the runner
        self._loop = asyncio.get_running_loop()
        self._rebuilding = ""  # why, while it is
        self._is_read = False  # the whole state was read since it was opened
        self._log_scrub = LogScrub(disk, metrics)
        self.damage = self._log_scrub.damage
        self._tasks: set[asyncio.Task[None]] = set()
        self._scrub_now = asyncio.Event()
        self.scrubbed = asyncio.Event()  # everything at rest was read once since the start

    def start(self, store: RocksStore) -> None:
        """Begins; from now on a store that finds itself damaged is rebuilt."""
        self._watch(store)
        self._begin(self._snapshot_regularly())
        self._begin(self._scrub_regularly())
        self._begin(self._retain_regularly())

    async def scrub(self) -> None:
        """Reads everything at rest now, and not in its time; returns when that is done."""
        self.scrubbed.clear()
        self._scrub_now.set()
        await self.scrubbed.wait()

    async def stop(self) -> RocksStore:
        """Ends what is under way; the store to be closed."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        return self._store

    def health(self) -> Health:
        """What is known to be wrong."""
        if self._runner.failure is not None:
            return Health("DOWN", [str(self._runner.failure)])
        if self._rebuilding:
            return Health("REBUILDING", [self._rebuilding])
        stopped = self._runner.stopped
        damage = [*stopped.values(), *self._log_scrub.damage()]
        if stopped:
            return Health("DEGRADED", damage)
        if not self._is_read:  # a row that nobody has asked for may be damaged
            return Health("CHECKING", damage)
        return Health("DEGRADED", damage) if damage else Health("UP")

    def _begin(self, work: Any) -> None:
        task: asyncio.Task[None] = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # --- snapshots and the end of the log -----------------------------------------------------

    async def _snapshot_regularly(self) -> None:
        pause_seconds = interval_seconds = self._config.snapshot_interval_ms / 1000
        while True:
            await asyncio.sleep(pause_seconds)
            began = self._clock.monotonic()
            await attempted("snapshot", self.take_snapshot())
            spent_seconds = self._clock.monotonic() - began
            pause_seconds = max(interval_seconds, SNAPSHOT_SHARE_MAX * spent_seconds)

    async def take_snapshot(self, *, again: bool = False) -> None:
        """Takes a snapshot, if there is anything new, and cuts the log behind the one before."""
        if not await self._take(again=again) and not self._uploads.is_behind():
            return
        await self._uploads.run()
        # Where a snapshot is taken again, something is damaged: what is not needed goes.
        cut = self._retained.cut(self._positions, for_ended=not again)
        log.info("snapshot taken", number=self._snapshots.numbers()[-1], cut=cut)

    async def _retain_regularly(self) -> None:
        while True:
            await asyncio.sleep(RETENTION_INTERVAL_MS / 1000)
            await attempted("retention", self.enforce_retention())

    async def enforce_retention(self) -> None:
        """Drops what the retention of topics no longer keeps and no reader needs."""
        await self._retained.enforce()

    async def _take(self, *, again: bool) -> bool:
        """Whether there was anything new to take a snapshot of."""
        await self._runner.standbys.catch_up()
        async with self._files:
            await self._write_state()
            positions = self._runner.stored_offsets()
            if positions == self._positions and not again:
                return False
            try:
                await finished(self._snapshots.take(self._store, positions))
            except (HoldfastError, OSError) as error:
                self.metrics.snapshots_failed += 1
                log.error("snapshot not taken", error=str(error))
                raise
        self._positions = positions
        self.metrics.snapshots_taken += 1
        return True

    async def _write_state(self) -> None:
        """Hands to the store what is acknowledged. A step without a quorum is not waited for."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(SETTLE_BRIEFLY_MS / 1000):
                await self._runner.settled()
        await self._runner.behind.write_most()  # else the loop stands still while all is written
        self._runner.write_state()

    async def link_state(self, name: str) -> Path:
        """A folder with links to the files of the state as it is now; `Snapshots.drop_links` ends.

        It stands for no more than the log has when this returns.
        """
        async with self._files:
            if self._rebuilding:
                raise Unavailable(f"The state is being rebuilt: {self._rebuilding}")
            await self._write_state()
            links = self._snapshots.links(name)
            await asyncio.to_thread(self._store.checkpoint, links)
            return links

    # --- partitions that come and go ----------------------------------------------------------

    async def exported(self, partition: int) -> tuple[Header, AsyncGenerator[bytes, None]]:
        """A partition as it is now: what it stands for, and its stream, while commands go on."""
        header, stream = await self._exported(partition)
        return header, self._slowly(stream)

    async def _exported(self, partition: int) -> tuple[Header, Iterator[bytes]]:
        async with self._files:
            await self._write_state()
            return export_partition(self._store, partition)

    async def export(self, partition: int, blobs: Blobs, name: str) -> None:
        """Stores a partition as it is now as a blob, while commands go on."""
        _, stream = await self._exported(partition)

        def store() -> Iterator[None]:
            with blobs.upload(name) as upload:
                for piece in stream:
                    upload.write(piece)
                    yield

        async with contextlib.aclosing(self._slowly(store())) as pieces:
            async for _ in pieces:
                pass

    async def take_in(
        self, partition: int, file: Path, begin: Callable[[], Awaitable[None]]
    ) -> None:
        """Puts an export in the place of what is known of a partition that is not open here.

        `begin` is called when the store has it, and before its log is followed from there.
        """
        with file.open("rb") as stream:  # before anything is given up for it
            await finished(check_export(pieces_of(stream), str(file), partition))
        with self._runner.standbys.arriving(partition):
            async with self._files:
                if self._rebuilding:
                    raise Unavailable(f"The state is being rebuilt: {self._rebuilding}")
                remove_partition(self._store, partition)
                with file.open("rb") as stream:
                    taking = import_partition(self._store, pieces_of(stream), str(file), partition)
                    imported = await finished(taking)
            await begin()
        log.info("partition taken in", partition=partition, rows=imported.rows)

    async def remove_rows(self, partition: int) -> None:
        """Removes the state of a partition that is neither open nor a standby here.

        Another member that is being sent it gets all of it nevertheless.
        """
        with self._runner.standbys.arriving(partition):
            async with self._files:
                if self._rebuilding:
                    raise Unavailable(f"The state is being rebuilt: {self._rebuilding}")
                await asyncio.to_thread(remove_partition, self._store, partition)

    async def restore(self, partition: int) -> None:
        """Has a partition that is not open here begin with a stored snapshot, where it must."""
        async with self._files:
            if self._rebuilding:
                raise Unavailable(f"The state is being rebuilt: {self._rebuilding}")
            bounds = self._journal.bounds(TOPIC, partition)
            restoring = self._uploads.restore_newer(
                self._store, partition, bounds, SNAPSHOT_NEWER_MIN
            )
            for done in await finished(restoring):
                log.info("state restored", partition=partition, what=done)

    # --- reading what is at rest --------------------------------------------------------------

    async def _scrub_regularly(self) -> None:
        while True:
            self._scrub_now.clear()
            if await attempted("scrub", self._scrub()):
                self.scrubbed.set()
                self.metrics.scrubs += 1
            with contextlib.suppress(TimeoutError):
                # Not wait_for: in Python 3.11 it may swallow a cancellation.
                async with asyncio.timeout(SCRUB_INTERVAL_MS / 1000):
                    await self._scrub_now.wait()

    async def _scrub(self) -> None:
        store = self._store
        with contextlib.suppress(DataLoss):  # the store has told
            async for _ in self._slowly(self._snapshots.scrub_live(store)):
                pass
            self._is_read = self._is_read or store is self._store
        is_short = False
        async for text in self._slowly(self._snapshots.scrub()):
            if text is not None:
                is_short = True
                self._note("snapshot", text)
        if await self._scrub_log():
            # The state has what a damaged segment says. When all snapshots have it, too, the log is
            # cut behind them, and the segment goes.
            for _ in range(SNAPSHOTS_KEPT):
                await self.take_snapshot(again=True)
            await self._scrub_log()  # what is found again stays damaged until there is more to cut
        elif is_short:
            await self.take_snapshot(again=True)

    def _scrub_log(self) -> Coroutine[Any, Any, bool]:
        return self._log_scrub.run(self._slowly, self._note)

    def _note(self, what: str, text: str) -> None:
        log.error("damage found", what=what, text=text)
        self.metrics.damage_found(what)

    # --- a damaged state ----------------------------------------------------------------------

    def _watch(self, store: RocksStore) -> None:
        self._store = store
        self._is_read = False
        store.on_damage = self._on_damage
        if store.damage is not None:
            self._damaged(store.damage)

    def _on_damage(self, error: DataLoss) -> None:
        if asyncio._get_running_loop() is self._loop:  # whichever thread runs it
            self._damaged(error)  # at once: the caller that met it finds the runner halted
        else:
            self._loop.call_soon_threadsafe(self._damaged, error)

    def _damaged(self, error: DataLoss) -> None:
        if self._rebuilding or self._runner.failure is not None:
            return
        self._rebuilding = error.message
        self._note("state", error.message)
        self._runner.halt(error.message)
        self._begin(self._rebuild(error))

    async def _rebuild(self, damage: DataLoss) -> None:
        """Puts a good snapshot and the log in the place of a damaged state, and goes on."""
        began = self._clock.monotonic()
        try:
            await self._runner.halted()
            async with self._files:
                done = await self._restore_beside()
                self._store.abandon()
                done += self._snapshots.replace_live()
                store = await open_live(self._snapshots.live)
                processors, broken = self._processors(store), dict[int, Exception]()
                async for _ in recover(processors, self._journal, store, broken):
                    await asyncio.sleep(0)
                self._watch(store)
                self._rebuilding = ""
                self._runner.resume(processors, store, broken)
        except Exception as error:
            self._runner.fail(
                DataLoss(
                    f"{damage.message}; it could not be rebuilt: {error}; restore the folder from"
                    " a backup, or start the node again if it was not the stored bytes",
                    path=str(self._snapshots.live),
                )
            )
            return
        self.metrics.rebuilds += 1
        seconds = round(self._clock.monotonic() - began, 3)
        log.warning("state rebuilt", done=done, seconds=seconds)
        self._scrub_now.set()
        await attempted("snapshot", self.take_snapshot(again=True))

    def _processors(self, store: RocksStore) -> Processors:
        """Those of the partitions that are open. Standbys begin by themselves, over any store."""
        return {each: self._open_processor(store, each) for each in self._runner.processors}

    async def _restore_beside(self) -> list[str]:
        """A copy of the newest good snapshot, brought to the end of the log; what was done."""
        done = await finished(self._snapshots.restore())
        store = RocksStore(self._snapshots.restored)
        logs = {each: self._journal.bounds(TOPIC, each) for each in self._runner.processors}
        try:
            done += await finished(self._uploads.restore_missing(store, logs))
            processors, broken = self._processors(store), dict[int, Exception]()
            async for _ in recover(processors, self._journal, store, broken):
                await asyncio.sleep(0)
            write_state([each for n, each in processors.items() if n not in broken], store)
        except BaseException:
            store.abandon()
            raise
        store.close()
        return done

    # --- pieces -------------------------------------------------------------------------------

    async def _slowly(self, pieces: Iterator[T]) -> AsyncGenerator[T, None]:
        """Pieces that use the store or its files, with pauses."""
        async with contextlib.aclosing(in_thread(pieces)) as found:
            while True:
                async with self._files:
                    if self._rebuilding:
                        raise Unavailable(f"The state is being rebuilt: {self._rebuilding}")
                    try:
                        piece = await anext(found)
                    except StopAsyncIteration:
                        return
                yield piece
                await asyncio.sleep(SCRUB_PAUSE_MS / 1000)
