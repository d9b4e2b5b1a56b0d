"""A partition is exported and imported while live commands go on, in little memory."""

import asyncio
import gc
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

import msgspec
import pytest

from holdfast.blobs import open_blobs
from holdfast.config import Config
from holdfast.gateway.tasks.shapes import ActivationRequest, JobCompletion, NewTask
from holdfast.limits import MIB
from holdfast.node import LocalNode
from holdfast.pieces import finished
from holdfast.state.families import partition_range
from holdfast.state.moving import import_partition
from holdfast.state.rocks import RocksStore

GROWTH_BYTES_MAX = 64 * MIB
CONFIG = Config(partitions=1, snapshot_interval_ms=10**9, log_level="critical")
TEXT = Random(0).randbytes(100_000).hex().encode()


def task(kind: str, number: int) -> NewTask:
    """With arguments that no other task has: they cannot be deflated away."""
    at = number * 7_919 % (len(TEXT) - 200)
    return NewTask(kind, msgspec.Raw(b'{"order":%d,"text":"%s"}' % (number, TEXT[at : at + 200])))


def memory_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4_096


class Live:
    """One client that submits a task, takes it and completes it, again and again."""

    def __init__(self, node: LocalNode) -> None:
        self._gateway = node.gateway
        self.seconds: list[float] = []
        self.most_bytes = 0

    async def once(self) -> None:
        gateway = self._gateway
        began = time.perf_counter()
        await gateway.tasks.submit([task("live", len(self.seconds))])
        self.seconds.append(time.perf_counter() - began)
        (job,) = await gateway.jobs.activate(ActivationRequest(["live"], jobs_max=1, wait_ms=0))
        await gateway.jobs.complete([JobCompletion(job.job_key, job.lease)])
        self.most_bytes = max(self.most_bytes, memory_bytes())
        await asyncio.sleep(0.001)

    async def until(self, end: asyncio.Task[None]) -> None:
        while not end.done():
            await self.once()

    def p99_ms(self) -> float:
        return sorted(self.seconds)[int(len(self.seconds) * 0.99)] * 1_000


async def move(folder: Path, tasks: int) -> None:
    node = await LocalNode.open(folder / "one", CONFIG)
    for first in range(0, tasks, 1_000):
        await node.gateway.tasks.submit(
            [task("waiting", first + number) for number in range(1_000)]
        )
    await node.upkeep.scrub()  # what it does after a start is over
    alone = Live(node)
    for _ in range(200):
        await alone.once()
    gc.collect()
    blobs, before = open_blobs(str(folder / "blobs")), memory_bytes()

    exporting = Live(node)
    export = asyncio.create_task(node.upkeep.export(1, blobs, "one.export"))
    await exporting.until(export)
    await export

    importing, other = Live(node), RocksStore(folder / "two" / "state" / "live")

    async def take_in() -> None:
        await finished(import_partition(other, blobs.get("one.export"), "one.export", 1))

    import_ = asyncio.create_task(take_in())
    await importing.until(import_)
    await import_
    most_bytes = max(exporting.most_bytes, importing.most_bytes)
    other.close()
    await node.close()
    print(
        f"\n{tasks:,} waiting tasks, {(folder / 'blobs' / 'one.export').stat().st_size:,} bytes:"
        f" memory +{(most_bytes - before) / MIB:.0f} MiB; p99 of live commands"
        f" {alone.p99_ms():.2f} ms alone, {exporting.p99_ms():.2f} ms while exporting"
        f" ({len(exporting.seconds):,} commands), {importing.p99_ms():.2f} ms while importing"
        f" ({len(importing.seconds):,})"
    )
    assert len(exporting.seconds) > 10, "commands went on"
    assert most_bytes - before <= GROWTH_BYTES_MAX


async def check_moved(folder: Path, tasks: int) -> None:
    """What was imported, with the log behind it, is what the node had."""
    shutil.copytree(folder / "one" / "journal", folder / "two" / "journal")
    node = await LocalNode.open(folder / "two", CONFIG)
    await node.close()
    stores = [RocksStore(folder / each / "state" / "live") for each in ("one", "two")]
    count = 0
    for one, two in zip(*map(rows_of, stores), strict=True):
        assert one == two
        count += 1
    assert count > tasks
    for store in stores:
        store.close()


def rows_of(store: RocksStore) -> Iterator[tuple[bytes, bytes]]:
    return store.scan_once(*partition_range(1))


def test_a_partition_of_20_000_tasks_moves_while_commands_go_on(tmp_path: Path) -> None:
    asyncio.run(move(tmp_path, 20_000))
    asyncio.run(check_moved(tmp_path, 20_000))


@pytest.mark.soak
@pytest.mark.timeout(1_800)
def test_a_partition_of_a_million_tasks_moves_while_commands_go_on(tmp_path: Path) -> None:
    asyncio.run(move(tmp_path, 1_000_000))
    asyncio.run(check_moved(tmp_path, 1_000_000))
