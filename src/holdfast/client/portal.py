"""A door into an event loop of its own: sync and async methods share one body."""

import asyncio
import concurrent.futures
import contextlib
import os
import threading
from collections.abc import Callable, Coroutine
from contextvars import copy_context
from inspect import CORO_CREATED, getcoroutinestate
from typing import Any, Generic, TypeVar

from holdfast.client.lent_loop import LentLoop
from holdfast.coroutines import go_on
from holdfast.errors import Unavailable
from holdfast.event_loop import new_event_loop

T = TypeVar("T")
_ABANDON_S_MAX = 1.0  # that the end of a program waits for connections to be closed


class _Ended(Generic[T]):
    """How a coroutine ended that needed no task."""

    __slots__ = ("_error", "_value")

    def __init__(self, value: Any, error: BaseException | None) -> None:
        self._value = value
        self._error = error

    def result(self) -> T:
        if self._error is not None:
            raise self._error
        return self._value


def _never() -> bool:
    return False


class _Call(Generic[T]):
    """A coroutine that a thread waits for. A bare lock wakes it in half the time a future does."""

    def __init__(
        self,
        coroutine: Coroutine[Any, Any, T],
        loop: asyncio.AbstractEventLoop,
        is_quiet: Callable[[], bool] = _never,
    ) -> None:
        self._coroutine = coroutine
        self._loop = loop
        self._is_quiet = is_quiet  # its first step may run at once, without a task
        self._ended: _Ended[T] | None = None  # in its first step
        self._woken = threading.Lock()
        self._woken.acquire()
        self._task: asyncio.Task[T] | None = None
        self._is_withdrawn = False

    def begin(self) -> None:
        """Begins it, for a thread that waits."""
        if not self._is_withdrawn:
            self._task = self._loop.create_task(self._coroutine)
            self.wake_its_thread()

    def begin_here(self) -> None:
        """Begins it, for a thread that looks for itself whether it is done."""
        if not self._is_quiet():
            self._task = self._loop.create_task(self._coroutine)
            return
        context = copy_context()
        try:
            awaited = context.run(self._coroutine.send, None)
        except StopIteration as ended:
            self._ended = _Ended(ended.value, None)
        except BaseException as error:
            self._ended = _Ended(None, error)
            if isinstance(error, (KeyboardInterrupt, SystemExit)):
                raise  # as a task does
        else:
            rest = go_on(self._coroutine, awaited)
            self._task = self._loop.create_task(rest, context=context)

    def wake_its_thread(self) -> None:
        """From now on its thread waits."""
        assert self._task is not None, "it has begun"
        self._task.add_done_callback(self.wake)

    def wake(self, _: object = None) -> None:
        """Its thread looks whether it is over."""
        with contextlib.suppress(RuntimeError):  # somebody else has just woken it
            self._woken.release()

    def sleep(self) -> None:
        """Waits until it is woken."""
        self._woken.acquire()

    def is_done(self) -> bool:
        return self._ended is not None or (self._task is not None and self._task.done())

    def is_over(self) -> bool:
        """Whether it is done, or never will be."""
        return self._is_withdrawn or self.is_done()

    def withdraw(self) -> None:
        """Nobody waits any more; runs on the loop, behind `begin`."""
        if self._task is not None:
            self._task.cancel()
        elif not self._is_withdrawn:
            self._is_withdrawn = True
            self._coroutine.close()

    def abandon(self) -> None:
        """The loop has ended: tells the thread that waits for the call."""
        self._is_withdrawn = True
        if getcoroutinestate(self._coroutine) == CORO_CREATED:
            self._coroutine.close()
        self.wake()

    def result(self) -> T:
        """What it gave, once it is done; its thread waits until then."""
        while not self.is_over():
            self.sleep()
        try:
            if self._ended is not None:
                return self._ended.result()
            if self._task is None or not self._task.done():
                raise Unavailable("This app was closed before the answer came")
            return self._task.result()
        except asyncio.CancelledError as error:
            raise Unavailable("This app was closed before the answer came") from error


class _Nudge:
    """A callback that nobody waits for: the loop is run until it has nothing to do."""

    def __init__(self, callback: Callable[[], None], loop: asyncio.AbstractEventLoop) -> None:
        self._callback = callback
        self._loop = loop

    def begin_here(self) -> None:
        self._loop.call_soon(self._callback)

    def is_done(self) -> bool:
        return False

    def wake_its_thread(self) -> None:
        pass


