"""Long polls: requests that wait, and end early when their client or the server goes."""

import asyncio
from collections.abc import Coroutine
from typing import Any

from litestar.types import Receive

from holdfast.errors import Unavailable


class LongPolls:
    """The long polls that are waiting now."""

    def __init__(self) -> None:
        self._waiting: set[asyncio.Task[Any]] = set()
        self._ended = False

    @property
    def ended(self) -> bool:
        """The server is closing: who would wait gets what there is at once."""
        return self._ended

    def end(self) -> None:
        """Ends all that wait, and lets none begin."""
        self._ended = True
        for work in self._waiting:
            work.cancel()

    async def wait(self, work: Coroutine[Any, Any, Any], receive: Receive) -> "PollOutcome":
        """Does the work, and cancels it when the client goes or the polls end."""
        task = asyncio.ensure_future(work)
        watch = asyncio.ensure_future(_disconnection(receive))
        watch.add_done_callback(lambda _: task.cancel())
        self._waiting.add(task)
        try:
            await asyncio.wait([task])
            return PollOutcome(task, disconnected=watch.done() and not watch.cancelled())
        finally:
            self._waiting.discard(task)
            task.cancel()  # when this wait itself is cancelled; does nothing to work that is done
            watch.cancel()


class PollOutcome:
    """How a long poll ended."""

    def __init__(self, task: asyncio.Task[Any], *, disconnected: bool) -> None:
        self._task = task
        self.disconnected = disconnected

    @property
    def cancelled(self) -> bool:
        return self._task.cancelled()

    @property
    def has_answer(self) -> bool:
        return not self._task.cancelled() and self._task.exception() is None

    def answer(self) -> Any:
        """What the work gave; raises what it raised."""
        if self._task.cancelled():
            raise Unavailable("The node is closing; try again")
        return self._task.result()


async def _disconnection(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
