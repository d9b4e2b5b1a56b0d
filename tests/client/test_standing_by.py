"""A thread that waits for a result runs what other threads have for the loop: nothing is lost."""

import asyncio
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from tests.client.lent_portals import (
    OWN,
    Interrupted,
    handling,
    in_threads,
    is_idle,
    portal,
    until,
)

from holdfast.client.portal import Portal


@contextmanager
def standing(door: Portal, loop: Any, threads: int = 1) -> Iterator[list[str]]:
    """Threads wait for an end that comes behind the block; the list has what they were told."""
    end: asyncio.Future[str] = loop.create_future()
    told: list[str] = []

    async def waiting() -> str:
        return await asyncio.shield(end)

    def wait(_: int) -> None:
        told.append(door.call(waiting(), waits=True))

    waiters = in_threads(threads, wait)
    until(lambda: len(loop._standing_by) == threads and is_idle(loop))
    yield told
    loop.call_soon_threadsafe(end.set_result, "the end")
    for each in waiters:
        each.join(20)
        assert not each.is_alive()
    assert told == ["the end"] * threads and loop._standing_by == []


def nudged(door: Portal) -> str:
    """The thread that runs what this one has for the loop."""
    names: list[str] = []
    ran = threading.Event()

    def note() -> None:
        names.append(threading.current_thread().name)
        ran.set()

    door.nudge(note, here=True)
    assert ran.wait(20)
    return names[0]


def test_the_only_thread_that_stands_by_runs_what_others_have_for_the_loop():
    with portal() as (door, loop), standing(door, loop):
        waiters = {each.name for each in threading.enumerate() if each.name.startswith("Thread-")}
        names: list[str] = []
        for _ in range(20):
            names.append(nudged(door))
            until(lambda: is_idle(loop))
        ran_by_waiters = [name for name in names if name in waiters]
        assert len(ran_by_waiters) > 10, "others ran it, though they were not awake"


@pytest.mark.parametrize("threads", [0, 2, 3])
def test_with_none_or_several_that_stand_by_each_runs_the_loop_itself(threads: int):
    with portal() as (door, loop), standing(door, loop, threads):
        assert not loop.hand_over(lambda: None)
        assert nudged(door) in (OWN, threading.current_thread().name)


class LooksFree:
    """A turn that somebody has, and that looked free a moment ago."""

    def __init__(self, turn: threading.Lock) -> None:
        self._turn = turn
        self.release = turn.release
        self.tried = threading.Event()

    def locked(self) -> bool:
        return False

    def acquire(self, blocking: bool = True) -> bool:
        if blocking:
            return self._turn.acquire()
        self.tried.set()
        return False


def test_what_is_handed_over_while_somebody_else_has_the_turn_is_run():
    with portal() as (door, loop), standing(door, loop):
        ran, turn = threading.Event(), loop._turn
        turn.acquire()
        loop._turn = LooksFree(turn)
        assert loop.hand_over(ran.set)
        assert loop._turn.tried.wait(20)
        loop._turn = turn
        turn.release()
        assert ran.wait(20)


def test_what_is_handed_to_a_thread_that_is_just_leaving_is_run():
    with portal() as (door, loop):
        for _ in range(300):
            ran = threading.Event()
            end: asyncio.Future[None] = loop.create_future()

            async def waiting(end: asyncio.Future[None] = end) -> None:
                await end

            (waiter,) = in_threads(1, lambda _, w=waiting: door.call(w(), waits=True))
            until(lambda: len(loop._standing_by) == 1)
            loop.call_soon_threadsafe(end.set_result, None)
            door.nudge(ran.set, here=True)
            assert ran.wait(20), "what was handed over was never run"
            waiter.join(20)
            assert not waiter.is_alive()


def test_what_is_handed_to_a_thread_that_is_interrupted_is_run():
    with portal() as (door, loop), handling(signal.SIGUSR1):
        ran = threading.Event()

        def interrupt_it() -> None:
            until(lambda: len(loop._standing_by) == 1 and is_idle(loop))
            loop._standing_by[0].wake = lambda: os.kill(os.getpid(), signal.SIGUSR1)
            until(lambda: loop.hand_over(ran.set))

        (thread,) = in_threads(1, lambda _: interrupt_it())
        with pytest.raises(Interrupted):
            door.call(asyncio.sleep(60), waits=True)
        assert ran.wait(20)
        thread.join()
        assert loop._standing_by == []


def test_threads_that_race_to_hand_over_and_to_wait_lose_nothing():
    with portal() as (door, _):
        ran: list[tuple[int, int]] = []

        def work(thread: int) -> None:
            for number in range(200):
                if thread % 2:
                    door.nudge(lambda n=number: ran.append((thread, n)), here=True)
                else:
                    door.call(asyncio.sleep(0.0005 * (number % 3)), waits=True)

        for each in in_threads(4, work):
            each.join(60)
            assert not each.is_alive()
        until(lambda: len(ran) == 400)
        for thread in (1, 3):
            assert [number for who, number in ran if who == thread] == list(range(200))
