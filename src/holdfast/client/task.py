"""A task: a function that can be submitted."""

import functools
import inspect
from collections.abc import Callable, Coroutine, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, Protocol, TypeVar, overload

import msgspec

from holdfast.client.arguments import RESERVED, Arguments
from holdfast.client.expecting import Span, expect, span_ms
from holdfast.client.handle import Handle
from holdfast.engine.jobs.values import BackoffKind
from holdfast.errors import InvalidArgument
from holdfast.gateway.tasks.shapes import NewTask, RetryBackoff, TaskOptions
from holdfast.limits import PRIORITY_MAX

if TYPE_CHECKING:
    from holdfast.client.app import Holdfast

P = ParamSpec("P")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


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


class BoundTask(Generic[R_co]):
    """A task with its arguments, ready to be submitted, alone or with others."""

    def __init__(
        self, task: "Task[..., R_co]", payload: bytes, headers: Mapping[str, str] | None = None
    ) -> None:
        self.task = task
        self.payload = payload
        self.headers = headers

    def with_headers(self, headers: Mapping[str, str]) -> "BoundTask[R_co]":
        """Adds headers for the worker, which reads them as `current_job().headers`."""
        return BoundTask(self.task, self.payload, {**(self.headers or {}), **headers})

    def submit(
        self,
        *,
        key: str | None = None,
        delay: Span | None = None,
        due: datetime | None = None,
        priority: int | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Handle[R_co]:
        """Durable when it returns. The same `key` within its window is the same task.

        `headers` are for the worker, as `current_job().headers`.
        """
        bound = self if headers is None else self.with_headers(headers)
        return self.task.app.submit(bound, key=key, delay=delay, due=due, priority=priority)

    async def submit_async(
        self,
        *,
        key: str | None = None,
        delay: Span | None = None,
        due: datetime | None = None,
        priority: int | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Handle[R_co]:
        """Like `submit`, for an event loop."""
        app, bound = self.task.app, self if headers is None else self.with_headers(headers)
        return await app.submit_async(bound, key=key, delay=delay, due=due, priority=priority)

    def new_task(
        self,
        key: str | None = None,
        delay: Span | None = None,
        due: datetime | None = None,
        priority: int | None = None,
    ) -> NewTask:
        """The request to the node. Options that are not set come from the task's worker."""
        if key is not None:
            expect("key", key, str)
        if due is not None:
            expect("due", due, datetime)
        if priority is not None:
            _check_priority(priority)
        options, said = self.task.options, self.task.said
        return NewTask(
            options.name, msgspec.Raw(self.payload), key,
            said.priority if priority is None else priority,
            said.retries, said.backoff, said.timeout_ms,
            0 if delay is None else span_ms(delay, "delay"), due,
            options.window_ms, options.keep_ms,
            dict(self.headers) if self.headers else {},
        )  # fmt: skip


class Task(Generic[P, R]):
    """A function that a call runs here, and that `submit` stores for a worker.

    `R` is what the function gives in the end: of a coroutine function, what awaiting it gives.
    """

    def __init__(
        self,
        app: "Holdfast",
        function: Callable[P, R] | Callable[P, Coroutine[Any, Any, R]],
        options: Options,
    ) -> None:
        functools.update_wrapper(self, function)
        self.app = app
        self.function = function
        self.options = options
        self.said = said_by(options)
        self.arguments = Arguments(function, app.values)
        self.is_async = inspect.iscoroutinefunction(function)

    @property
    def name(self) -> str:
        return self.options.name

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R | Coroutine[Any, Any, R]:
        return self.function(*args, **kwargs)

    def bind(self, *args: P.args, **kwargs: P.kwargs) -> BoundTask[R]:
        """The task with these arguments: to submit it with a key or a delay, or with others."""
        return BoundTask(self, self.arguments.encode(args, kwargs))

    def submit(self, *args: P.args, **kwargs: P.kwargs) -> Handle[R]:
        """Durable when it returns. Type checkers check the arguments like those of a call.

        `task.bind(...).submit(key=..., delay=...)` submits it with options. They may also be given
        here beside the arguments, but a type checker cannot tell them apart.
        """
        options: dict[str, Any] = _taken_out(kwargs) if kwargs else {}
        return self.app.submit(BoundTask(self, self.arguments.encode(args, kwargs)), **options)

    async def submit_async(self, *args: P.args, **kwargs: P.kwargs) -> Handle[R]:
        """Like `submit`, for an event loop."""
        options: dict[str, Any] = _taken_out(kwargs) if kwargs else {}
        bound = BoundTask(self, self.arguments.encode(args, kwargs))
        return await self.app.submit_async(bound, **options)

    def handle(self, key: str) -> Handle[R]:
        """A handle on a task of this function that was submitted earlier, here or elsewhere."""
        return Handle(self.app, key, self.arguments.result_decoder)


class FunctionTask(Task[P, R]):
    """A task of a plain function: a call returns the result."""

    if TYPE_CHECKING:

        def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R: ...


class CoroutineTask(Task[P, R]):
    """A task of a coroutine function: a call returns the coroutine, a handle its result."""

    if TYPE_CHECKING:

        def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, R]: ...


class TaskDecorator(Protocol):
    """What `app.task(...)` with options gives: it makes a function a task."""

    @overload
    def __call__(  # pyright: ignore[reportOverlappingOverload]
        self, function: Callable[P, Coroutine[Any, Any, R]], /
    ) -> CoroutineTask[P, R]: ...

    @overload
    def __call__(self, function: Callable[P, R], /) -> FunctionTask[P, R]: ...


def task_of(app: "Holdfast", function: Callable[..., Any], options: Options) -> Task[..., Any]:
    """The task of a function, by what the function is."""
    kind = CoroutineTask if inspect.iscoroutinefunction(function) else FunctionTask
    return kind(app, function, options)


def new_task_of(
    task: Any,
    key: str | None = None,
    delay: Span | None = None,
    due: datetime | None = None,
    priority: int | None = None,
) -> NewTask:
    """What goes to the node; InvalidArgument for what is no task with its arguments."""
    if isinstance(task, BoundTask):
        return task.new_task(key, delay, due, priority)
    found = f"the task {task.name} without arguments" if isinstance(task, Task) else repr(task)
    hint = f": use {task.name}.bind(...)" if isinstance(task, Task) else ""
    raise InvalidArgument(f"Expected a task with its arguments, but found {found}{hint}")


def _check_priority(priority: int) -> None:
    expect("priority", priority, int)
    if not -PRIORITY_MAX <= priority <= PRIORITY_MAX:
        raise InvalidArgument(
            f"Expected a priority from {-PRIORITY_MAX} to {PRIORITY_MAX}, but found {priority}",
            field="priority",
        )


def _taken_out(kwargs: dict[str, Any]) -> dict[str, Any]:
    """The options of a submission, taken out of the arguments that they were given beside."""
    return {name: kwargs.pop(name) for name in RESERVED if name in kwargs}
