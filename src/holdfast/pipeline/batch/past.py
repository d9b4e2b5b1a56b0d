"""Rows of the tables about batch operations as the API has them, and back."""

from typing import Any

import msgspec

from holdfast.engine.asker import Asker
from holdfast.engine.batch.values import (
    BatchOperation,
    BatchOperationState,
    BatchOperationType,
    Selection,
)
from holdfast.engine.identity.values import OwnerType
from holdfast.engine.processes.values import Activate, Migration, Modification
from holdfast.gateway.batch.shapes import (
    BatchErrorView,
    BatchItemState,
    BatchItemView,
    BatchOperationView,
)
from holdfast.pipeline.search.search import Item

_T = BatchOperationType
_RETRIED = (_T.RESOLVE_INCIDENT, _T.RETRY_TASK)


class _Error(msgspec.Struct):
    partition: int
    type: str
    message: str


class _Activate(msgspec.Struct):
    element_id: str
    ancestor_key: int = 0
    variables: msgspec.Raw = msgspec.Raw(b"{}")


class _Modification(msgspec.Struct):
    activate: list[_Activate]
    terminate: list[int]
    terminate_ids: list[str]
    move: list[tuple[str, str]]
    variables: msgspec.Raw


class _Retries(msgspec.Struct):
    retries: int = 0


class _Migration(msgspec.Struct):
    definition: int
    elements: tuple[tuple[str, str], ...]


_decode_errors = msgspec.json.Decoder(list[_Error]).decode


def operation_view(row: Item) -> BatchOperationView:
    """An operation as its row tells it; the counts are those of partitions that are done."""
    errors = _decode_errors(row["errors"]) if row["errors"] else []
    return BatchOperationView(
        batch_operation_key=str(row["batch_operation_key"]),
        batch_operation_type=_T(row["type"]),
        state=BatchOperationState(row["state"]),
        start_date=row["created"],
        end_date=row["ended"],
        actor_id=row["actor"],
        actor_type=OwnerType(row["actor_type"]) if row["actor_type"] else None,
        operations_total_count=row["total"],
        operations_completed_count=row["completed"],
        operations_failed_count=row["failed"],
        operations_skipped_count=row["skipped"],
        operations_canceled_count=row["canceled"],
        errors=[BatchErrorView(each.partition, each.type, each.message) for each in errors],
        filter=msgspec.Raw(row["filter"].encode()),
        throttle=row["throttle"],
        priority=row["priority"],
        repeats=str(row["repeats"]) if row["repeats"] else None,
        is_selected=row["ended"] is not None,
    )


def operation_of(row: Item) -> BatchOperation:
    """What an operation was: enough to try again what failed."""
    type_ = _T(row["type"])
    plan = row["plan"]
    return BatchOperation(
        type_,
        row["filter"].encode(),
        _modification(plan) if plan and type_ is _T.MODIFY_PROCESS_INSTANCE else None,
        _migration(plan) if plan and type_ is _T.MIGRATE_PROCESS_INSTANCE else None,
        msgspec.json.decode(plan, type=_Retries).retries if plan and type_ in _RETRIED else 0,
        throttle=row["throttle"],
        priority=row["priority"],
        selection=Selection(row["selection"] or ""),
        claims=_claims(row),
        repeats=row["repeats"] or 0,
    )


def _claims(row: Item) -> dict[str, Any] | None:
    """Who created it; None where the row is older than the column that says of which type."""
    if not row["actor"] or not row["actor_type"]:
        return None
    return msgspec.to_builtins(Asker(row["actor"], OwnerType(row["actor_type"])))


def _modification(plan: str) -> Modification:
    told = msgspec.json.decode(plan, type=_Modification)
    return Modification(
        tuple(
            Activate(each.element_id, each.ancestor_key, bytes(each.variables))
            for each in told.activate
        ),
        tuple(told.terminate),
        tuple(told.terminate_ids),
        tuple(told.move),
        bytes(told.variables),
    )


def _migration(plan: str) -> Migration:
    told = msgspec.json.decode(plan, type=_Migration)
    return Migration(told.definition, told.elements)


def item_view(row: Item) -> BatchItemView:
    """An item as its row tells it."""
    instance: Any = row["process_instance_key"]
    return BatchItemView(
        _T(row["type"]),
        str(row["batch_operation_key"]),
        str(row["item_key"]),
        str(instance) if instance else None,
        BatchItemState(row["state"]),
        row["processed"],
        row["error_code"],
        row["error"],
    )
