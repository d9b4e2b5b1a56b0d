"""Portals whose loop callers may run, for the tests of that."""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from holdfast.client.lent_loop import LentLoop
from holdfast.client.portal import Portal

OWN = "own"


@contextmanager
def portal() -> Iterator[tuple[Portal, LentLoop]]:
    opened = Portal(OWN, lends=True)
    assert isinstance(opened.loop, LentLoop)
    try:
        until(lambda: is_idle(opened.loop))
        yield opened, opened.loop
    finally:
        opened.close()


def is_idle(loop: Any) -> bool:
    """Whether the own thread sleeps, and nobody has just woken it."""
    return loop._is_lending and loop._is_asleep and not loop._ready and not loop._turn.locked()


def until(is_so: Callable[[], object]) -> None:
    deadline = time.monotonic() + 30
    while not is_so():
        assert time.monotonic() < deadline, "it does not get there"
        os.sched_yield()


def in_threads(count: int, work: Callable[[int], None]) -> list[threading.Thread]:
    threads = [threading.Thread(target=work, args=(n,)) for n in range(count)]
    for each in threads:
        each.start()
    return threads


class Interrupted(Exception):
    """What a handler of a signal raises."""


def interrupt(*_: object) -> None:
    raise Interrupted


@contextmanager
def handling(number: int) -> Iterator[None]:
    assert threading.current_thread() is threading.main_thread()
    before = signal.signal(number, interrupt)
    try:
        yield
        assert signal.getsignal(number) is interrupt
    finally:
        signal.signal(number, before)
