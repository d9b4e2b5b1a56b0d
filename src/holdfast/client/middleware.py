"""Middleware: what a program has done around every task, and to every submission.

A middleware is an object with any of these hooks, each of which may be a coroutine function:

    before(job)             before the function of a task is called
    after(job, result)      when it has returned
    on_error(job, error)    when it has raised
    on_submit(new)          before a task is submitted or a process is started
"""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Coroutine, Generator, Sequence
from contextvars import Context, copy_context
from typing import Any, NamedTuple

from holdfast.client.attempt import (
    BusinessError,
    Done,
    GiveUpError,
    RetryLaterError,
    log_failure,
)
from holdfast.client.running import current_job, enter_job, failed, returned
from holdfast.client.task import Task
from holdfast.client.views import JobDetails
from holdfast.errors import HoldfastError, InvalidArgument
from holdfast.gateway.processes.shapes import NewProcessInstance
from holdfast.gateway.tasks.shapes import ActivatedJob, NewTask
from holdfast.logs import log

HOOKS = ("before", "after", "on_error", "on_submit")

Wait = Callable[[Awaitable[Any]], Awaitable[Any]]
"""How what a hook or a function wants to wait for is waited for."""

_REFUSALS = (RetryLaterError, GiveUpError, BusinessError)  # in `before`: the task is not to run


class _Member(NamedTuple):
    """The hooks of one middleware; None where it has none."""

    name: str
    before: Callable[..., Any] | None
    after: Callable[..., Any] | None
    on_error: Callable[..., Any] | None
    on_submit: Callable[..., Any] | None


class Hooks:
    """All middleware of an app, in the order in which it was added."""

    def __init__(self) -> None:
        self._members: tuple[_Member, ...] = ()

    def add(self, middleware: object) -> None:
        """The last one is the nearest to the function: its `before` is called last."""
        found = [getattr(middleware, name, None) for name in HOOKS]
        if not any(found):
            raise InvalidArgument(
                f"Expected middleware with one of {', '.join(HOOKS)}, but {middleware!r} has none"
            )
        self._members = (*self._members, _Member(type(middleware).__name__, *found))

    # --- around a task ------------------------------------------------------------------------

    async def run(
        self,
        task: Task[..., Any],
        job: ActivatedJob,
        wait: Wait,
        *,
        is_logged: bool = True,
        catching: type[BaseException] = BaseException,
    ) -> Done:
        """One attempt of a task with all hooks around it.

        What a hook raises is logged and changes nothing, with one exception: `before` refuses the
        attempt by raising what a task may raise to end it.
        """
        enter_job(task, job)
        entered: list[tuple[_Member, JobDetails]] = []
        try:
            seen = current_job()
            for member in self._members:
                await self._call(member, "before", wait, catching, seen)
                entered.append((member, seen))
            result = task.function(**task.arguments.decode(job.payload))
            if task.is_async:
                result = await wait(result)
            done = returned(task, job, result)
        except catching as error:
            done = failed(job, error)
            if is_logged:
                log_failure(task, done, error)
            for member, seen in reversed(entered):
                await self._call(member, "on_error", wait, catching, seen, error)
            return done
        for member, seen in reversed(entered):
            await self._call(member, "after", wait, catching, seen, result)
        return done

    async def _call(
        self, member: _Member, name: str, wait: Wait, catching: type[BaseException],
        job: JobDetails, *more: Any,
    ) -> None:  # fmt: skip
        hook = getattr(member, name)
        if hook is None:
            return
        try:
            outcome = hook(job, *more)
            if inspect.isawaitable(outcome):
                await wait(outcome)
        except catching as error:
            if name == "before" and isinstance(error, _REFUSALS):
                raise
            log.error(
                "middleware failed", middleware=member.name, hook=name, task=job.type,
                key=job.job_key, attempt=job.attempt, exc_info=error,
            )  # fmt: skip

    # --- at a submission ----------------------------------------------------------------------

    async def submitting(self, new: Sequence[NewTask | NewProcessInstance]) -> None:
        """Calls `on_submit` for each; an error of holdfast's refuses the submission."""
        for member in self._members:
            if member.on_submit is None:
                continue
            for each in new:
                try:
                    outcome = member.on_submit(each)
                    if inspect.isawaitable(outcome):
                        await outcome
                except HoldfastError:
                    raise
                except Exception as error:
                    what = each.type if isinstance(each, NewTask) else each.process_id
                    log.error(
                        "middleware failed", middleware=member.name, hook="on_submit",
                        submitted=what, exc_info=error,
                    )  # fmt: skip


async def on_this_loop(awaitable: Awaitable[Any]) -> Any:
    """Waits on the loop that runs."""
    return await awaitable


# --- outside an event loop ---------------------------------------------------------------------


class _Asked:
    """Hands what is to be waited for to the one who drives the coroutine."""

    __slots__ = ("_awaitable",)

    def __init__(self, awaitable: Awaitable[Any]) -> None:
        self._awaitable = awaitable

    def __await__(self) -> Generator[Awaitable[Any], Any, Any]:
        return (yield self._awaitable)


WaitOutside = Callable[[Coroutine[Any, Any, Any], Context], Any]
"""Runs a coroutine to its end, in a context."""


def drive(attempt: Callable[[Wait], Coroutine[Any, Any, Done]], wait: WaitOutside) -> Done:
    """Runs an attempt outside an event loop, in a context of its own.

    A plain function must not find itself on a loop: it may start one. So no loop runs but while
    a hook that is a coroutine function is waited for, in the same context.
    """
    context = copy_context()
    coroutine = attempt(_Asked)
    step, argument = coroutine.send, None
    while True:
        try:
            awaitable = context.run(step, argument)  # type: ignore[arg-type]
        except StopIteration as end:
            return end.value
        try:
            step, argument = coroutine.send, wait(on_this_loop(awaitable), context)
        except BaseException as error:
            step, argument = coroutine.throw, error


class OwnLoop:
    """An event loop of a thread, made when the first hook needs it."""

    def __init__(self) -> None:
        self._runner: asyncio.Runner | None = None

    def run(self, coroutine: Coroutine[Any, Any, Any], context: Context) -> Any:
        self._runner = self._runner or asyncio.Runner()
        return self._runner.run(coroutine, context=context)

    def close(self) -> None:
        if self._runner is not None:
            self._runner.close()
