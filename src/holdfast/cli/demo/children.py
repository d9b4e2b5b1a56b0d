"""The demo's child processes: a real node and real workers, as a user starts them."""

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

import msgspec

from holdfast.errors import Unavailable

_STOP_SECONDS = 30


class Started(msgspec.Struct, rename="camel"):
    """The line with which `holdfast start --json` says that it is up."""

    url: str
    partitions: int


def holdfast(*arguments: str) -> list[str]:
    """The command `holdfast ...`, as this Python runs it."""
    return [sys.executable, "-m", "holdfast.cli", *arguments, "--json"]


class Child:
    """One process; what it says on standard error goes to a log in the folder."""

    def __init__(self, folder: Path, name: str, command: Sequence[str], **environment: str) -> None:
        self.name = name
        self._log = folder / f"{name}.log"
        with self._log.open("ab") as log:
            self._process = self._start(command, log, os.environ | environment)

    def _start(
        self, command: Sequence[str], log: BinaryIO, environment: dict[str, str]
    ) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, env=environment
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
            raise Unavailable(f"{self.name} ended: {said or 'silently'}")
        return line

    def check(self) -> None:
        """Unavailable if it has ended although nobody asked it to."""
        if self._process.poll() is not None:
            said = self._log.read_text(errors="replace").strip()[-2_000:]
            raise Unavailable(f"{self.name} ended: {said or 'silently'}")

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


class Crew(Child):
    """A process that starts others and listens to what it is told: it ends with all of them."""

    def _start(
        self, command: Sequence[str], log: BinaryIO, environment: dict[str, str]
    ) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, env=environment,
            start_new_session=True,
        )  # fmt: skip

    def tell(self, line: str) -> None:
        """A line on its standard input; Unavailable if it has ended."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(f"{line}\n".encode())
            self._process.stdin.flush()
        except BrokenPipeError:
            self._process.wait()
            self.check()

    def stop(self) -> None:
        """SIGKILL for all of them."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        self._close()

    def _close(self) -> None:
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            self._process.stdin.close()
        super()._close()


def start_node(folder: Path) -> tuple[Child, Started]:
    """A node in `folder`/data on any free port."""
    child = Child(folder, "node", holdfast("start", str(folder / "data"), "--port", "0"))
    try:
        return child, msgspec.json.decode(child.first_line(), type=Started)
    except BaseException:
        child.stop()
        raise
