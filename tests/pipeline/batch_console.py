"""Batch operations as people type them, and a pipeline in a process of its own beside the node."""

import io
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

from served_node import ServedNode

from holdfast.cli.main import run
from holdfast.gateway.processes.shapes import NewProcessInstance
from holdfast.pipeline.select.presence import present

WAIT_SECONDS = 150
TOGETHER = 20  # instances that are started at once: on one partition


class PipelineBeside:
    """`holdfast pipeline run` with all that it starts."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        command = [sys.executable, "-m", "holdfast.cli", "pipeline", "run", str(folder), "--json"]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, start_new_session=True)

    def until_there(self) -> None:
        """Requests from now on wait until Spark has started."""
        until(lambda: present(self._folder / "tables") is not None, "the pipeline is starting")

    def signal(self, number: signal.Signals) -> None:
        os.killpg(self._process.pid, number)

    def kill(self) -> None:
        if self._process.poll() is None:
            self.signal(signal.SIGKILL)
        self._process.wait(60)


@contextmanager
def pipeline_beside(folder: Path) -> Iterator[PipelineBeside]:
    """One that is there; it is killed at the end, which costs nothing."""
    pipeline = PipelineBeside(folder)
    try:
        pipeline.until_there()
        yield pipeline
    finally:
        pipeline.kill()


def until(is_so: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + WAIT_SECONDS
    while not is_so():
        assert time.monotonic() < deadline, f"not in time: {what}"
        time.sleep(0.02)


def typed(node: ServedNode, *arguments: str) -> tuple[int, Any]:
    """A command and what it prints."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = run(["batch", *arguments, "--url", node.url, "--json"])
    assert out.getvalue(), err.getvalue()
    return code, json.loads(out.getvalue())


def begun(node: ServedNode, *arguments: str) -> str:
    """The key of an operation that nobody waits for."""
    return typed(node, *arguments, "--no-wait")[1]["batchOperationKey"]


def shown(node: ServedNode, key: str) -> Any:
    return typed(node, "show", key)[1]


def ended(node: ServedNode, key: str) -> Any:
    """An operation when it is over."""
    until(lambda: shown(node, key)["endDate"] is not None, f"the end of {key}")
    return shown(node, key)


def outcomes(view: Any) -> tuple[str, int, int, int, int]:
    """State, and items by completed, failed, skipped, canceled."""
    names = ("Completed", "Failed", "Skipped", "Canceled")
    counts = [view[f"operations{name}Count"] for name in names]
    assert sum(counts) == view["operationsTotalCount"]
    completed, failed, skipped, canceled = counts
    return view["state"], completed, failed, skipped, canceled


def start(node: ServedNode, process: str, count: int) -> set[int]:
    keys: set[int] = set()
    for at in range(0, count, TOGETHER):
        new = [NewProcessInstance(process)] * min(TOGETHER, count - at)
        receipts = node.portal.call(node.api.instances.start(new))
        keys |= {int(each.process_instance_key) for each in receipts}
    return keys
