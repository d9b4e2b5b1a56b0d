"""What can be asked of a node about transactions."""

from typing import Protocol

from holdfast.engine.identity.values import Permission, ResourceType
from holdfast.gateway.access.needs import WORK, of_process, one
from holdfast.gateway.operation import Namespace, operation
from holdfast.gateway.transactions.shapes import (
    TransactionPage,
    TransactionQuery,
    TransactionRequest,
    TransactionResult,
    TransactionView,
)

_R, _P = ResourceType, Permission
_READ = one(_R.TRANSACTION, _P.READ)
# Each operation needs the permission that it needs alone. A caller that has none is refused here.
_ANY_OPERATION = (
    *one(_R.TASK, _P.CREATE), *WORK, *of_process(_P.CREATE_PROCESS_INSTANCE),
    *one(_R.MESSAGE, _P.CREATE),
)  # fmt: skip


def _decision_ms(request: TransactionRequest) -> int:
    return request.timeout_ms


class TransactionApi(Namespace, Protocol):
    """Operations on several partitions of which all are done, or none."""

    @operation(
        "commit_transaction", "POST", "/v2/transactions", _ANY_OPERATION, takes_ms=_decision_ms
    )
    async def commit(self, request: TransactionRequest) -> TransactionResult:
        """Execute operations as one transaction: all or none.

        It is decided and durable when it returns: committed, or aborted with every known reason.
        """
        ...

    @operation("search_transactions", "POST", "/v2/transactions/search", _READ)
    async def page(self, query: TransactionQuery) -> TransactionPage:
        """List transactions that are open, or whose decision has not reached all partitions."""
        ...

    @operation("get_transaction", "GET", "/v2/transactions/{transaction_key}", _READ)
    async def get(self, transaction_key: str) -> TransactionView:
        """Show a transaction while it is open and for a while after."""
        ...
