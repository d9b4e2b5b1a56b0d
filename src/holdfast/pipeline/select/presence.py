"""Whether somebody is there who answers requests for selections: a file that is renewed.

Spark takes its time to start. A node that waits for an answer sees by this file that Spark is on
its way, and does not wait where nobody is.
"""

import os
import threading
import time
from enum import StrEnum
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

_FILE = "_pipeline"
_BEAT_SECONDS = 1.0
_LOST_SECONDS = 10.0  # without a beat: the process is gone, or the machine is far too busy


class Present(StrEnum):
    """What the pipeline, which answers, is doing."""

    STARTING = "STARTING"  # Spark is, or its first micro-batch is under way
    SERVING = "SERVING"


class _Beat(msgspec.Struct, frozen=True):
    present: Present
    process: int


def present(root: Path) -> Present | None:
    """What the pipeline of some tables does; None if there is none."""
    path = root / _FILE
    try:
        if time.time() - path.stat().st_mtime > _LOST_SECONDS:
            return None
        return msgspec.json.decode(path.read_bytes(), type=_Beat).present
    except (FileNotFoundError, msgspec.MsgspecError):
        return None


class Presence:
    """Says that this process is there, as long as the context is open and the process lives."""

    def __init__(self, root: Path) -> None:
        self._path = root / _FILE
        self._present = Present.STARTING
        self._writing = threading.Lock()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._keep, name="presence", daemon=True)

    def __enter__(self) -> Self:
        self.tell(Present.STARTING)
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stopping.set()
        self._thread.join()
        self._path.unlink(missing_ok=True)

    def tell(self, what: Present) -> None:
        """What it does from now on."""
        with self._writing:
            self._present = what
            self._path.parent.mkdir(parents=True, exist_ok=True)
            draft = self._path.with_name(f"{_FILE}.{os.getpid()}.draft")
            draft.write_bytes(msgspec.json.encode(_Beat(what, os.getpid())))
            draft.replace(self._path)

    def _keep(self) -> None:
        while not self._stopping.wait(_BEAT_SECONDS):
            self.tell(self._present)
