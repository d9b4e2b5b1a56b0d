"""Durable no-op tasks: how many a second, how soon one is done, and what idling costs."""

import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from typing import Protocol

from bench.costs import Meter, Sample
from bench.harness import Figure, Run, benchmark, fixed, remove
from bench.limits import RawFile, bare_fdatasync_p50
from bench.ours.node import OurNode, our_environment
from bench.peers import Dramatiq, Huey, Pgqueuer, Restate, TaskPeer, measured
from holdfast import Holdfast

TASKS = 100_000
ONE_BY_ONE = 500
RECORD_BYTES = 256  # what one submitted no-op task puts on the log, about
IDLE_SECONDS = 20.0
IDLE_PARTITIONS = 64
IDLE_SHARE_MAX = 0.01  # of a core

PEERS: tuple[tuple[type[TaskPeer], int], ...] = (
    (Pgqueuer, 20_000),
    (Dramatiq, 4_000),
    (Huey, 4_000),
)


@benchmark("tasks")
def tasks(run: Run) -> Iterator[Figure]:
    folder = run.folder("tasks")
    with ExitStack() as stack:
        stack.callback(remove, folder)
        node = stack.enter_context(OurNode(folder / "node"))
        peers = {
            kind.name: measured(
                stack, kind(), lambda peer, n=n: peer.no_op_tasks_per_second(run.scaled(n))
            )
            for kind, n in PEERS
        }
        yield Figure(
            name="no-op durable tasks",
            against="the best of pgqueuer, dramatiq and huey",
            goal=">= 3",
            unit="tasks/s",
            ours=lambda: tasks_per_second(node.url, run.scaled(TASKS), [node.pid]),
            peer=peers,
            cost_of="task",
        )
    yield from _one_by_one(run)
    yield from _idle(run)


def tasks_per_second(
    url: str, count: int, node_pids: Sequence[int] = (), broker_pids: Sequence[int] = ()
) -> Sample:
    """One submitter and one worker process, from the first submit to the last completion."""
    environment = our_environment(url)
    worker = _spawn("bench.ours.work", count, environment, "app")
    assert worker.stdout is not None
    worker.stdout.readline()
    submitter = _spawn("bench.ours.submit", count, environment)
    assert submitter.stdout is not None
    begun = float(submitter.stdout.readline())
    parts = {
        "node": node_pids,
        "worker": [worker.pid],
        "client": [submitter.pid],
        "broker": broker_pids,
    }
    with Meter(parts) as meter:
        ended = float(worker.stdout.readline())
    submitter.wait()
    worker.wait()
    return meter.sample(count / (ended - begun), count)


def _spawn(
    module: str, count: int, environment: dict[str, str], *more: str
) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", module, str(count), *more]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)


def _one_by_one(run: Run) -> Iterator[Figure]:
    folder = run.folder("one-by-one")
    with ExitStack() as stack:
        stack.callback(remove, folder)
        app = stack.enter_context(Holdfast.open(folder / "node", workers=1))
        raw = RawFile(folder, 16 * 1024 * 1024)
        stack.callback(raw.close)

        @app.task(keep_result=60)
        def nothing(number: int) -> int:
            return number

        def acknowledged() -> float:
            return _median(lambda n: nothing.bind(n).submit(delay=3_600), ONE_BY_ONE)

        def done() -> float:
            return _median(lambda n: nothing.submit(n).result(10), ONE_BY_ONE)

        yield Figure(
            name="one task at a time, acknowledged, p50",
            against="a bare pwrite + fdatasync",
            goal="<= 1.5",
            unit="µs",
            ours=lambda: 1e6 * acknowledged(),
            peer=lambda: 1e6 * bare_fdatasync_p50(raw, RECORD_BYTES),
        )
        restate = measured(
            stack,
            Restate(),
            lambda peer: 1e6 * statistics.median(peer.no_op_latency_seconds(ONE_BY_ONE)),
        )
        yield Figure(
            name="one task at a time, submit to result, p50",
            against="Restate's no-op",
            goal="<= 0.2",
            unit="µs",
            ours=lambda: 1e6 * done(),
            peer=restate,
        )


def _median(call: Callable[[int], object], count: int) -> float:
    seconds: list[float] = []
    for number in range(count):
        begun = time.perf_counter()
        call(number)
        seconds.append(time.perf_counter() - begun)
    return statistics.median(seconds)


def _idle(run: Run) -> Iterator[Figure]:
    folder = run.folder("idle")
    try:
        with OurNode(folder, IDLE_PARTITIONS) as node:
            yield Figure(
                name=f"an idle node with {IDLE_PARTITIONS} partitions",
                against="1% of a core",
                goal="<= 1",
                unit="of a core",
                ours=lambda: share_of_a_core(node, IDLE_SECONDS / (10 if run.quick else 4)),
                peer=fixed(IDLE_SHARE_MAX),
            )
    finally:
        remove(folder)


class Costs(Protocol):
    """Whatever takes processor time."""

    def cpu_seconds(self) -> float: ...


def share_of_a_core(node: Costs, seconds: float) -> float:
    """What it takes while it is left alone for so long."""
    begun = node.cpu_seconds()
    time.sleep(seconds)
    return (node.cpu_seconds() - begun) / seconds
