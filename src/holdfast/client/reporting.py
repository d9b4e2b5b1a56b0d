"""A worker reports what became of its jobs: many in a request, and large requests concurrently."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

from holdfast.client.attempt import Done, job_error, log_failure
from holdfast.client.patience import persistently
from holdfast.client.portal import Portal
from holdfast.client.reports import completions_of, failures_of, pieces, too_large
from holdfast.client.task import Task
from holdfast.errors import DeadlineExceeded, Moved, ResourceExhausted, Unavailable, Unknown
from holdfast.gateway.api import Api
from holdfast.gateway.tasks.shapes import Answer
from holdfast.limits import PAYLOAD_BYTES_MAX
from holdfast.logs import log

T = TypeVar("T")

PASSING = (Unavailable, Moved, Unknown, ResourceExhausted, DeadlineExceeded)
"""After these a worker sends its request again: leases keep jobs from being done twice."""

_PASSING_CODES = frozenset(each.code.value for each in PASSING)  # of single reports
_PAUSE_S_MAX = 1.0  # between two attempts, where the node does not say how long
_CONCURRENT_MAX = 3  # large requests that are under way at once
_LARGE_JOBS_MIN = 100  # fewer wait for the request under way: each request has a price of its own


async def until_answered(call: Callable[[], Awaitable[T]], has_ended: Callable[[], bool]) -> T:
    """Asks until the node answers: it may be restarting, or have too much to do."""
    return await persistently(
        call,
        lambda error: isinstance(error, PASSING),
        lambda _: has_ended(),
        pause_s_max=_PAUSE_S_MAX,
    )


class Reporter:
    """Gathers jobs that are done and reports them, until its worker has ended.

    `reported` is told which jobs the node has answered for.
    """

    def __init__(
        self,
        portal: Portal,
        api: Api,
        tasks: Mapping[str, Task[..., Any]],
        reported: Callable[[list[Done]], None],
        has_ended: Callable[[], bool],
    ) -> None:
        self.completed = 0
        self.failed = 0
        self.lost = 0
        self._portal = portal
        self._api = api
        self._tasks = tasks
        self._reported = reported
        self._has_ended = has_ended
        self._done: deque[Done] = deque()
        self._is_told = False  # the loop knows that there is something in `_done`
        self._news = asyncio.Event()
        self._large: set[asyncio.Task[None]] = set()  # requests under way
        self._failure: BaseException | None = None  # of one of them

    def add(self, done: Done, *, here: bool) -> None:
        """Takes what became of a job, from any thread.

        It wakes the loop once for all that gathers until it comes. `here` says whether this thread
        has time to run the loop.
        """
        if done.result is not None and len(done.result) > PAYLOAD_BYTES_MAX:
            done = too_large(done)
            log_failure(self._tasks[done.job.type], done)
        self._done.append(done)
        if not self._is_told:
            self._is_told = True
            self._portal.nudge(self.wake, here=here)
        elif len(self._done) == _LARGE_JOBS_MIN:  # they need not wait for a request under way
            self._portal.nudge(self.wake, here=False)

    def wake(self) -> None:
        """Has it look whether there is something to report, or its worker has ended."""
        self._news.set()

    async def run(self) -> None:
        """Reports, until its worker has ended and everything is reported.

        A node of several processes answers one request while another process works on the next: one
        request at a time would have them take turns.
        """
        try:
            while True:
                if self._failure is not None:
                    raise self._failure
                if self._has_ended() and not self._done and not self._large:
                    return
                self._news.clear()
                if self._large and not self._has_room_beside():
                    await self._news.wait()
                    continue
                self._is_told = False
                done = [self._done.popleft() for _ in range(len(self._done))]
                if not done:
                    await self._news.wait()
                elif len(done) < _LARGE_JOBS_MIN:
                    await self._report(done)
                else:
                    request = asyncio.create_task(self._report(done))
                    self._large.add(request)
                    request.add_done_callback(self._answered)
        finally:
            for request in self._large:
                request.cancel()

    def _has_room_beside(self) -> bool:
        return len(self._large) < _CONCURRENT_MAX and len(self._done) >= _LARGE_JOBS_MIN

    def _answered(self, request: "asyncio.Task[None]") -> None:
        self._large.discard(request)
        if not request.cancelled():
            self._failure = self._failure or request.exception()
        self.wake()

    # --- requests -----------------------------------------------------------------------------

    async def _report(self, done: list[Done]) -> None:
        for piece in pieces(done):
            await self._send(piece)
        self._reported(done)

    async def _send(self, done: list[Done]) -> None:
        completions, failures = completions_of(done), failures_of(done)
        errors = [job_error(item, self._tasks) for item in done if item.thrown is not None]
        self.completed += sum(item.is_over for item in done)
        if errors:
            taken = await self._tell(self._api.jobs.throw, errors)
            self.completed += taken  # not `+= await`: other requests count in the meantime
        if completions:
            taken = await self._tell(self._api.jobs.complete, completions)
            self.completed += taken
        if failures:
            taken = await self._tell(self._api.jobs.fail, failures)
            self.failed += taken

    async def _tell(self, report: Callable[[list[Any]], Awaitable[Any]], items: list[Any]) -> int:
        """Reports until every partition has answered; how many reports were taken.

        One that is away keeps nothing from the others: what they answered is not told again.
        """
        left, lost = items, 0

        async def tell() -> None:
            nonlocal left, lost
            answers: list[Answer] = await report(left)
            passing = {each.key: each for each in answers if each.code in _PASSING_CODES}
            lost += self._count_lost([each for each in answers if each.key not in passing])
            left = [each for each in left if each.job_key in passing]
            if left:
                raise Unavailable(passing[left[0].job_key].message or "a partition is away")

        await until_answered(tell, self._has_ended)
        return len(items) - lost

    def _count_lost(self, answers: list[Answer]) -> int:
        lost = [answer for answer in answers if answer.code is not None]
        for answer in lost:
            log.warning("report refused", job=answer.key, code=answer.code, reason=answer.message)
        self.lost += len(lost)
        return len(lost)
