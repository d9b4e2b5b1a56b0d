"""Backups of a node that works: what they cost it, how fast they are, what memory they take."""

import asyncio
import contextlib
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import count
from pathlib import Path

from bench.backlog import fill, tasks_per_second
from bench.harness import Figure, Run, benchmark, fixed, remove
from bench.ours.node import OurNode
from holdfast.client.remote import RemoteApi

WAITING = 200_000  # tasks of about 350 bytes of log and 50 of state each
MEASURED = 40_000
MEMORY_BYTES = 64e6  # some pieces of 4 MiB, a manifest, and what threads need
_numbers = count(1)


@benchmark("backup")
def backup(run: Run) -> Iterator[Figure]:
    folder = run.folder("backup")
    waiting = run.scaled(WAITING)
    with ExitStack() as stack:
        stack.callback(remove, folder)
        loop = stack.enter_context(asyncio.Runner())
        node = stack.enter_context(OurNode(folder / "node"))
        loop.run(fill(node.url, waiting))
        before_bytes = node.memory_bytes()

        def target() -> Path:
            return folder / f"target-{next(_numbers)}"

        yield Figure(
            name="throughput during full backups",
            against="without",
            goal=">= 0.6",
            unit="tasks/s",
            ours=lambda: loop.run(under_backup(node.url, run.scaled(MEASURED), folder)),
            peer=lambda: loop.run(tasks_per_second(node.url, run.scaled(MEASURED))),
        )
        yield Figure(
            name="a full backup of an idle node",
            against="a synced copy of the folder",
            goal=">= 0.1",
            unit="MB/s",
            ours=lambda: loop.run(full_rate(node.url, target())),
            peer=lambda: copy_rate(folder / "node", target()),
        )
        yield Figure(
            name="memory that backups add",
            against="64 MB",
            goal="<= 1",
            unit="MB",
            ours=lambda: max(node.memory_bytes() - before_bytes, 0) / 1e6,
            peer=fixed(MEMORY_BYTES / 1e6),
        )


async def made(api: RemoteApi, target: Path) -> int:
    """A backup to its end; how many bytes it has."""
    found = await api.node.back_up(str(target))
    while found.state == "RUNNING":
        await asyncio.sleep(0.02)
        found = await api.node.backup()
    assert found.state == "DONE", found.error
    return found.total_bytes


async def under_backup(url: str, tasks: int, folder: Path) -> float:
    """The rate of tasks while one full backup after the other is made."""
    api = RemoteApi(url)

    async def back_up() -> None:
        while True:
            target = folder / f"target-{next(_numbers)}"
            await made(api, target)
            await asyncio.to_thread(shutil.rmtree, target)

    backing_up = asyncio.create_task(back_up())
    try:
        return await tasks_per_second(url, tasks)
    finally:
        backing_up.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await backing_up
        while (await api.node.backup()).state == "RUNNING":  # noqa: ASYNC110
            await asyncio.sleep(0.02)
        await api.close()


async def full_rate(url: str, target: Path) -> float:
    api = RemoteApi(url)
    begun = time.perf_counter()
    size_bytes = await made(api, target)
    rate = size_bytes / 1e6 / (time.perf_counter() - begun)
    await api.close()
    await asyncio.to_thread(shutil.rmtree, target)
    return rate


def copy_rate(source: Path, target: Path) -> float:
    """Copies what is in a folder, and syncs each file."""
    size_bytes = 0
    begun = time.perf_counter()
    target.mkdir()
    for number, path in enumerate(each for each in source.rglob("*.s*") if each.is_file()):
        with contextlib.suppress(FileNotFoundError):  # it was compacted
            size_bytes += _copy(path, target / str(number))
    rate = size_bytes / 1e6 / (time.perf_counter() - begun)
    shutil.rmtree(target)
    return rate


def _copy(source: Path, target: Path) -> int:
    with source.open("rb") as read, target.open("wb") as write:
        shutil.copyfileobj(read, write, 4 << 20)
        write.flush()
        os.fsync(write.fileno())
        return write.tell()
