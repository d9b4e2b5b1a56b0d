"""Waiting for what other threads bring about."""

import threading
from collections.abc import Callable
from time import monotonic
from typing import TypeVar

WAIT = 30  # seconds until a test gives up; none of them takes that long

T = TypeVar("T")


def wait_until(condition: Callable[[], T]) -> T:
    """Asks until the answer is not empty, and returns it; fails after the deadline."""
    deadline, pause = monotonic() + WAIT, threading.Event()
    while not (found := condition()):
        assert monotonic() < deadline, "it did not happen in time"
        pause.wait(0.005)
    return found
