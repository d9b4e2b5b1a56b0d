"""Which rows an operation chooses its items from.

A filter says which of them are wanted. What cannot be done at all, such as canceling an instance
that has ended, is left out from the beginning: nobody wants to see it counted as skipped.
"""

import msgspec

from holdfast.engine.batch.values import BatchOperation, BatchOperationType
from holdfast.engine.identity.values import EVERY_ID
from holdfast.errors import InvalidArgument
from holdfast.gateway.batch.tables import instances_in, is_of_items
from holdfast.pipeline.schema import (
    BATCH_OPERATION_ITEMS,
    INCIDENTS,
    JOBS,
    PROCESS_INSTANCES,
    ColumnKind,
    Table,
)
from holdfast.pipeline.select.filters import read_filter
from holdfast.pipeline.select.tree import (
    EVERYTHING,
    All,
    Any,
    Compare,
    Comparison,
    Condition,
    Exists,
    OneOf,
    Within,
)

_T = BatchOperationType


class Source(msgspec.Struct, frozen=True):
    """A table, and those of its rows that an operation can do anything with."""

    table: Table
    possible: Condition


def _is(state: str) -> Condition:
    return Compare("state", ColumnKind.TEXT, Comparison.EQ, state)


_DEAD_LETTERS = All((_is("INCIDENT"), Exists("process_instance_key", is_not=True)))
SOURCES: dict[BatchOperationType, Source] = {
    # An instance that another one called ends with it, and cannot be canceled alone.
    _T.CANCEL_PROCESS_INSTANCE: Source(
        PROCESS_INSTANCES, All((_is("ACTIVE"), Exists("parent_element_instance_key", is_not=True)))
    ),
    _T.MODIFY_PROCESS_INSTANCE: Source(PROCESS_INSTANCES, _is("ACTIVE")),
    _T.MIGRATE_PROCESS_INSTANCE: Source(PROCESS_INSTANCES, _is("ACTIVE")),
    _T.DELETE_PROCESS_INSTANCE: Source(
        PROCESS_INSTANCES, OneOf("state", ColumnKind.TEXT, ("COMPLETED", "CANCELED"))
    ),
    _T.RESOLVE_INCIDENT: Source(INCIDENTS, _is("OPEN")),
    _T.RETRY_TASK: Source(JOBS, _DEAD_LETTERS),
    _T.DISCARD_TASK: Source(JOBS, _DEAD_LETTERS),
}


def source_of(operation: BatchOperation) -> Source:
    """Where the items of an operation are."""
    if is_of_items(operation):
        return Source(BATCH_OPERATION_ITEMS, EVERYTHING)
    return SOURCES[operation.type]


def visible_of(operation: BatchOperation) -> Condition:
    """Which rows of its source the creator of an operation may see."""
    visible, table = operation.visible, source_of(operation).table
    if visible is None or is_of_items(operation):  # its items were selected by the same creator
        return EVERYTHING
    processes = _one_of("process_id", visible.processes)
    types = _one_of("type", visible.task_types)
    if table is PROCESS_INSTANCES:
        return processes
    return Any((processes, types)) if table is INCIDENTS else types


def _one_of(column: str, allowed: tuple[str, ...]) -> Condition:
    if EVERY_ID in allowed:
        return Exists(column)
    return OneOf(column, ColumnKind.TEXT, allowed) if allowed else Any(())


def condition_of(operation: BatchOperation) -> Condition:
    """Which rows of its source are the items of an operation; InvalidArgument names the field."""
    try:
        filter_ = msgspec.json.decode(operation.filter)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise InvalidArgument(f"Expected a filter, but it is no JSON: {error}") from error
    if not filter_:
        raise InvalidArgument("Expected a filter with a condition, but it is empty", field="filter")
    source = source_of(operation)
    own, of_instances = filter_, None
    if operation.type is _T.RESOLVE_INCIDENT:
        own, of_instances = instances_in(filter_)
    condition = All((read_filter(source.table, own), source.possible))
    if of_instances is None:
        return condition
    if not of_instances:
        raise InvalidArgument(
            "Expected a filter with a condition, but it is empty", field="processInstance"
        )
    theirs = read_filter(PROCESS_INSTANCES, of_instances)
    return All((condition, Within(PROCESS_INSTANCES.keys[0], PROCESS_INSTANCES.name, theirs)))
