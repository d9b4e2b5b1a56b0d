"""Backups of a node that runs: one moment of all its processes, copied beside their work.

In a node of one process the ends of all logs are read in one turn of the loop, so they are one
moment. In a node of several, the process that has partition 1 asks all of them to hold. When all
do, their logs are pinned, and all go on. So no process has taken anything from another one that the
other's log does not have; what was sent and not taken is sent again after a restore.
"""

import asyncio
import contextlib
import secrets
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from holdfast.backup.cut import NodeCut, source_of
from holdfast.backup.manifest import BackupManifest
from holdfast.backup.taking import BackupProgress, BackupTaking
from holdfast.backup.target import BackupTarget
from holdfast.backup_pins import BackupPins, PinPort
from holdfast.blobs import open_blobs
from holdfast.clock import Clock
from holdfast.engine.kernel.runner import TOPIC
from holdfast.errors import HoldfastError, Internal, InvalidArgument, InvalidState, Unavailable
from holdfast.folder_format import CURRENT
from holdfast.gateway.node.shapes import BackupView
from holdfast.journal.local import LocalJournal
from holdfast.limits import BACKUP_HOLD_MS_MAX, BACKUP_KEEP_MS, BACKUP_PAUSE_MS, SCRUB_PAUSE_MS
from holdfast.logs import log
from holdfast.metrics import StorageMetrics
from holdfast.pieces import in_thread
from holdfast.state.rocks import RocksStore


