"""Two million waiting tasks: work goes on as fast as with two thousand, in bounded memory."""

import asyncio
import time
from collections.abc import Iterator
from contextlib import ExitStack

import msgspec

from bench.harness import Figure, Run, benchmark, fixed, remove
from bench.ours.node import OurNode
from holdfast.client.remote import RemoteApi
from holdfast.gateway.tasks.shapes import ActivationRequest, JobCompletion, NewTask

MANY = 2_000_000
FEW = 2_000
BATCH = 1_000
MEASURED = 40_000
MEMORY_BASE_BYTES = 150e6
MEMORY_TASK_BYTES = 200


@benchmark("backlog")
def backlog(run: Run) -> Iterator[Figure]:
    folder = run.folder("backlog")
    many = run.scaled(MANY)
    with ExitStack() as stack:
        stack.callback(remove, folder)
        loop = stack.enter_context(asyncio.Runner())
        deep = stack.enter_context(OurNode(folder / "many"))
        shallow = stack.enter_context(OurNode(folder / "few"))
        loop.run(fill(deep.url, many))
        loop.run(fill(shallow.url, FEW))
        yield Figure(
            name=f"throughput with {many:,} waiting tasks",
            against=f"with {FEW:,}",
            goal=">= 0.9",
            unit="tasks/s",
            ours=lambda: loop.run(tasks_per_second(deep.url, run.scaled(MEASURED))),
            peer=lambda: loop.run(tasks_per_second(shallow.url, run.scaled(MEASURED))),
        )
        yield Figure(
            name=f"memory with {many:,} waiting tasks",
            against="150 MB + 200 B each",
            goal="<= 1",
            unit="MB",
            ours=lambda: deep.memory_bytes() / 1e6,
            peer=fixed((MEMORY_BASE_BYTES + MEMORY_TASK_BYTES * many) / 1e6),
        )


def _tasks() -> list[NewTask]:
    return [
        NewTask("nothing", msgspec.Raw(b'{"number":%d}' % n), keep_ms=60_000) for n in range(BATCH)
    ]


async def fill(url: str, count: int) -> None:
    """Lets so many tasks wait."""
    api = RemoteApi(url)
    batch = _tasks()
    for _ in range(count // BATCH):
        await api.tasks.submit(batch)
    await api.close()


async def tasks_per_second(url: str, count: int) -> float:
    """Submits, takes and completes as many, so that just as many wait afterwards as before."""
    api = RemoteApi(url)
    batch = _tasks()
    request = ActivationRequest(["nothing"], jobs_max=BATCH, wait_ms=10_000)
    begun, left = time.perf_counter(), count
    while left > 0:
        receipts, jobs = await asyncio.gather(api.tasks.submit(batch), api.jobs.activate(request))
        await api.jobs.complete([JobCompletion(job.job_key, job.lease) for job in jobs])
        left -= len(receipts)
    seconds = time.perf_counter() - begun
    await api.close()
    return count / seconds
