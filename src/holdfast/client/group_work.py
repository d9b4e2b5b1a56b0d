"""How the function of a group is run for a partition: on a loop of its own, or in a thread.

`Owned` is what the function is given. Its methods can be called from the function's own loop or
thread; what they note is handed to the loop of the app, where the group lives.
"""

import asyncio
import concurrent.futures
import inspect
import threading
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeAlias

from holdfast.client.expecting import Span, span_ms
from holdfast.client.portal import Portal
from holdfast.groups import owned as inside
from holdfast.groups.api import NewPartition, Offset

Run: TypeAlias = "Callable[[Owned], Awaitable[None] | None]"
"""Works on one partition until it is done, or is to be handed over."""


class Owned:
    """A partition while this program owns it.

    A function that returns because the partition `is_leaving` hands it over; another member goes on
    from its `offset`. One that returns otherwise has finished the partition for good. One that
    raises has it parked with the error, and tried again later.
    """

    def __init__(self, inner: inside.OwnedRun, loop: asyncio.AbstractEventLoop) -> None:
        self._inner = inner
        self._loop = loop
        self._lock = threading.Lock()
        self._noted: tuple[Offset, int | None] | None = None
        self._left = threading.Event()
        self._here: asyncio.AbstractEventLoop | None = None  # the function's own
        self._told: asyncio.Event | None = None
        inner.on_leaving.append(self._leave)
        if inner.is_leaving:
            self._left.set()

    def __repr__(self) -> str:
        return repr(self._inner)

    @property
    def token(self) -> str:
        """The partition's name."""
        return self._inner.token

    @property
    def epoch(self) -> int:
        """Grows with each new owner: use it to fence writes to other systems."""
        return self._inner.epoch

    @property
    def offset(self) -> Any:
        """The last committed offset, of this owner or of the previous one.

        An int or a str, as it was committed; None before the first commit.
        """
        return self._inner.offset

    def commit(self, offset: Offset, watermark: int | None = None) -> None:
        """Commits an offset. It is in the group's log within a sixteenth of a second.

        `flush` waits for that. Raises Moved once the partition is not this member's any more.
        """
        self._inner.check_commit(offset, watermark)
        with self._lock:
            is_told = self._noted is not None
            kept = self._noted[1] if self._noted is not None and watermark is None else watermark
            self._noted = offset, kept
        self._inner.offset = offset
        if not is_told:
            self._call(self.hand_in)

    def flush(self, timeout: Span | None = None) -> None:
        """Returns when what was committed is durable; for plain functions.

        Raises Moved if it will not be, because the partition is another member's.
        """
        done: concurrent.futures.Future[None] = concurrent.futures.Future()
        self._call(lambda: self._loop.create_task(self._flush(done)))
        done.result(None if timeout is None else span_ms(timeout, "timeout") / 1_000)

    async def flush_async(self, timeout: Span | None = None) -> None:
        """Like `flush`, for coroutine functions."""
        async with asyncio.timeout(
            None if timeout is None else span_ms(timeout, "timeout") / 1_000
        ):
            if asyncio.get_running_loop() is self._loop:
                self.hand_in()
                await self._inner.flush()
                return
            done: concurrent.futures.Future[None] = concurrent.futures.Future()
            self._call(lambda: self._loop.create_task(self._flush(done)))
            await asyncio.wrap_future(done)

    def split(self, children: Sequence[str | NewPartition]) -> None:
        """Finishes this partition when the function returns, and creates its children."""
        self._inner.split(children)

    def merge(self, child: str, parents: Sequence[str]) -> None:
        """Finishes this partition; the child begins when all of its parents are finished."""
        self._inner.merge(child, parents)

    @property
    def is_leaving(self) -> bool:
        """Whether a hand-over is requested: commit, and return."""
        return self._inner.is_leaving

    async def leaving(self) -> None:
        """Returns when a hand-over is requested; for coroutine functions."""
        if self._told is None:
            self._told, self._here = asyncio.Event(), asyncio.get_running_loop()
        if self.is_leaving:
            return
        await self._told.wait()

    def wait(self, span: Span) -> bool:
        """Waits for a span, or until a hand-over is requested; True if it is.

        For plain functions: `while not owned.wait(5): poll()`.
        """
        return self._left.wait(span_ms(span, "span") / 1_000)

    # --- inside -----------------------------------------------------------------------------

    def hand_in(self) -> None:
        """On the app's loop: what was noted is committed."""
        with self._lock:
            noted, self._noted = self._noted, None
        if noted is not None and self._inner.lost_why is None and self._inner.is_open:
            self._inner.commit(*noted)

    def _call(self, function: Callable[[], Any]) -> None:
        if _running_loop() is self._loop:
            function()
        else:
            self._loop.call_soon_threadsafe(function)

    async def _flush(self, done: "concurrent.futures.Future[None]") -> None:
        self.hand_in()
        try:
            await self._inner.flush()
        except BaseException as error:
            done.set_exception(error)
        else:
            done.set_result(None)

    def _leave(self) -> None:
        self._left.set()
        here, told = self._here, self._told
        if here is None or told is None:
            return
        if here is self._loop:
            told.set()
        else:
            try:
                here.call_soon_threadsafe(told.set)
            except RuntimeError:  # the function's loop has ended
                return


class GroupFunction:
    """Keeps the port `GroupWork` for a function of the user's."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._is_async = is_coroutine_function(run)
        self._portal: Portal | None = None  # for coroutine functions: a loop of their own

    async def run(self, owned: inside.OwnedRun) -> None:
        """Runs the function for a partition; it is on its own, and cannot hold up the app."""
        given = Owned(owned, asyncio.get_running_loop())
        if self._is_async:
            if self._portal is None:
                self._portal = Portal("holdfast-group")
            done = asyncio.wrap_future(self._portal.start(awaited(self._run, given)))
            try:
                await done
            finally:
                done.cancel()
        else:
            await _in_thread(self._run, given)
        given.hand_in()

    async def close(self) -> None:
        """No more functions are run."""
        if self._portal is not None:
            await asyncio.to_thread(self._portal.close)
            self._portal = None


def is_coroutine_function(run: Run) -> bool:
    """Whether it is awaited; also for a callable object."""
    return inspect.iscoroutinefunction(run) or inspect.iscoroutinefunction(
        getattr(run, "__call__", None)  # noqa: B004 - its kind is asked for
    )


async def awaited(run: Run, given: Owned) -> None:
    """Calls a coroutine function and waits for it."""
    found = run(given)
    if found is not None:
        await found


async def _in_thread(run: Run, given: Owned) -> None:
    """A thread cannot be cancelled: a caller that cancels this waits until the function returns."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[None] = loop.create_future()

    def work() -> None:
        error: BaseException | None = None
        try:
            run(given)
        except BaseException as raised:
            error = raised
        try:
            loop.call_soon_threadsafe(_end, done, error)
        except RuntimeError:  # the app was closed meanwhile
            return

    thread = threading.Thread(target=work, name=f"holdfast-group-{given.token}", daemon=True)
    thread.start()
    cancelled: asyncio.CancelledError | None = None
    while not done.done():
        try:
            await asyncio.wait([done])
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        done.exception()
        raise cancelled
    done.result()


def _end(done: "asyncio.Future[None]", error: BaseException | None) -> None:
    if error is None:
        done.set_result(None)
    else:
        done.set_exception(error)


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
