"""Transactions from a user's program: operations that are done together, or not at all."""

from collections.abc import Callable, Mapping
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, overload
from uuid import uuid4

import msgspec

from holdfast.client.expecting import SPAN, Span, expect, span_ms
from holdfast.client.handle import Handle
from holdfast.client.patience import patiently
from holdfast.client.process import ProcessHandle, Variables, new_instance, new_message
from holdfast.client.running import completed, current_job
from holdfast.client.task import BoundTask, Task
from holdfast.engine.transactions.values import TransactionState
from holdfast.errors import (
    DeadlineExceeded,
    InvalidState,
    Moved,
    TransactionAborted,
    Unavailable,
    Unknown,
)
from holdfast.gateway.tasks.shapes import ActivatedJob, JobCompletion
from holdfast.gateway.transactions.shapes import (
    RefusedStep,
    TransactionRequest,
    TransactionResult,
    TransactionStep,
)

if TYPE_CHECKING:
    from holdfast.client.app import Holdfast

P = ParamSpec("P")
R = TypeVar("R")
_NONE = type(None)

# After these the same request with the same id finds out what became of it.
_NOT_KNOWN = (Unknown, Unavailable, Moved, DeadlineExceeded)


class MessageHandle:
    """A message of a transaction; it has a key once the transaction is committed."""

    def __init__(self) -> None:
        self.key = ""

    def __repr__(self) -> str:
        return f"MessageHandle(key={self.key!r})"


