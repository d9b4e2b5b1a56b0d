"""A loop that callers run while it is idle: nothing is reordered, lost, broken off or run twice."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from tests.client.lent_portals import (
    OWN,
    Interrupted,
    handling,
    in_threads,
    interrupt,
    is_idle,
    portal,
    until,
)

from holdfast import Holdfast
from holdfast.client.held_signals import HeldSignals
from holdfast.client.lent_loop import LentCall, LentLoop
from holdfast.client.portal import Portal
from holdfast.errors import Unavailable


async def where() -> str:
    return threading.current_thread().name


def occupied(loop: Any) -> threading.Event:
    """The own thread has its hands full until the event that is returned is set."""
    entered, go_on = threading.Event(), threading.Event()

    def hold() -> None:
        entered.set()
        go_on.wait()

    loop.call_soon_threadsafe(hold)
    entered.wait()
    return go_on


class Never:
    """A call that must not be run."""

    def begin_here(self) -> None:
        raise AssertionError("it was run")

    def is_done(self) -> bool:
        return False

    def wake_its_thread(self) -> None: ...


# --- who runs it ------------------------------------------------------------------------------


def test_an_idle_loop_is_run_by_the_thread_that_calls():
    with portal() as (door, loop):
        here = threading.current_thread().name
        assert [door.call(where()) for _ in range(3)] == [here] * 3
        assert door.call(asyncio.sleep(0.01, "later")) == "later"  # its end is the own thread's
        assert asyncio._get_running_loop() is None
        until(lambda: is_idle(loop))
        assert door.call(where()) == here


def test_while_the_loop_is_busy_calls_queue_up_and_run_in_order_in_its_thread():
    with portal() as (door, loop):
        go_on, ran = occupied(loop), list[int]()
        before = len(loop._ready)

        async def note(number: int) -> str:
            ran.append(number)
            return await where()

        names: list[str] = []
        threads: list[threading.Thread] = []
        for number in range(5):
            threads += in_threads(1, lambda _, n=number: names.append(door.call(note(n))))
            until(lambda n=number: len(loop._ready) == before + n + 1)
        go_on.set()
        for each in threads:
            each.join()
        assert ran == [0, 1, 2, 3, 4]
        assert set(names) == {OWN}


def test_what_was_queued_before_runs_before():
    with portal() as (door, loop):
        ran: list[str] = []
        loop._turn.acquire()  # so that the own thread cannot take what is queued first
        loop.call_soon_threadsafe(ran.append, "first")
        until(lambda: loop._is_wanted_back)
        loop._is_wanted_back = False  # as if it were not awake yet
        loop._turn.release()

        async def second() -> None:
            ran.append("second")

        door.call(second())
        assert ran == ["first", "second"]


def test_an_async_caller_is_never_made_to_run_it():
    with portal() as (door, _):

        async def calling() -> tuple[str, str]:
            return await door.reach(where()), door.call(where())

        assert asyncio.run(calling()) == (OWN, OWN)


def test_the_portal_still_refuses_to_wait_for_itself():
    with portal() as (door, _):

        async def inside() -> None:
            coroutine = where()
            try:
                door.call(coroutine)
            finally:
                coroutine.close()

        with pytest.raises(AssertionError, match="wait for itself"):
            door.call(inside())


# --- no wake-up is lost -----------------------------------------------------------------------


def test_a_timer_that_a_caller_leaves_behind_wakes_the_own_thread():
    with portal() as (door, loop):
        fired = threading.Event()

        async def leave() -> None:
            loop.call_later(0.02, fired.set)

        door.call(leave())
        assert fired.wait(20)


def test_what_a_caller_leaves_behind_in_the_queue_is_run():
    with portal() as (door, loop):
        ended, left = threading.Event(), [1_000]

        def next_one() -> None:
            left[0] -= 1
            loop.call_soon(next_one) if left[0] else ended.set()

        async def leave() -> None:
            loop.call_soon(next_one)

        door.call(leave())
        assert ended.wait(20)


def test_a_call_that_waits_for_another_thread_is_woken_by_it():
    with portal() as (door, loop):
        answer: asyncio.Future[str] = loop.create_future()
        told = threading.Timer(0.02, loop.call_soon_threadsafe, (answer.set_result, "woken"))
        told.start()

        async def waiting() -> str:
            return await answer

        assert door.call(waiting()) == "woken"


def test_a_socket_that_a_caller_registers_is_heard():
    with portal() as (door, loop):
        near, far = socket.socketpair()
        heard = threading.Event()

        async def listen() -> None:
            loop.add_reader(near, heard.set)

        door.call(listen())
        far.send(b"x")
        assert heard.wait(20)
        loop.call_soon_threadsafe(loop.remove_reader, near)
        near.close(), far.close()


def test_what_the_own_thread_saw_of_a_socket_is_not_believed_after_somebody_else_ran_the_loop():
    with portal() as (door, loop):
        near, far = socket.socketpair()
        new_near, new_far = socket.socketpair()
        number, heard = near.fileno(), threading.Event()

        async def listen() -> None:
            loop.add_reader(number, lambda: None)

        async def replace() -> None:
            far.send(b"x")
            until(lambda: loop._is_wanted_back)  # it has seen that, and waits for its turn
            loop.remove_reader(number)
            os.dup2(new_near.fileno(), number)
            loop.add_reader(number, heard.set)

        door.call(listen())
        until(lambda: is_idle(loop))
        door.call(replace())
        until(lambda: is_idle(loop))
        new_far.send(b"y")
        assert heard.wait(20)
        loop.call_soon_threadsafe(loop.remove_reader, number)
        until(lambda: is_idle(loop))
        for each in (near, far, new_near, new_far):
            each.close()


def test_what_is_queued_just_before_the_own_thread_sleeps_keeps_it_awake():
    loop = LentLoop()
    loop._is_lending = loop._turn.acquire()
    waited: list[float | None] = []

    def select(timeout: float | None) -> list[Any]:
        waited.append(timeout)
        return []

    loop._is_asleep = False  # whoever queues something now does not wake it
    loop.call_soon_threadsafe(int)
    loop.wait(None, select)
    loop._ready.clear()
    loop.wait(None, select)
    loop.close()
    assert waited == [0, None]


def test_a_thread_that_queues_something_while_the_own_thread_sleeps_wakes_it():
    with portal() as (_, loop):
        for _ in range(200):
            ran = threading.Event()
            loop.call_soon_threadsafe(ran.set)
            assert ran.wait(20)


def test_timers_and_sockets_have_their_turn_while_there_is_always_something_to_do():
    with portal() as (_, loop):
        near, far = socket.socketpair()
        heard, fired = threading.Event(), threading.Event()

        def on_and_on() -> None:
            if not (heard.is_set() and fired.is_set()):
                loop.call_soon(on_and_on)

        def listen() -> None:
            loop.remove_reader(near)
            loop.call_later(0.01, fired.set)
            heard.set()

        def begin() -> None:
            loop.add_reader(near, listen)
            on_and_on()

        loop.call_soon_threadsafe(begin)
        far.send(b"x")
        assert heard.wait(20) and fired.wait(20)
        near.close(), far.close()


def test_it_can_be_debugged():
    with portal() as (door, loop):
        loop.set_debug(True)
        assert door.call(where()) in (OWN, threading.current_thread().name)
        in_threads(1, lambda _: door.call(asyncio.sleep(0)))[0].join()


def test_the_own_thread_gets_its_turn_when_it_wants_it():
    with portal() as (door, loop):
        loop._turn.acquire()
        loop.call_soon_threadsafe(int)
        until(lambda: loop._is_wanted_back)
        wanted, loop._turn = loop._turn, threading.Lock()  # nobody has it: it is about to take it
        assert not loop.run_here(Never())
        loop._turn = wanted
        wanted.release()
        assert door.call(where()) in (OWN, threading.current_thread().name)


def test_threads_that_race_have_all_their_calls_done_once_and_in_their_own_order():
    with portal() as (door, loop):
        ran: list[tuple[int, int]] = []

        async def note(thread: int, number: int) -> int:
            ran.append((thread, number))
            if number % 3 == 0:
                await asyncio.sleep(0)
            if number % 7 == 0:
                await asyncio.sleep(0.001)
            return number

        def work(thread: int) -> None:
            for number in range(200):
                assert door.call(note(thread, number)) == number

        before = loop._times_lent
        for each in in_threads(6, work):
            each.join(60)
            assert not each.is_alive()
        assert sorted(ran) == [(thread, number) for thread in range(6) for number in range(200)]
        for thread in range(6):
            assert [number for who, number in ran if who == thread] == list(range(200))
        assert loop._times_lent > before


# --- interrupts, ends, forks ------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGUSR1])
def test_a_signal_waits_until_the_loop_is_left_and_ends_the_call_alone(number: signal.Signals):
    with portal() as (door, _), handling(number):
        steps: list[str] = []

        async def interrupted() -> None:
            steps.append(await where())
            signal.raise_signal(number)
            steps.append("went on")

        with pytest.raises(Interrupted):
            door.call(interrupted())
        assert steps == [threading.current_thread().name, "went on"]
        assert door.call(where()) in (OWN, threading.current_thread().name)


def test_handlers_are_back_whatever_they_raise_and_each_is_called():
    with handling(signal.SIGUSR1), handling(signal.SIGUSR2):
        called: list[int] = []
        signal.signal(signal.SIGUSR2, lambda number, _: called.append(number))
        with pytest.raises(Interrupted), HeldSignals():
            signal.raise_signal(signal.SIGUSR1)
            signal.raise_signal(signal.SIGUSR2)
            assert called == []
        assert called == [signal.SIGUSR2]
        signal.signal(signal.SIGUSR2, interrupt)


def test_a_call_that_is_interrupted_before_it_began_is_never_made():
    with portal() as (door, loop), handling(signal.SIGUSR1):
        go_on, ran = occupied(loop), list[str]()
        before = len(loop._ready)

        async def never() -> None:
            ran.append("it ran")

        def interrupt_it() -> None:
            until(lambda: len(loop._ready) == before + 1)
            os.kill(os.getpid(), signal.SIGUSR1)

        (thread,) = in_threads(1, lambda _: interrupt_it())
        with pytest.raises(Interrupted):
            door.call(never())
        go_on.set()
        thread.join()
        door.call(asyncio.sleep(0))
        assert ran == []


def test_a_call_that_is_interrupted_while_it_waits_is_cancelled():
    with portal() as (door, loop), handling(signal.SIGUSR1):
        ended: list[str] = []
        begun = threading.Event()

        async def waiting() -> None:
            begun.set()
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                ended.append("cancelled")
                raise

        def interrupt_it() -> None:
            begun.wait()
            until(lambda: is_idle(loop))
            os.kill(os.getpid(), signal.SIGUSR1)

        (thread,) = in_threads(1, lambda _: interrupt_it())
        with pytest.raises(Interrupted):
            door.call(waiting())
        thread.join()
        until(lambda: ended == ["cancelled"])


def test_calls_that_race_with_the_end_are_answered_or_told_that_it_is_closed():
    for _ in range(20):
        door = Portal(OWN, lends=True)
        told: list[str] = []

        def work(_: int, door: Portal = door, told: list[str] = told) -> None:
            try:
                while True:
                    door.call(asyncio.sleep(0))
            except Unavailable as error:
                told.append(error.message)

        threads = in_threads(4, work)
        until(lambda loop=door.loop: loop._times_lent > 5)
        door.close()
        for each in threads:
            each.join(20)
            assert not each.is_alive(), "a call waits for a loop that has ended"
        assert len(told) == 4 and all("closed" in each for each in told)


_FORKS = """
import os, sys
from holdfast import Holdfast
from holdfast.errors import Unavailable
from holdfast.gateway.tasks.shapes import TaskQuery

