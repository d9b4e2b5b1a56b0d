"""Functions of groups under the test kit: they run on virtual time, one at a time.

A coroutine function runs on the app's loop. A plain one has a thread, but nothing else happens
while it works: the loop goes on only while the function waits, in `Owned.wait` or `Owned.flush`.
"""

import asyncio
import threading
from queue import SimpleQueue
from typing import Any

from holdfast.client.expecting import Span, span_ms
from holdfast.client.group_work import GroupFunction, Owned, Run, awaited
from holdfast.groups import owned as inside


class KitFunction(GroupFunction):
    """Runs a function of a group on virtual time."""

    async def run(self, owned: inside.OwnedRun) -> None:
        loop = asyncio.get_running_loop()
        given = Owned(owned, loop)
        if self._is_async:
            await awaited(self._run, given)
        else:
            given = _Stepped(owned, loop)
            await given.steps(self._run)
        given.hand_in()


class _Stepped(Owned):
    """What a plain function is given: while it waits, the loop runs."""

    def __init__(self, inner: inside.OwnedRun, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(inner, loop)
        self._asked: SimpleQueue[tuple[str, Any]] = SimpleQueue()
        self._answers: SimpleQueue[Any] = SimpleQueue()

    def wait(self, span: Span) -> bool:
        self._ask("wait", span_ms(span, "span") / 1_000)
        return self.is_leaving

    def flush(self, timeout: Span | None = None) -> None:
        error = self._ask("flush", None)
        if error is not None:
            raise error

    def _ask(self, what: str, value: Any) -> Any:
        self._asked.put((what, value))
        return self._answers.get()

    async def steps(self, run: Run) -> None:
        """Lets the function work until it waits, and so on until it ends."""
        threading.Thread(target=self._work, args=(run,), daemon=True).start()
        is_cancelled = False
        while True:
            what, value = self._asked.get()  # no time passes while the function works
            if what == "end":
                if is_cancelled:
                    raise asyncio.CancelledError
                if value is not None:
                    raise value
                return
            answer: Exception | None = None
            try:
                self.hand_in()
                if what == "wait":
                    await self._until_left(value)
                else:
                    await self._inner.flush()
            except asyncio.CancelledError:
                is_cancelled = True
            except Exception as error:
                answer = error
            self._answers.put(answer)

    async def _until_left(self, seconds: float) -> None:
        leaving = asyncio.ensure_future(self.leaving())
        try:
            await asyncio.wait([leaving], timeout=seconds)
        finally:
            leaving.cancel()

    def _work(self, run: Run) -> None:
        error: BaseException | None = None
        try:
            run(self)
        except BaseException as raised:
            error = raised
        self._asked.put(("end", error))
