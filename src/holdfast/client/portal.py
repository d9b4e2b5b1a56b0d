"""A door into an event loop of its own: sync and async methods share one body."""

import asyncio
import concurrent.futures
import contextlib
import threading
from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

from holdfast.errors import Unavailable
from holdfast.event_loop import new_event_loop

T = TypeVar("T")
_ABANDON_S_MAX = 1.0  # that the end of a program waits for connections to be closed


class _Call(Generic[T]):
    """A coroutine that a thread waits for. A bare lock wakes it in half the time a future does."""

    def __init__(self, coroutine: Coroutine[Any, Any, T]) -> None:
        self._coroutine = coroutine
        self._ended = threading.Lock()
        self._ended.acquire()
        self._task: asyncio.Task[T] | None = None

    def begin(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._coroutine)
        self._task.add_done_callback(self._end)

    def _end(self, _: "asyncio.Task[T]") -> None:
        self._ended.release()

    def wait(self) -> T:
        try:
            self._ended.acquire()
        except BaseException:  # Ctrl-C in the thread that waits
            if self._task is not None:
                self._task.get_loop().call_soon_threadsafe(self._task.cancel)
            raise
        assert self._task is not None
        try:
            return self._task.result()
        except asyncio.CancelledError as error:
            raise Unavailable("This app was closed before the answer came") from error


class Portal:
    """A thread with an event loop that coroutines can be handed to from anywhere."""

    def __init__(self, name: str) -> None:
        self.loop = new_event_loop()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()
        self.loop.run_until_complete(self.loop.shutdown_asyncgens())
        self.loop.close()

    def start(self, coroutine: Coroutine[Any, Any, T]) -> "concurrent.futures.Future[T]":
        """Begins a coroutine on the portal's loop."""
        if self.loop.is_closed() or not self._thread.is_alive():
            coroutine.close()
            raise Unavailable("This app was closed")
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop)

    def call(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Runs a coroutine on the portal's loop and waits for it."""
        assert threading.current_thread() is not self._thread, "the portal would wait for itself"
        call = _Call(coroutine)
        try:
            self.loop.call_soon_threadsafe(call.begin)
        except RuntimeError as error:
            coroutine.close()
            raise Unavailable("This app was closed") from error
        return call.wait()

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
        if threading.current_thread() is self._thread:
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
