"""The demo's child processes: a real node and real workers, as a user starts them."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import msgspec

from holdfast.errors import Unavailable

_STOP_SECONDS = 30


class Started(msgspec.Struct, rename="camel"):
    """The line with which `holdfast start --json` says that it is up."""

    url: str
    partitions: int


class Child:
    """One `holdfast ...` process; what it says on standard error goes to a log in the folder."""

    def __init__(self, folder: Path, name: str, *arguments: str, **environment: str) -> None:
        self.name = name
        self._log = folder / f"{name}.log"
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "holdfast.cli", *arguments, "--json"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                env=os.environ | environment,
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    def first_line(self) -> bytes:
        """Waits until it is up; Unavailable with its own words if it ends instead."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            said = self._log.read_text(errors="replace").strip()
            raise Unavailable(f"Expected {self.name} to start, but it ended: {said or 'silently'}")
        return line

    def check(self) -> None:
        """Unavailable if it has ended although nobody asked it to."""
        if self._process.poll() is not None:
            said = self._log.read_text(errors="replace").strip()[-2_000:]
            raise Unavailable(f"Expected {self.name} to run, but it ended: {said or 'silently'}")

    def pause(self) -> None:
        """SIGSTOP: it keeps what it holds and says nothing."""
        self._process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """SIGCONT, after a pause."""
        self._process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """SIGKILL: no goodbye, no cleaning up."""
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()
        self._close()

    def stop(self) -> None:
        """SIGTERM, and patience; SIGKILL when that runs out."""
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._close()

    def _close(self) -> None:
        if self._process.stdout is not None:
            self._process.stdout.close()


def start_node(folder: Path) -> tuple[Child, Started]:
    """A node in `folder`/data on any free port."""
    child = Child(folder, "node", "start", str(folder / "data"), "--port", "0")
    try:
        return child, msgspec.json.decode(child.first_line(), type=Started)
    except BaseException:
        child.stop()
        raise
