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
from holdfast.gateway.shapes import NewTask, RetryBackoff

if TYPE_CHECKING:
    from holdfast.client.app import Holdfast

P = ParamSpec("P")
R = TypeVar("R")

Span = float | timedelta  # seconds, or a timedelta


def span_ms(span: Span) -> int:
    """A span in milliseconds."""
    seconds = span.total_seconds() if isinstance(span, timedelta) else span
    return int(seconds * 1000)


class TaskOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How the tasks of a function are run."""

    name: str
    retries: int = 3
    backoff: RetryBackoff = RetryBackoff()
    timeout_ms: int = 0
    priority: int = 0
    window_ms: int | None = None
    keep_ms: int | None = None


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
        """What goes to the node."""
        options = self.task.options
        return NewTask(
            options.name, msgspec.Raw(self.payload), key,
            options.priority if priority is None else priority,
            options.retries, options.backoff, options.timeout_ms,
            0 if delay is None else span_ms(delay), due, options.window_ms, options.keep_ms,
        )  # fmt: skip


class Task(Generic[P, R]):
    """A function that runs when it is called, and is stored and run by a worker when submitted."""

    def __init__(self, app: "Holdfast", function: Callable[P, R], options: TaskOptions) -> None:
        functools.update_wrapper(self, function)
        self.app = app
        self.function = function
        self.options = options
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