class NodeBackups:
    """Makes backups of a node, one at a time."""

    def __init__(
        self,
        home: Path,
        near: BackupPins,
        journal: LocalJournal,
        clock: Clock,
        metrics: StorageMetrics,
    ) -> None:
        self.others: Sequence[PinPort] = ()  # the other processes of the node
        self._home = home.absolute()
        self._near = near
        self._journal = journal
        self._clock = clock
        self._metrics = metrics
        self._view = BackupView("NONE")
        self._progress = BackupProgress()
        self._held_ms = 0.0
        self._task: asyncio.Task[None] | None = None

    async def start(self, target: str) -> BackupView:
        """Begins one, unless its target can be seen to be wrong."""
        if self._task is not None:
            raise InvalidState(
                f"Expected no backup to be under way, but one to {self._view.target} is; wait for"
                " it: GET /v2/backup",
                target=self._view.target,
            )
        self._check_target(target)
        self._task = asyncio.current_task()  # nobody else begins meanwhile
        try:
            store = BackupTarget(await asyncio.to_thread(open_blobs, target))
            await asyncio.to_thread(store.begin)
        except BaseException:
            self._task = None
            raise
        self._view, self._progress = BackupView("RUNNING", store.url), BackupProgress()
        self._held_ms = 0.0
        self._task = asyncio.get_running_loop().create_task(self._make(store), name="backup")
        return self._view

    def _check_target(self, target: str) -> None:
        try:
            parts = urlsplit(target)
            is_file = parts.scheme == "file"
            if len(parts.scheme) > 1 and not is_file:
                return
            folder = Path(parts.path if is_file else target)
            is_whole, place = folder.is_absolute(), folder.resolve()
        except (ValueError, OSError) as error:  # what no file system takes
            raise InvalidArgument(f"Expected a target, but {error}", field="target") from error
        if not is_whole:
            raise InvalidArgument(
                "Expected the whole path of a folder on the node's machine, or s3://BUCKET/PREFIX,"
                f" but found {target!r}",
                field="target",
            )
        if place.is_relative_to(self._home.resolve()):
            raise InvalidArgument(
                f"Expected a target outside of the node's folder {self._home}, but found {target}",
                field="target",
            )

    async def status(self) -> BackupView:
        """How far it is."""
        found, progress = self._view, self._progress
        return BackupView(
            found.state, found.target, found.generation, found.taken_ms, progress.total_bytes,
            progress.done_bytes, progress.sent_bytes, self._held_ms, found.code, found.error,
        )  # fmt: skip

    async def close(self) -> None:
        """The node stops: what is under way is given up."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        self._near.close()

    # --- one backup ---------------------------------------------------------------------------

    async def _make(self, target: BackupTarget) -> None:
        url = target.url
        began = self._clock.monotonic()
        try:
            made = await self._made(target)
        except asyncio.CancelledError:
            self._view = BackupView("FAILED", url, code="UNAVAILABLE", error="the node stopped")
            raise
        except Exception as error:
            told = error if isinstance(error, HoldfastError | OSError) else None
            if told is None:
                log.error("backup failed", target=url, exc_info=error)
            else:
                log.error("backup failed", target=url, error=str(error))
            code = error.code if isinstance(error, HoldfastError) else Internal.code
            self._view = BackupView("FAILED", url, code=code, error=str(error))
            self._metrics.backups_failed += 1
        else:
            self._metrics.backups += 1
            self._metrics.backup_taken_ms = made.taken_ms
            self._view = BackupView("DONE", url, made.generation, made.taken_ms)
            log.info(
                "backup made", target=url, generation=made.generation, size_bytes=made.size_bytes,
                sent_bytes=made.sent_bytes, held_ms=self._held_ms,
                seconds=round(self._clock.monotonic() - began, 3),
            )  # fmt: skip
        finally:
            self._task = None

    async def _made(self, target: BackupTarget) -> BackupManifest:
        token, ports = secrets.token_hex(8), [self._near, *self.others]
        try:
            cut = await self._cut(token, ports)
            async with self._kept(token, ports):
                taking = BackupTaking(cut, target, self._progress)
                try:
                    await _slowly(taking.send(), BACKUP_PAUSE_MS)
                    if taking.new_tables:
                        await _slowly(_read_state(cut), SCRUB_PAUSE_MS)
                    await _check_kept(token, ports)
                    return await asyncio.to_thread(taking.finish)
                finally:
                    await asyncio.to_thread(taking.close)
        finally:
            releasing = [each.release(token) for each in ports]
            await asyncio.gather(*releasing, return_exceptions=True)

    async def _cut(self, token: str, ports: Sequence[PinPort]) -> NodeCut:
        """The node as of one moment."""
        await asyncio.gather(*(each.prepare(token) for each in ports))
        began = self._clock.monotonic()
        is_held = len(ports) > 1
        try:
            async with asyncio.timeout(BACKUP_HOLD_MS_MAX / 1000):
                if is_held:
                    await asyncio.gather(*(each.hold(token) for each in ports))
                taken_ms = self._clock.now_ms()
                members = await asyncio.gather(*(each.cut(token, is_held) for each in ports))
        except TimeoutError as error:
            raise Unavailable(
                "Expected all processes of the node to hold for a moment, but it took more than"
                f" {BACKUP_HOLD_MS_MAX} ms; try again"
            ) from error
        finally:
            if is_held:
                going = [each.go_on(token) for each in ports]
                await asyncio.gather(*going, return_exceptions=True)
                self._held_ms = round((self._clock.monotonic() - began) * 1000, 1)
        members = sorted(members, key=lambda each: Path(each.folder).name.zfill(9))
        partitions = self._journal.topics()[TOPIC]
        return NodeCut(
            self._home, members, partitions, taken_ms, source_of(self._home), CURRENT
        )  # fmt: skip

    @contextlib.asynccontextmanager
    async def _kept(self, token: str, ports: Sequence[PinPort]) -> AsyncIterator[None]:
        """Has all processes keep their files while the block runs."""

        async def renew() -> None:
            while True:
                await asyncio.sleep(BACKUP_KEEP_MS / 1000)
                asking = [each.keep(token) for each in ports]
                await asyncio.gather(*asking, return_exceptions=True)

        renewing = asyncio.get_running_loop().create_task(renew())
        try:
            yield
        finally:
            renewing.cancel()
            await asyncio.wait([renewing])


async def _check_kept(token: str, ports: Sequence[PinPort]) -> None:
    """Else files may have been used again while they were copied."""
    if not all(await asyncio.gather(*(each.keep(token) for each in ports))):
        raise Unavailable(
            "Expected all processes of the node to keep their files until the end of the backup,"
            " but one was started again meanwhile; try again"
        )


async def _slowly(pieces: Iterator[None], pause_ms: int) -> None:
    async with contextlib.aclosing(in_thread(pieces)) as made:
        async for _ in made:
            await asyncio.sleep(pause_ms / 1000)


def _read_state(cut: NodeCut) -> Iterator[None]:
    """Reads the state with all of RocksDB's checksums: a backup of a damaged one helps nobody."""
    for member in cut.members:
        store = RocksStore(Path(member.state), read_only=True)
        try:
            for _ in store.walk():
                yield
        finally:
            store.abandon()


class BackupsRefused:
    """A member of a cluster, whose log is not its own."""

    def __init__(self, reason: str) -> None:
        self._reason = reason

    async def start(self, target: str) -> BackupView:
        del target  # it may have credentials
        raise InvalidState(self._reason)

    async def status(self) -> BackupView:
        return BackupView("NONE")
