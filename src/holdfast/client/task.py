"""A task: a function that can be submitted."""

import functools
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar

import msgspec

from holdfast.client.arguments import Arguments
from holdfast.client.handle import Handle
from holdfast.engine.jobs.values import BackoffKind
from holdfast.errors import InvalidArgument
from holdfast.gateway.tasks.shapes import NewTask, RetryBackoff, TaskOptions

if TYPE_CHECKING:
    from holdfast.client.app import Holdfast

P = ParamSpec("P")
R = TypeVar("R")

Span = float | timedelta  # seconds, or a timedelta


def span_ms(span: Span) -> int:
    """A span in milliseconds."""
    seconds = span.total_seconds() if isinstance(span, timedelta) else span
    return int(seconds * 1000)


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """How the tasks of a function are run."""

    name: str
    retries: int = 3
    backoff: RetryBackoff = RetryBackoff()
    timeout_ms: int = 0
    priority: int = 0
    window_ms: int | None = None
    keep_ms: int | None = None

    def told(self) -> TaskOptions:
        """As a worker tells them to the node, for submissions that do not say."""
        return TaskOptions(
            self.priority, self.retries, self.backoff, self.timeout_ms, self.window_ms, self.keep_ms
        )


class Said(msgspec.Struct, frozen=True):
    """The options that differ from the built-in ones: those that a submission names."""

    priority: int | None
    retries: int | None
    backoff: RetryBackoff | None
    timeout_ms: int | None


def said_by(options: Options) -> Said:
    """What is as everybody has it need not be said: the worker of the task may say otherwise."""
    usual = Options(name=options.name)
    return Said(
        None if options.priority == usual.priority else options.priority,
        None if options.retries == usual.retries else options.retries,
        None if options.backoff == usual.backoff else options.backoff,
        None if options.timeout_ms == usual.timeout_ms else options.timeout_ms,
    )


def backoff_of(backoff: str | RetryBackoff) -> RetryBackoff:
    """ "exponential", "linear", "fixed", or all of it spelled out."""
    if isinstance(backoff, RetryBackoff):
        return backoff
    if backoff not in list(BackoffKind):
        raise InvalidArgument(f"Expected one of {', '.join(BackoffKind)}, but found {backoff!r}")
    return RetryBackoff(BackoffKind(backoff))


class BoundTask(Generic[R]):
    """A task with its arguments, ready to be submitted, alone or with others."""

    def __init__(self, task: "Task[..., R]", payload: bytes) -> None:
        self.task = task
        self.payload = payload

    def submit(
        self,
        *,
        key: str | None = None,
        delay: Span | None = None,
        due: datetime | None = None,
        priority: int | None = None,
    ) -> Handle[R]:
        """Durable when it returns."""
        return self.task.app.submit(self, key=key, delay=delay, due=due, priority=priority)

    def new_task(
        self,
        key: str | None = None,
        delay: Span | None = None,
        due: datetime | None = None,
        priority: int | None = None,
    ) -> NewTask:
        """What goes to the node. Options that nobody set are left to the task's worker."""
        options, said = self.task.options, self.task.said
        return NewTask(
            options.name, msgspec.Raw(self.payload), key,
            said.priority if priority is None else priority,
            said.retries, said.backoff, said.timeout_ms,
            0 if delay is None else span_ms(delay), due, options.window_ms, options.keep_ms,
        )  # fmt: skip


class Task(Generic[P, R]):
    """A function that runs when it is called, and is stored and run by a worker when submitted."""

    def __init__(self, app: "Holdfast", function: Callable[P, R], options: Options) -> None:
        functools.update_wrapper(self, function)
        self.app = app
        self.function = function
        self.options = options
        self.said = said_by(options)
        self.arguments = Arguments(function)

    @property
    def name(self) -> str:
        return self.options.name

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.function(*args, **kwargs)

    def bind(self, *args: P.args, **kwargs: P.kwargs) -> BoundTask[R]:
        """The task with these arguments; checked by the type checker like a call."""
        return BoundTask(self, self.arguments.encode(args, kwargs))

    def submit(
        self,
        *args: Any,
        key: str | None = None,
        delay: Span | None = None,
        due: datetime | None = None,
        priority: int | None = None,
        **kwargs: Any,
    ) -> Handle[R]:
        """Durable when it returns. The same `key` within its window is the same task."""
        bound = BoundTask(self, self.arguments.encode(args, kwargs))
        return self.app.submit(bound, key=key, delay=delay, due=due, priority=priority)

    async def submit_async(
        self,
        *args: Any,
        key: str | None = None,
        delay: Span | None = None,
        due: datetime | None = None,
        priority: int | None = None,
        **kwargs: Any,
    ) -> Handle[R]:
        """Like `submit`, for an event loop."""
        bound = BoundTask(self, self.arguments.encode(args, kwargs))
        return await self.app.submit_async(bound, key=key, delay=delay, due=due, priority=priority)
