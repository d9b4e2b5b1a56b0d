"""`Holdfast`: what a user's program holds, opened on a folder or connected to a node."""

import asyncio
import os
import threading
import weakref
from collections.abc import Callable, Coroutine, Iterable, Sequence
from contextlib import ExitStack
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, overload

from holdfast.client.codec import ValueCodec, Values
from holdfast.client.console_calls import ConsoleCalls
from holdfast.client.content import ContentCalls
from holdfast.client.detached import DETACHED, detached_api
from holdfast.client.embedded import open_node
from holdfast.client.expecting import Span, expect, span_ms
from holdfast.client.groups import GroupCalls
from holdfast.client.handle import Handle
from holdfast.client.incidents import IncidentCalls
from holdfast.client.opening import AppOpening
from holdfast.client.patience import patient
from holdfast.client.portal import Portal
from holdfast.client.process_calls import ProcessCalls
from holdfast.client.schedules import ScheduleCalls
from holdfast.client.submitting import MiddlewareCalls
from holdfast.client.task import (
    BoundTask,
    CoroutineTask,
    FunctionTask,
    Options,
    Task,
    TaskDecorator,
    backoff_of,
    new_task_of,
    task_of,
)
from holdfast.client.transaction import Transaction
from holdfast.client.worker import Worker, WorkerMode
from holdfast.config import Config, load_config
from holdfast.errors import InvalidArgument
from holdfast.gateway.api import Api
from holdfast.gateway.tasks.new_jobs import task_defaults
from holdfast.gateway.tasks.shapes import RetryBackoff, TaskReceipt
from holdfast.limits import TASKS_PER_SUBMIT_MAX

P = ParamSpec("P")
R = TypeVar("R")


