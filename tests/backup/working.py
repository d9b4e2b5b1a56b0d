"""Nodes in this process, work for them, and backups of them."""

import asyncio
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from holdfast.backup.manifest import BackupManifest
from holdfast.backup.restoring import restore
from holdfast.backup.taking import BackupProgress
from holdfast.backup.target import BackupTarget
from holdfast.blobs import Blobs, open_blobs
from holdfast.config import Config
from holdfast.errors import error_of
from holdfast.gateway.node.shapes import BackupView
from holdfast.gateway.tasks.shapes import ActivationRequest, JobCompletion, NewTask
from holdfast.limits import SEGMENT_BYTES_MIN
from holdfast.node import LocalNode

# no more of the log is kept than has to be
CONFIG = Config(partitions=2, segment_bytes=SEGMENT_BYTES_MIN, ended_kept_max=0)


class Ledger:
    """What a node has acknowledged: tasks by their idempotency keys, and those that ended."""

    def __init__(self) -> None:
        self.tasks: dict[str, str] = {}
        self.ended: set[str] = set()

    def copy(self) -> "Ledger":
        made = Ledger()
        made.tasks, made.ended = dict(self.tasks), set(self.ended)
        return made


async def work(
    gateway: Any, ledger: Ledger, names: Iterable[str], payload_bytes: int = 500
) -> None:
    """Submits a task for each name, and completes some that wait."""
    for name in names:
        payload = msgspec.Raw(msgspec.json.encode("x" * payload_bytes))
        (receipt,) = await gateway.tasks.submit([NewTask("t", payload, name)])
        ledger.tasks[name] = receipt.task_key
    for job in await gateway.jobs.activate(ActivationRequest(["t"], "w", 3, 3_600_000)):
        await gateway.jobs.complete([JobCompletion(job.job_key, job.lease, msgspec.Raw(b"1"))])
        ledger.ended.add(job.job_key)


async def check(gateway: Any, ledger: Ledger) -> None:
    """Every task that was acknowledged is there once: its key names it, and it is as it was."""
    for name, key in ledger.tasks.items():
        (receipt,) = await gateway.tasks.submit([NewTask("t", msgspec.Raw(b"null"), name)])
        assert (receipt.task_key, receipt.created) == (key, False), name
        state = (await gateway.tasks.get(key)).state
        assert key not in ledger.ended or state == "COMPLETED", (name, state)


async def backed_up(gateway: Any, target: Path | str) -> BackupView:
    """A backup of a node that runs, to its end."""
    await gateway.node.back_up(str(target))
    return await ended(gateway)


async def ended(gateway: Any) -> BackupView:
    """The end of the backup that is under way."""
    async with asyncio.timeout(60):
        while (found := await gateway.node.backup()).state == "RUNNING":  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    if found.state == "FAILED":
        raise error_of(found.code, found.error)
    return found


def target_of(where: Path | Blobs) -> BackupTarget:
    return BackupTarget(open_blobs(str(where)) if isinstance(where, Path) else where)


def restored(target: Path, folder: Path, generation: int | None = None) -> BackupManifest:
    """Puts a backup into a folder."""
    store = target_of(target)
    manifest = store.generation(generation)
    for _ in restore(store, manifest, folder, BackupProgress()):
        pass
    return manifest


async def check_restored(folder: Path, ledger: Ledger) -> None:
    """A node starts on a folder, has what was acknowledged, and goes on."""
    node = await LocalNode.open(folder, CONFIG)
    try:
        assert node.metrics.storage.rebuilds == 0
        await check(node.gateway, ledger)
        await work(node.gateway, ledger, ["afterwards"])
    finally:
        await node.close()
