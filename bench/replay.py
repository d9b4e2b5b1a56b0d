"""How fast the state comes back from the log, and how soon a node with many tasks is back."""

import asyncio
import shutil
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import msgspec

from bench.harness import Figure, Run, benchmark, fixed, remove
from holdfast.gateway.tasks.shapes import ActivationRequest, JobCompletion, NewTask
from holdfast.node import LocalNode

REPLAYED_TASKS = 60_000
LIVE_TASKS = 1_000_000
BATCH = 5_000
EVENTS_PER_SECOND = 100_000
RESTART_SECONDS = 3.0


@benchmark("replay")
def replay(run: Run) -> Iterator[Figure]:
    folder = run.folder("replay")
    with ExitStack() as stack:
        stack.callback(remove, folder)
        loop = stack.enter_context(asyncio.Runner())
        loop.run(_run_through(folder / "log", run.scaled(REPLAYED_TASKS)))
        yield Figure(
            name="replay of the log",
            against=f"{EVENTS_PER_SECOND:,} events/s",
            goal=">= 1.3",
            unit="events/s",
            ours=lambda: loop.run(_events_per_second(folder / "log")),
            peer=fixed(EVENTS_PER_SECOND),
        )
        live = run.scaled(LIVE_TASKS)
        loop.run(_leave_waiting(folder / "live", live))
        yield Figure(
            name=f"restart with a snapshot and {live:,} live tasks",
            against=f"{RESTART_SECONDS:g} s",
            goal="<= 1",
            unit="s",
            ours=lambda: loop.run(_restart_seconds(folder / "live")),
            peer=fixed(RESTART_SECONDS),
        )


def _tasks(count: int) -> list[NewTask]:
    return [NewTask("nothing", msgspec.Raw(b'{"number":%d}' % n)) for n in range(count)]


async def _run_through(folder: Path, count: int) -> None:
    """A log of tasks that were created, leased and completed."""
    node = await LocalNode.open(folder)
    request = ActivationRequest(["nothing"], jobs_max=BATCH, wait_ms=1_000)
    for _ in range(count // BATCH):
        await node.gateway.tasks.submit(_tasks(BATCH))
        jobs = await node.gateway.jobs.activate(request)
        await node.gateway.jobs.complete([JobCompletion(job.job_key, job.lease) for job in jobs])
    await node.close()


async def _events_per_second(folder: Path) -> float:
    """Opens the node without its state: all of it is replayed."""
    shutil.rmtree(folder / "state")
    begun = time.perf_counter()
    node = await LocalNode.open(folder)
    seconds = time.perf_counter() - begun
    events = node.replayed_events
    await node.close()
    return events / seconds


async def _leave_waiting(folder: Path, count: int) -> None:
    node = await LocalNode.open(folder)
    for _ in range(count // BATCH):
        await node.gateway.tasks.submit(_tasks(BATCH))
    await node.take_snapshot()
    await node.close()


async def _restart_seconds(folder: Path) -> float:
    """From nothing to the first answer."""
    begun = time.perf_counter()
    node = await LocalNode.open(folder)
    await node.gateway.tasks.submit(_tasks(1))
    seconds = time.perf_counter() - begun
    await node.close()
    return seconds