class Holdfast(
    ProcessCalls, ScheduleCalls, IncidentCalls, ContentCalls, GroupCalls, ConsoleCalls,
    MiddlewareCalls,
):  # fmt: skip
    """A durable work log: programs submit tasks to it, and workers run them."""

    def __init__(
        self,
        portal: Portal,
        api: Api,
        close: Callable[[], None],
        workers: int,
        patience_s: float = 0.0,
        codec: ValueCodec | None = None,
    ) -> None:
        self.portal = portal
        self.patience_s = patience_s  # how long what is not known, or not possible now, is asked
        self.api = api
        self.values = Values(codec)
        self.tasks: dict[str, Task[..., Any]] = {}
        self._close = close
        self._workers = workers
        self._worker: Worker | None = None
        self._made = weakref.WeakSet[Worker]()  # workers; one that runs is held by its loop
        self._lock = threading.Lock()
        self._closed = False
        self._subscribers = []
        self._logs = {}
        self._groups = []

    # --- opening ------------------------------------------------------------------------------

    @classmethod
    def open(
        cls,
        folder: str | Path,
        *,
        workers: int = 4,
        config: Config | None = None,
        patience: Span = 10.0,
        codec: ValueCodec | None = None,
    ) -> "Holdfast":
        """Opens a node inside this process, on a folder; `workers` threads run its tasks.

        With `workers=0` no task runs until you start a `worker`. `patience` is how long a call
        waits while the node is overloaded; with 0 it raises `ResourceExhausted`. `codec` encodes
        values of other types, and encrypts.
        """
        portal = Portal("holdfast", lends=True)
        if DETACHED:
            return cls(portal, detached_api(), portal.close, 0, codec=codec)
        path = Path(folder)
        try:
            node = portal.call(open_node(path, config))
        except BaseException:
            portal.close()
            raise

        def close() -> None:
            portal.call(node.close())
            portal.close()

        seconds = span_ms(patience, "patience") / 1000
        app = cls(portal, patient(node.gateway, seconds), close, workers, seconds, codec)
        app.embedded = node.gateway
        return app

    @classmethod
    def open_async(
        cls,
        folder: str | Path,
        *,
        workers: int = 4,
        config: Config | None = None,
        patience: Span = 10.0,
        codec: ValueCodec | None = None,
    ) -> AppOpening:
        """Like `open`, for an event loop: `await` it, or `async with` it, which also closes it."""
        options = {"workers": workers, "config": config, "patience": patience, "codec": codec}
        return AppOpening(partial(cls.open, folder, **options))

    @classmethod
    def connect(
        cls,
        url: str | None = None,
        *,
        token: str | None = None,
        ca: str | os.PathLike[str] | None = None,
        verify: bool = True,
        patience: Span = 10.0,
        codec: ValueCodec | None = None,
    ) -> "Holdfast":
        """Connects to a node; without a URL, to `HOLDFAST_URL` or the default port here.

        A cluster takes the URLs of several members, with commas: if one is not reachable, the next
        is used. `token` (or `HOLDFAST_TOKEN`) authenticates the program. `ca` (or `HOLDFAST_CA`) is
        the certificate file (PEM) of a private authority; `verify=False` trusts any: for tests.
        `patience` is how long a call is retried while the node restarts or is overloaded. Retries
        carry a request id, so that nothing is done twice. With 0, a call is sent once.
        """
        portal = Portal("holdfast")
        if DETACHED:
            return cls(portal, detached_api(), portal.close, 0, codec=codec)
        from holdfast.client.remote import RemoteApi  # an embedded app need not load an HTTP client

        config = load_config()
        if url is None:
            scheme = "https" if config.tls_certificate else "http"
            here = f"{scheme}://{config.host}:{config.port}"
            url = os.environ.get("HOLDFAST_URL") or here
        seconds = span_ms(patience, "patience") / 1000
        api = RemoteApi(url, token, ca=ca, verify=verify, patience_s=seconds)

        def close() -> None:
            left_open.detach()
            portal.call(api.close())
            portal.close()

        app = cls(portal, patient(api, seconds), close, 0, seconds, codec)
        left_open = weakref.finalize(app, portal.abandon, api.close)  # nobody closes it
        return app

    @classmethod
    def connect_async(
        cls,
        url: str | None = None,
        *,
        token: str | None = None,
        ca: str | os.PathLike[str] | None = None,
        verify: bool = True,
        patience: Span = 10.0,
        codec: ValueCodec | None = None,
    ) -> AppOpening:
        """Like `connect`, for an event loop: `await` it, or `async with` it, which closes it."""
        options = {"ca": ca, "verify": verify, "patience": patience, "codec": codec}
        return AppOpening(partial(cls.connect, url, token=token, **options))

    def __enter__(self) -> "Holdfast":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> "Holdfast":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close_async()

    def close(self) -> None:
        """Stops workers and subscribers gracefully, then the node or the connection."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
        with ExitStack() as ending:  # from the last one to the first, whatever one of them raises
            ending.callback(self._close)
            ending.callback(self.close_content)
            ending.callback(self.close_groups)
            ending.callback(self.close_console)
            for each in list(self._made):
                ending.callback(each.stop)

    async def close_async(self) -> None:
        """Like `close`, for an event loop. A close that has begun goes on if this is cancelled."""
        await asyncio.to_thread(self.close)

    # --- tasks --------------------------------------------------------------------------------

    @overload
    def task(  # pyright: ignore[reportOverlappingOverload]
        self, function: Callable[P, Coroutine[Any, Any, R]]
    ) -> CoroutineTask[P, R]: ...

    @overload
    def task(self, function: Callable[P, R]) -> FunctionTask[P, R]: ...

    @overload
    def task(
        self,
        function: None = None,
        *,
        name: str | None = None,
        retries: int = 3,
        backoff: str | RetryBackoff = "exponential",
        timeout: Span | None = None,
        priority: int = 0,
        remember_key: Span | None = None,
        keep_result: Span | None = None,
    ) -> TaskDecorator: ...

    def task(
        self,
        function: Callable[..., Any] | None = None,
        *,
        name: str | None = None,
        retries: int = 3,
        backoff: str | RetryBackoff = "exponential",
        timeout: Span | None = None,
        priority: int = 0,
        remember_key: Span | None = None,
        keep_result: Span | None = None,
    ) -> Any:
        """Makes a function a task. A call still runs it here; `submit` stores it for a worker.

        `timeout` bounds one attempt. `remember_key` is the window of idempotency keys and
        `keep_result` the time that results and errors are kept; both default to the node's setting.
        """

        def make(function: Callable[..., Any]) -> Task[..., Any]:
            options = Options(
                name=function.__name__ if name is None else name,
                retries=retries,
                backoff=backoff_of(backoff),
                timeout_ms=0 if timeout is None else span_ms(timeout, "timeout"),
                priority=priority,
                window_ms=None if remember_key is None else span_ms(remember_key, "remember_key"),
                keep_ms=None if keep_result is None else span_ms(keep_result, "keep_result"),
            )
            if options.name in self.tasks:
                raise InvalidArgument(f"Expected a new task name, but {options.name!r} is taken")
            task_defaults(options.name, options.told())  # refused where it is written
            task = task_of(self, function, options)
            self.tasks[options.name] = task
            if self._worker is not None:
                self._worker.add(task)
            return task

        return make if function is None else make(function)

    # --- submitting ---------------------------------------------------------------------------

    def submit(
        self,
        bound: BoundTask[R],
        *,
        key: str | None = None,
        delay: Span | None = None,
        due: datetime | None = None,
        priority: int | None = None,
    ) -> Handle[R]:
        """Durable when it returns."""
        self._ensure_worker()
        new = new_task_of(bound, key, delay, due, priority)
        submitting, at_once = self.api.tasks.submit([new]), self.hooks is None
        return self._handle(self.portal.call(submitting, at_once=at_once)[0], bound)

    async def submit_async(
        self,
        bound: BoundTask[R],
        *,
        key: str | None = None,
        delay: Span | None = None,
        due: datetime | None = None,
        priority: int | None = None,
    ) -> Handle[R]:
        """Like `submit`, for an event loop."""
        self._ensure_worker()
        new = new_task_of(bound, key, delay, due, priority)
        return self._handle((await self.portal.reach(self.api.tasks.submit([new])))[0], bound)

    def submit_many(
        self, tasks: Iterable[BoundTask[R]], *, keys: Sequence[str] | None = None
    ) -> list[Handle[R]]:
        """Submits tasks together: one append, all or none, for every 10,000 without keys."""
        bound = list(tasks)
        return self._handles(self.portal.call(self._submit_many(bound, keys)), bound)

    async def submit_many_async(
        self, tasks: Iterable[BoundTask[R]], *, keys: Sequence[str] | None = None
    ) -> list[Handle[R]]:
        """Like `submit_many`, for an event loop."""
        bound = list(tasks)
        return self._handles(await self.portal.reach(self._submit_many(bound, keys)), bound)

    async def _submit_many(
        self, bound: list[BoundTask[Any]], keys: Sequence[str] | None
    ) -> list[TaskReceipt]:
        self._ensure_worker()
        if keys is not None and len(keys) != len(bound):
            raise InvalidArgument(f"Expected {len(bound)} keys, but found {len(keys)}")
        new = [
            new_task_of(task, key)
            for task, key in zip(bound, keys or [None] * len(bound), strict=True)
        ]
        receipts: list[TaskReceipt] = []
        for start in range(0, len(new), TASKS_PER_SUBMIT_MAX):
            receipts += await self.api.tasks.submit(new[start : start + TASKS_PER_SUBMIT_MAX])
        return receipts

    def handle(self, key: str) -> Handle[Any]:
        """A handle on a task that was submitted earlier, here or elsewhere."""
        expect("key", key, str)
        return Handle(self, key, self.values.decode)

    def _handle(self, made: TaskReceipt, bound: BoundTask[R]) -> Handle[R]:
        return Handle(self, made.task_key, bound.task.arguments.result_decoder, made.created)

    def _handles(self, receipts: list[TaskReceipt], bound: list[BoundTask[R]]) -> list[Handle[R]]:
        return [self._handle(receipt, task) for receipt, task in zip(receipts, bound, strict=True)]

    # --- transactions -------------------------------------------------------------------------

    def transaction(self, *, id: str | None = None, timeout: Span = 30.0) -> Transaction:
        """Operations that take effect together when the block ends, or not at all.

        `with app.transaction() as t:` or `async with`; then `t.submit`, `t.start`, `t.publish` and
        `t.complete`. A transaction with an `id` that was decided within the last minutes is not
        done again: its outcome is the same. It is aborted if partitions do not answer in `timeout`.
        """
        return Transaction(self, id, timeout)

    # --- working ------------------------------------------------------------------------------

    def begin(self) -> None:
        """Starts to run waiting tasks of this app, as the first `submit` does."""
        self._ensure_worker()

    def worker(
        self,
        *,
        concurrency: int = 4,
        mode: WorkerMode | str = WorkerMode.THREADS,
        prefetch: int | None = None,
        lease: Span = 30.0,
        name: str | None = None,
        tasks: Sequence[str] | None = None,
    ) -> Worker:
        """A worker for this app's tasks: `start()` it, or `run()` it until it is stopped."""
        chosen = self.tasks if tasks is None else {task: self.tasks[task] for task in tasks}
        made = Worker(
            self.portal, self.api, chosen, concurrency=concurrency, mode=WorkerMode(mode),
            prefetch=prefetch, lease_ms=span_ms(lease, "lease"), name=name,
        )  # fmt: skip
        self._made.add(made)
        return made

    def _ensure_worker(self) -> None:
        """An embedded app runs its own tasks, from the first submit on.

        Not from their definition on: a function may use what its module defines further down.
        """
        if not self._workers or self._worker is not None:
            return
        with self._lock:
            if self._worker is None and self.tasks:
                self._worker = self.worker(concurrency=self._workers, name="embedded")
                self._worker.start()
