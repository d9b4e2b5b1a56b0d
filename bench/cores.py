"""Bulk work with several processes: what a node does that uses the machine's cores."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack

from bench.harness import Figure, Run, benchmark, remove
from bench.ours.bulk import BATCH
from bench.ours.node import OurNode

PROCESSES = 2
CLIENTS = 2
CONNECTIONS = 8  # of each client: the system spreads them over the processes
BATCHES = 1_000  # of each client


@benchmark("cores")
def cores(run: Run) -> Iterator[Figure]:
    folder = run.folder("cores")
    with ExitStack() as stack:
        stack.callback(remove, folder)
        several = stack.enter_context(OurNode(folder / "several", processes=PROCESSES))
        one = stack.enter_context(OurNode(folder / "one"))
        again = stack.enter_context(OurNode(folder / "again"))
        batches = run.scaled(BATCHES)
        yield Figure(
            name=f"batches of {BATCH} tasks, {PROCESSES} processes",
            against="one process",
            goal=">= 1.3",
            unit="tasks/s",
            ours=lambda: _tasks_per_second(several.url, batches),
            peer=lambda: _tasks_per_second(one.url, batches),
        )
        yield Figure(
            name=f"batches of {BATCH} tasks, the same code twice",
            against="one process",
            goal=">= 0.97",
            unit="tasks/s",
            ours=lambda: _tasks_per_second(again.url, batches),
            peer=lambda: _tasks_per_second(one.url, batches),
        )


def _tasks_per_second(url: str, batches: int) -> float:
    """Several clients at once, each with several connections."""
    command = [sys.executable, "-m", "bench.ours.bulk", url, str(batches), str(CONNECTIONS)]
    clients = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(CLIENTS)
    ]
    spans: list[tuple[float, float]] = []
    for client in clients:
        assert client.stdout is not None and client.stdout.readline() == "ready\n"
    for client in clients:
        assert client.stdin is not None
        client.stdin.write("\n")
        client.stdin.flush()
    for client in clients:
        assert client.stdout is not None
        began, ended = client.stdout.readline().split()
        spans.append((float(began), float(ended)))
        client.wait()
    seconds = max(end for _, end in spans) - min(begin for begin, _ in spans)
    per_client = batches // CONNECTIONS * CONNECTIONS * BATCH
    return CLIENTS * per_client / seconds
