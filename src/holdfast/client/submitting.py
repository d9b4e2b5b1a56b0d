"""An Api whose submissions go through middleware first."""

from collections import deque
from collections.abc import Sequence
from typing import Any, TypeVar

from holdfast.client.middleware import Hooks
from holdfast.gateway.api import Api
from holdfast.gateway.processes.shapes import NewProcessInstance, ProcessInstanceReceipt
from holdfast.gateway.tasks.shapes import NewTask, TaskReceipt
from holdfast.gateway.transactions.shapes import TransactionRequest, TransactionResult

M = TypeVar("M")
_TRANSACTIONS_REMEMBERED = 1_000  # being sent again at the same time, at the most


class MiddlewareCalls:
    """The part of `Holdfast` that is about middleware."""

    api: Api
    hooks: Hooks | None = None  # None: there is none, and nothing is done for it

    def middleware(self, middleware: M) -> M:
        """Adds an object with hooks: any of `before`, `after`, `on_error` and `on_submit`.

        Its hooks are called around every task that is run for this app, and before everything that
        is submitted through it. `before` is called in the order in which middleware was added, the
        others in the opposite order. Hooks may be coroutine functions.
        """
        hooks = self.hooks or Hooks()
        hooks.add(middleware)
        if self.hooks is None:
            wrapped: Any = _Submitting(self.api, hooks)
            self.api, self.hooks = wrapped, hooks
        return middleware


class ChangedPart:
    """A part of an Api, in which some operations are others."""

    def __init__(self, inner: Any, **others: Any) -> None:
        self._inner = inner
        self.__dict__ |= others

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


class _Submitting:
    """Stands before an Api."""

    def __init__(self, inner: Api, hooks: Hooks) -> None:
        self._inner = inner
        self._hooks = hooks
        self._sent: deque[str | None] = deque(maxlen=_TRANSACTIONS_REMEMBERED)
        self.tasks = ChangedPart(inner.tasks, submit=self._submit)
        self.instances = ChangedPart(inner.instances, start=self._start)
        self.transactions = ChangedPart(inner.transactions, commit=self._commit)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def _submit(self, tasks: Sequence[NewTask]) -> list[TaskReceipt]:
        await self._hooks.submitting(tasks)
        return await self._inner.tasks.submit(tasks)

    async def _start(self, instances: Sequence[NewProcessInstance]) -> list[ProcessInstanceReceipt]:
        await self._hooks.submitting(instances)
        return await self._inner.instances.start(instances)

    async def _commit(self, request: TransactionRequest) -> TransactionResult:
        if request.id is None or request.id not in self._sent:  # not when it is sent again
            self._sent.append(request.id)
            new = [each.submit or each.start for each in request.operations]
            await self._hooks.submitting([each for each in new if each is not None])
        return await self._inner.transactions.commit(request)