class Transaction:
    """Collects operations; all of them take effect when the block ends, or none.

    Nothing is sent before the end of the block, and nothing at all if the block raises. Handles
    have their keys after the block. If the node refuses one operation, nothing is done, and
    `TransactionAborted` names each that was refused.
    """

    def __init__(self, app: "Holdfast", id_: str | None, timeout: Span) -> None:
        expect("id", id_, str, _NONE)
        expect("timeout", timeout, *SPAN)
        self.key = ""  # of the transaction, once it is decided
        self.id = uuid4().hex if id_ is None else id_
        self._app = app
        self._timeout_ms = span_ms(timeout, "timeout")
        self._steps: list[TransactionStep] = []
        self._words: list[str] = []  # what each step is, for people
        self._made: list[Callable[[str], None]] = []  # what is done with the key of each
        self._home_job: str | None = None
        self._is_open = True

    # --- operations ---------------------------------------------------------------------------

    @overload
    def submit(
        self,
        task: BoundTask[R],
        *,
        key: str | None = None,
        delay: Span | None = None,
        due: datetime | None = None,
        priority: int | None = None,
    ) -> Handle[R]: ...

    @overload
    def submit(
        self,
        task: Task[P, R],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> Handle[R]: ...

    def submit(
        self,
        task: Any,
        *args: Any,
        key: str | None = None,
        delay: Span | None = None,
        due: datetime | None = None,
        priority: int | None = None,
        **kwargs: Any,
    ) -> Handle[Any]:
        """Submits a task with its arguments. A `key` that a task already has is rejected.

        `t.submit(task.bind(...), key=...)` submits it with options.
        """
        expect("task", task, Task, BoundTask, named="a task of this app, alone or bound")
        expect("key", key, str, _NONE)
        expect("delay", delay, *SPAN, _NONE)
        expect("due", due, datetime, _NONE)
        expect("priority", priority, int, _NONE)
        bound = task if isinstance(task, BoundTask) else task.bind(*args, **kwargs)
        handle = Handle(self._app, "", bound.task.arguments.result_decoder)
        step = TransactionStep(submit=bound.new_task(key, delay, due, priority))
        self._add(step, f"submit of {bound.task.name!r}", lambda made: setattr(handle, "key", made))
        return handle

    def start(
        self,
        process_id: str,
        variables: Variables | None = None,
        *,
        version: int = 0,
        key: str | None = None,
        keep_result: Span | None = None,
    ) -> ProcessHandle:
        """Starts a process. A `key` that an instance already has is rejected."""
        expect("process_id", process_id, str)
        expect("variables", variables, Mapping, _NONE)
        expect("version", version, int)
        expect("key", key, str, _NONE)
        expect("keep_result", keep_result, *SPAN, _NONE)
        handle = ProcessHandle(self._app, "")
        new = new_instance(self._app.values, process_id, variables, version, key, keep_result)
        step = TransactionStep(start=new)
        self._add(step, f"start of {process_id!r}", lambda made: setattr(handle, "key", made))
        return handle

    def publish(
        self,
        name: str,
        key: str | int = "",
        variables: Variables | None = None,
        *,
        ttl: Span = 0,
        message_id: str | None = None,
    ) -> MessageHandle:
        """Publishes a message. A `message_id` that is still buffered is rejected."""
        expect("name", name, str)
        expect("key", key, str, int)
        expect("variables", variables, Mapping, _NONE)
        expect("ttl", ttl, *SPAN)
        expect("message_id", message_id, str, _NONE)
        message = MessageHandle()
        step = TransactionStep(
            publish=new_message(self._app.values, name, key, variables, ttl, message_id)
        )
        self._add(step, f"publish of {name!r}", lambda made: setattr(message, "key", made))
        return message

    def complete(self, job: ActivatedJob | None = None, result: Any = None) -> None:
        """Completes a job with a result; without `job`, that of the running function.

        The function's own return value counts for nothing then, and its worker reports nothing.
        """
        wanted = "a job that a worker has, as activation and current_job() give it"
        expect("job", job, ActivatedJob, _NONE, named=wanted)
        done = current_job() if job is None else job
        if done.origin is not None and result is None:
            result = {}  # no variables
        values = self._app.values
        data = values.encode(result, place="the result")
        raw = msgspec.Raw(values.sealed_result(done, data) if values.seals else data)
        if done.origin is not None and self._home_job is None:
            self._home_job = done.job_key
        step = TransactionStep(complete=JobCompletion(done.job_key, done.lease, raw))
        self._add(step, f"complete of job {done.job_key}", lambda _: None)

    def _add(self, step: TransactionStep, words: str, made: Callable[[str], None]) -> None:
        if not self._is_open:
            raise InvalidState("Expected an open transaction, but its block has ended")
        self._steps.append(step)
        self._words.append(words)
        self._made.append(made)

    # --- the block ----------------------------------------------------------------------------

    def __enter__(self) -> "Transaction":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._is_open = False
        if kind is None and self._steps:
            self._app.begin()
            self._settle(self._app.portal.call(self._commit()))

    async def __aenter__(self) -> "Transaction":
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._is_open = False
        if kind is None and self._steps:
            self._app.begin()
            self._settle(await self._app.portal.reach(self._commit()))

    async def _commit(self) -> TransactionResult:
        request = TransactionRequest(self._steps, self.id, self._home_job, self._timeout_ms)
        patience_s = self._app.patience_s
        return await patiently(
            lambda: self._app.api.transactions.commit(request),
            _NOT_KNOWN,
            patience_s and patience_s + self._timeout_ms / 1000,  # it may take so long to decide
        )

    def _settle(self, result: TransactionResult) -> None:
        self.key = result.transaction_key
        if result.state is not TransactionState.COMMITTED:
            raise self._aborted(result)
        for made, key in zip(self._made, result.keys, strict=True):
            made(key)
        completed({each.complete.job_key for each in self._steps if each.complete is not None})

    def _aborted(self, result: TransactionResult) -> TransactionAborted:
        told = "; ".join(self._told(each) for each in result.refused)
        return TransactionAborted(
            f"Nothing of transaction {self.key} was done: {told}",
            key=self.key,
            refused=[msgspec.to_builtins(each) for each in result.refused],
        )

    def _told(self, refused: RefusedStep) -> str:
        if refused.operation < 0:
            return f"{refused.code}: {refused.reason}"
        words = self._words[refused.operation]
        return f"operation {refused.operation} ({words}): {refused.code}: {refused.reason}"
