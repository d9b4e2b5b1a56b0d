"""`holdfast start --processes` as a process of its own, and what tests ask of it."""

import contextlib
import json
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

COMMAND = [sys.executable, "-m", "holdfast.cli"]
DEADLINE_SECONDS = 60


class Node:
    """A node of several processes."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.folder = folder
        self.process = subprocess.Popen(
            [*COMMAND, "start", str(folder), "--port", "0", "--json", *arguments],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert self.process.stdout is not None and self.process.stderr is not None
        line = self.process.stdout.readline()
        self.started = json.loads(line) if line else {}
        self.url = self.started.get("url", "")

    def get(self, path: str) -> bytes:
        with urllib.request.urlopen(self.url + path, timeout=10) as answer:
            return answer.read()

    def json(self, path: str) -> Any:
        return json.loads(self.get(path))

    def members(self) -> dict[int, int]:
        """The processes of the members, by their numbers."""
        found = subprocess.run(
            ["pgrep", "-a", "-P", str(self.process.pid)], capture_output=True, text=True
        )
        rows = [line.split() for line in found.stdout.splitlines()]
        return {int(row[-1]): int(row[0]) for row in rows}

    def until(self, status: str) -> None:
        """Waits until the node says that it is so."""
        deadline = time.monotonic() + DEADLINE_SECONDS
        found: Any = None
        while found is None or found["status"] != status:
            assert time.monotonic() < deadline, found
            time.sleep(0.02)
            with contextlib.suppress(OSError):  # a member that was killed takes its connections
                found = self.json("/v2/health")

    def end(self) -> tuple[int, str]:
        """Stops in order; the exit code, and what was said."""
        self.process.send_signal(signal.SIGTERM)
        _, err = self.process.communicate(timeout=DEADLINE_SECONDS)
        return self.process.returncode, err


@contextlib.contextmanager
def started(folder: Path, *arguments: str) -> Iterator[Node]:
    """A node that does not outlive its test."""
    node = Node(folder, *arguments)
    try:
        yield node
    finally:
        with contextlib.suppress(ProcessLookupError):
            node.process.kill()
        node.process.wait()
