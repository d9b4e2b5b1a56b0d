"""A node of ours in a process of its own, as the peers' servers are."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import TracebackType

import psutil


class OurNode:
    """`holdfast start` over a folder; a context manager."""

    def __init__(
        self, folder: Path, partitions: int = 4, *, pipeline: bool = False, processes: int = 1
    ) -> None:
        self.folder = folder
        self.url = ""
        self._partitions = partitions
        self._more = ["--pipeline"] if pipeline else []
        if processes > 1:
            self._more += ["--processes", str(processes)]

    def __enter__(self) -> "OurNode":
        command = [sys.executable, "-m", "holdfast.cli", "start", str(self.folder)]
        options = ["--port", "0", "--partitions", str(self._partitions), "--json"]
        self._process = subprocess.Popen(
            [*command, *options, *self._more], stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        self.url = json.loads(self._process.stdout.readline())["url"]
        self._watched = psutil.Process(self._process.pid)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(60)

    @property
    def pid(self) -> int:
        return self._process.pid

    def cpu_seconds(self) -> float:
        """The processor time it has taken so far."""
        times = self._watched.cpu_times()
        return times.user + times.system

    def below(self) -> list[psutil.Process]:
        """The processes that it has started, and those that these have."""
        return self._watched.children(recursive=True)

    def memory_bytes(self) -> int:
        """What it holds in memory of its own: the page cache of mapped files does not count."""
        return self._watched.memory_full_info().uss


def our_environment(url: str) -> dict[str, str]:
    """The environment in which our submitter and worker processes find the node."""
    return os.environ | {"HOLDFAST_URL": url}
