"""A command beside another: it is started again when it dies, unless that would not help."""

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import psutil

from holdfast.cli.beside import Beside

DEADLINE_SECONDS = 60.0


def wait_until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not is_so():
        assert time.monotonic() < deadline, "expected it in time"
        time.sleep(0.01)


def test_one_that_is_killed_is_started_again_and_ends_with_the_other(tmp_path: Path) -> None:
    with Beside(["start", str(tmp_path / "data"), "--port", "0"]) as beside:
        wait_until(lambda: beside.pid is not None)
        first = beside.pid
        assert first is not None
        os.kill(first, signal.SIGKILL)
        wait_until(lambda: beside.pid != first)
        second = beside.pid
        assert second is not None and psutil.pid_exists(second)
    assert not psutil.pid_exists(second)


def test_one_that_cannot_do_it_is_left_alone(tmp_path: Path) -> None:
    with Beside(["journal", "dump", str(tmp_path / "nowhere")]) as beside:
        wait_until(lambda: not beside._thread.is_alive())
        first = beside.pid
    assert first is not None and beside.pid == first  # it was tried, and only once
