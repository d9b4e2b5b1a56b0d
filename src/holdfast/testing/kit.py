"""For users' own tests: an app in memory whose clock stands still until the test turns it.

Nothing runs by itself. `run_all` runs what is due, in the test's own thread, so that a debugger, a
mock and an exception's traceback work as in any other test; `advance` lets time pass.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from contextvars import Context
from functools import partial
from typing import Any, TypeVar

import msgspec

from holdfast.client.app import Holdfast
from holdfast.client.attempt import job_error
from holdfast.client.codec import ValueCodec
from holdfast.client.expecting import Span, span_ms
from holdfast.client.group_work import GroupFunction, Run
from holdfast.client.middleware import Hooks, drive
from holdfast.client.process import ProcessHandle
from holdfast.config import Config
from holdfast.engine.incidents.values import IncidentReason
from holdfast.errors import DeadlineExceeded, Internal, ResourceExhausted
from holdfast.gateway.tasks.shapes import (
    ActivatedJob,
    ActivationRequest,
    JobCompletion,
    JobFailure,
)
from holdfast.limits import LEASE_MS_MAX
from holdfast.testing.group_steps import KitFunction
from holdfast.testing.loop import START_MS, VirtualClock, VirtualLoop
from holdfast.testing.node import MemoryNode

T = TypeVar("T")

_RUNS_MAX = 100_000  # a task that submits itself for ever is found, not waited for
_WORKER = "run_all"
_NO_HOOKS = Hooks()


class VirtualPortal:
    """A door into a virtual loop that only runs while somebody is in it, in the caller's thread."""

    def __init__(self, clock: VirtualClock) -> None:
        self.loop = VirtualLoop(clock)

    def start(self, coroutine: Coroutine[Any, Any, T]) -> "Future[T]":
        """Runs a coroutine as far as it comes without time passing."""
        answer: Future[T] = Future()
        try:
            answer.set_result(self.call(coroutine))
        except BaseException as error:
            answer.set_exception(error)
        return answer

    def call(
        self, coroutine: Coroutine[Any, Any, T], *, waits: bool = False, at_once: bool = False
    ) -> T:
        """Runs a coroutine to its end; DeadlineExceeded if it waits for time or for work."""
        with _no_loop():
            task = self.loop.create_task(coroutine)
            self.loop.run_for(0)
            if not task.done():
                task.cancel()
                self.loop.run_for(0)
                raise DeadlineExceeded(
                    "Expected an answer, but it takes time or work: call `run_all()` or `advance()`"
                )
            return task.result()

    def call_over_time(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Runs a coroutine to its end, however much time that takes."""
        with _no_loop():
            return self.loop.run_until_complete(coroutine)

    def run_in(self, coroutine: Coroutine[Any, Any, T], context: Context) -> T:
        """Like `call_over_time`, in a context."""
        with _no_loop():
            task = self.loop.create_task(coroutine, context=context)
            return self.loop.run_until_complete(task)

    async def reach(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Runs a coroutine for a caller that is on a loop itself: this one or another."""
        if asyncio.get_running_loop() is self.loop:
            return await coroutine
        return self.call(coroutine)

    def nudge(self, callback: Callable[[], None], *, here: bool) -> None:
        """Runs a callback on the loop when somebody is in it next."""
        self.loop.call_soon_threadsafe(callback)

    def advance(self, seconds: float) -> None:
        """Lets time pass and whatever is due in it happen."""
        with _no_loop():
            self.loop.run_for(seconds)

    def close(self) -> None:
        if not self.loop.is_closed():
            self.loop.close()


class TestApp(Holdfast):
    """A `Holdfast` in memory, made by `app`."""

    __test__ = False  # its name looks like a test to pytest

    portal: VirtualPortal  # type: ignore[assignment]

    def __init__(
        self, portal: VirtualPortal, node: MemoryNode, codec: ValueCodec | None = None
    ) -> None:
        super().__init__(
            portal,  # type: ignore[arg-type]
            node.gateway,
            self._close_node,
            workers=0,
            codec=codec,
        )
        self._node = node
        self._loops: set[int] = set()  # incidents of loops that the test was told of

    @property
    def now_ms(self) -> int:
        """What the app's clock shows."""
        return self.portal.loop.clock.now_ms()

    def advance(self, span: Span) -> None:
        """Advances the time: delays end, leases expire, schedules fire. Runs no task."""
        self.portal.advance(span_ms(span, "span") / 1000)
        self._tell_of_loops()

    def start(self, *args: Any, **options: Any) -> ProcessHandle:
        """Like `Holdfast.start`; ResourceExhausted if the process is in a loop without a wait."""
        handle = super().start(*args, **options)
        self._tell_of_loops()
        return handle

    def _tell_of_loops(self) -> None:
        """A test is told of a loop that was stopped, once: it would wait for an end in vain."""
        for processor in self._node.node.runner.processors.values():
            for key, incident in processor.view.incidents.open.scan():
                if incident.reason is IncidentReason.LOOP_LIMIT and key not in self._loops:
                    self._loops.add(key)
                    raise ResourceExhausted(
                        f"Process {incident.process_id!r} was stopped at {incident.element_id!r}:"
                        f" {incident.error}",
                        instance_key=incident.instance_key,
                        element=incident.element_id,
                    )

    def run_all(self) -> int:
        """Runs all tasks that are due, and those that they submit; returns the number of runs.

        A task that raises is retried as always: after its pause, so `advance` first.
        """
        runs = 0
        while job := self._next_job():
            runs += 1
            if runs > _RUNS_MAX:
                raise Internal(
                    f"Expected an end, but {job.type} and others went on after {_RUNS_MAX} runs"
                )
            self._run(job)
        self._tell_of_loops()
        return runs

    def _next_job(self) -> ActivatedJob | None:
        if not self.tasks:
            return None
        wanted = {name: task.arguments.names for name, task in self.tasks.items()}
        request = ActivationRequest(list(self.tasks), _WORKER, 1, LEASE_MS_MAX, 0, wanted)
        return next(iter(self.portal.call(self.api.jobs.activate(request))), None)

    def _run(self, job: ActivatedJob) -> None:
        """One attempt, in a context of its own: outside a task the test is in none."""
        task, hooks = self.tasks[job.type], self.hooks or _NO_HOOKS
        attempt = partial(hooks.run, task, job, catching=Exception)  # a test's own end goes on
        done = drive(attempt, self.portal.run_in)
        if done.is_over:
            return
        if done.thrown is not None:
            self.portal.call(self.api.jobs.throw([job_error(done, self.tasks)]))
        elif done.error is not None:
            failure = JobFailure(
                job.job_key, job.lease, done.error, done.final, done.retry_after_ms
            )
            self.portal.call(self.api.jobs.fail([failure]))
        else:
            result = msgspec.Raw(done.result or b"null")
            completion = JobCompletion(job.job_key, job.lease, result)
            self.portal.call(self.api.jobs.complete([completion]))

    def group_function(self, run: Run) -> GroupFunction:
        """Functions of groups run on the app's own time, also plain ones."""
        return KitFunction(run)

    def _close_node(self) -> None:
        self.portal.call(self._node.close())
        self.portal.close()


@contextmanager
def app(
    *,
    partitions: int = 1,
    start_ms: int = START_MS,
    config: Config | None = None,
    codec: ValueCodec | None = None,
) -> Iterator[TestApp]:
    """An app in memory for one test.

    >>> with app() as work:
    ...     @work.task(retries=1)
    ...     def double(number: int) -> int:
    ...         return number * 2
    ...
    ...     handle = double.bind(21).submit(delay=60)
    ...     before = work.run_all()  # nothing is due yet
    ...     work.advance(60)
    ...     after = work.run_all()
    ...     before, after, handle.result()
    (0, 1, 42)
    """
    clock = VirtualClock(start_ms)
    portal = VirtualPortal(clock)
    node = MemoryNode(partitions=partitions, clock=clock, config=config)
    portal.call(node.start())
    opened = TestApp(portal, node, codec)
    try:
        yield opened
    finally:
        opened.close()


@contextmanager
def _no_loop() -> Iterator[None]:
    """Lets the portal's loop run inside a test that is on another loop itself."""
    outer = asyncio._get_running_loop()
    asyncio._set_running_loop(None)
    try:
        yield
    finally:
        asyncio._set_running_loop(outer)
