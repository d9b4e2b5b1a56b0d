"""Our node with a worker process, measured with processes."""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from bench.costs import Meter, Sample
from bench.ours.node import OurNode, our_environment
from bench.ours.process_app import EACH
from holdfast import Holdfast

LIVE_PAUSE_SECONDS = 0.02  # between the live commands that are timed beside a large loop


class Each(NamedTuple):
    """What a multi-instance activity took."""

    seconds: float
    live_seconds: list[float]  # how long each live command took meanwhile


class OurProcesses:
    """A running node that processes are started on."""

    def __init__(self, node: OurNode) -> None:
        self.node = node
        self._environment = our_environment(node.url)

    def run(self, count: int) -> Sample:
        """Two-step processes a second, from the first start until the last is completed."""
        worker = self._spawn("bench.ours.work", 2 * count, "process_app")
        assert worker.stdout is not None
        worker.stdout.readline()
        submitter = self._spawn("bench.ours.process_submit", count)
        assert submitter.stdout is not None
        begun = float(submitter.stdout.readline())
        parts = {"node": [self.node.pid], "worker": [worker.pid], "client": [submitter.pid]}
        with Meter(parts) as meter:
            ended = float(worker.stdout.readline())
        submitter.wait()
        worker.wait()
        with Holdfast.connect(self.node.url) as app:
            left = app.instances(limit=1)
        assert not left, "a process has not completed"
        return meter.sample(count / (ended - begun), count)

    def each(self, items: int) -> Each:
        """One parallel multi-instance activity over so many items, with live commands beside it."""
        worker = self._spawn("bench.ours.work", items, "process_app")
        assert worker.stdout is not None
        worker.stdout.readline()
        live: list[float] = []
        with Holdfast.connect(self.node.url) as app, ThreadPoolExecutor(1) as waiting:
            app.deploy(EACH)
            begun = time.perf_counter()
            instance = app.start("each", {"items": list(range(items))})
            ended = waiting.submit(lambda: (instance.result(timeout=600), time.perf_counter()))
            while not ended.done():
                live.append(timed(lambda: app.publish("nobody", "waits")))
                time.sleep(LIVE_PAUSE_SECONDS)
            result, end = ended.result()
        worker.wait()
        assert result["done"] == list(range(items)), "a result is missing or in the wrong place"
        return Each(end - begun, live)

    def _spawn(self, module: str, count: int, *more: str) -> "subprocess.Popen[str]":
        command = [sys.executable, "-m", module, str(count), *more]
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=self._environment)


def timed(call: Callable[[], object]) -> float:
    """How long a call takes."""
    begun = time.perf_counter()
    call()
    return time.perf_counter() - begun


@contextmanager
def our_processes(folder: Path, processes: int = 1) -> Iterator[OurProcesses]:
    """A node in a folder, for as long as it is measured."""
    with OurNode(folder / "node", processes=processes) as node:
        yield OurProcesses(node)