class Portal:
    """A thread with an event loop that coroutines can be handed to from anywhere.

    With `lends` the loop is asyncio's own, and callers run it themselves while it is idle.
    """

    def __init__(self, name: str, *, lends: bool = False) -> None:
        self._lent = LentLoop() if lends else None
        self.loop: asyncio.AbstractEventLoop = self._lent or new_event_loop()
        self._calls: set[_Call[Any]] = set()  # that somebody waits for
        self._short: set[_Call[Any]] = set()  # of those, the ones that are answered at once
        self._process_id = os.getpid()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        if self._lent is None:
            self.loop.run_forever()
        else:
            self._lent.run_and_lend()
        self.loop.run_until_complete(self.loop.shutdown_asyncgens())
        self.loop.close()
        for call in list(self._calls):  # those that came too late to be begun, or to be finished
            call.abandon()

    def start(self, coroutine: Coroutine[Any, Any, T]) -> "concurrent.futures.Future[T]":
        """Begins a coroutine on the portal's loop."""
        if self.loop.is_closed() or not self._thread.is_alive():
            coroutine.close()
            raise Unavailable("This app was closed")
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop)

    def call(
        self, coroutine: Coroutine[Any, Any, T], *, waits: bool = False, at_once: bool = False
    ) -> T:
        """Runs a coroutine on the portal's loop and waits for it.

        One that `waits`, as for the end of a task, says nothing of how busy the node is. Beside any
        other call the loop is not idle: what comes at the same time is to share a sync.

        One that may begin `at_once` gets no task where this thread runs the loop and nothing else
        is to be done, until it has to wait: most do not. Up to there it must not ask for the
        current task, as `asyncio.timeout` does.
        """
        assert not self.is_here(), "the portal would wait for itself"
        if os.getpid() != self._process_id:
            coroutine.close()
            raise Unavailable("This app belongs to the process that opened it, before a fork")
        is_quiet = _never if self._lent is None or not at_once else self._lent.is_quiet
        call = _Call(coroutine, self.loop, is_quiet)
        is_idle = not self._short
        self._calls.add(call)
        if not waits:
            self._short.add(call)
        try:
            if self._lent is None or not is_idle or not self._lent.run_here(call):
                self.loop.call_soon_threadsafe(call.begin)
            if self._lent is not None and not call.is_over():
                self._lent.stand_by(call)
            return call.result()
        except BaseException as error:
            if call.is_done():  # its own error, or one of this thread's behind its end
                raise
            try:  # an interrupt in this thread, or the loop has ended
                self.loop.call_soon_threadsafe(call.withdraw)
            except RuntimeError:
                call.abandon()
                raise Unavailable("This app was closed") from error
            raise
        finally:
            self._calls.discard(call)
            self._short.discard(call)

    def is_here(self) -> bool:
        """Whether the loop is run by this thread now."""
        return asyncio._get_running_loop() is self.loop

    def nudge(self, callback: Callable[[], None], *, here: bool) -> None:
        """Runs a callback on the loop; `here` if the loop is idle and this thread has time."""
        lent = self._lent if here and not self._short else None
        if lent is not None and lent.hand_over(callback):
            return
        if lent is None or not lent.run_here(_Nudge(callback, self.loop)):
            self.loop.call_soon_threadsafe(callback)

    def call_over_time(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """The same as `call`; on virtual time it lets time pass."""
        return self.call(coroutine)

    async def reach(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Runs a coroutine on the portal's loop while another loop goes on."""
        return await asyncio.wrap_future(self.start(coroutine))

    def abandon(self, finish: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """The user of the portal is gone, or the program ends: a last call, and the loop stops.

        It may be called from anywhere, by the garbage collector too: it waits a moment at most.
        """
        if self.is_here():
            self.loop.create_task(finish()).add_done_callback(lambda _: self.loop.stop())
        elif self._thread.is_alive():
            with contextlib.suppress(Exception):
                self.start(finish()).result(_ABANDON_S_MAX)
            with contextlib.suppress(RuntimeError):  # the loop has ended
                self.loop.call_soon_threadsafe(self.loop.stop)
            self._thread.join(_ABANDON_S_MAX)

    def close(self) -> None:
        if self._thread.is_alive():
            self.loop.call_soon_threadsafe(self.loop.stop)
            self._thread.join()