with Holdfast.open(sys.argv[1], workers=0) as app:
    @app.task
    def nothing(number: int) -> int:
        return number
    nothing.submit(1)
    child = os.fork()
    if child == 0:
        try:
            nothing.submit(2)
        except Unavailable as error:
            os._exit(7 if "fork" in error.message else 8)
        os._exit(9)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    nothing.submit(3)
with Holdfast.open(sys.argv[1], workers=0) as app:
    print(len(app.portal.call(app.api.tasks.page(TaskQuery())).items))
"""


def test_a_forked_child_never_runs_its_parents_loop(tmp_path: Path):
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", _FORKS, str(tmp_path / "data")],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.stdout == "2\n", done.stderr


# --- an embedded app --------------------------------------------------------------------------


def test_the_hops_of_a_task_need_nobody_but_the_caller_and_the_worker(tmp_path: Path):
    with Holdfast.open(tmp_path / "data", workers=1) as app:

        @app.task
        def twice(number: int) -> int:
            return 2 * number

        twice.submit(0).result(20)
        loop, ran = app.portal.loop, list[str]()
        assert isinstance(loop, LentLoop)
        run_here = loop.run_here

        def noted(call: LentCall) -> bool:
            is_run = run_here(call)
            ran.extend([threading.current_thread().name] * is_run)
            return is_run

        loop.run_here = noted
        assert [twice.submit(n).result(20) for n in range(20)] == [2 * n for n in range(20)]
        here = threading.current_thread().name
        # A worker that is done before this thread stands by runs the loop itself.
        assert {here} <= set(ran) <= {here, "holdfast-worker-0"}
        assert len(ran) >= 40, "the loop's own thread had to help"


def test_submits_that_race_with_a_close_are_durable_or_refused(tmp_path: Path):
    acknowledged: list[str] = []
    app = Holdfast.open(tmp_path / "data", workers=0, patience=0)
    nothing = app.task(name="nothing")(lambda number: number)

    def work(thread: int) -> None:
        try:
            while True:
                acknowledged.append(nothing.bind(thread).submit().key)
        except Unavailable:
            pass

    threads = in_threads(4, work)
    until(lambda: len(acknowledged) > 40)
    app.close()
    for each in threads:
        each.join(20)
        assert not each.is_alive()
    assert len(set(acknowledged)) == len(acknowledged)
    with Holdfast.open(tmp_path / "data", workers=0) as again:
        for key in acknowledged:
            assert again.handle(key).view().state == "WAITING"
