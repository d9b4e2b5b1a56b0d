"""What the events of definitions and instances change."""

from collections.abc import Callable
from typing import Any

from holdfast.engine.processes import ops
from holdfast.engine.processes.values import Advance, Deployment, InstanceIntent, ProcessIntent
from holdfast.model.definition import decode_definition
from holdfast.pipeline.changes.rows import Applier, KnownDefinition, Rows
from holdfast.pipeline.schema import (
    ELEMENT_INSTANCES,
    PROCESS_DEFINITIONS,
    PROCESS_INSTANCES,
    VARIABLES,
)
from holdfast.records import Record, partition_of


def _deployed(rows: Rows, event: Record) -> None:
    new: Deployment = event.value
    definition = decode_definition(new.body)
    elements = tuple((element.id, element.kind.name) for element in definition.elements)
    known = KnownDefinition(new.process_id, new.version, definition.name, elements)
    rows.deployed[event.key] = known
    if partition_of(event.key) != rows.partition:
        return  # the partition that decided it tells
    row = rows.row(PROCESS_DEFINITIONS, event.key, event)
    row["process_id"] = new.process_id
    row["version"] = new.version
    row["name"] = definition.name
    row["deployed"] = new.deployed_ms


DEFINITION_APPLIERS: dict[ProcessIntent, Applier] = {ProcessIntent.DEPLOYED: _deployed}


class _Step:
    """One step of an instance, while its changes are looked at."""

    __slots__ = ("definition", "definition_key", "event", "rows")

    def __init__(self, rows: Rows, event: Record) -> None:
        self.rows = rows
        self.event = event
        self.follow(event.value.definition)

    def follow(self, definition_key: int) -> None:
        self.definition_key = definition_key
        self.definition = self.rows.definition(definition_key)

    def variables(self, scope: int, values: dict[str, bytes]) -> None:
        for name, value in values.items():
            row = self.rows.row(VARIABLES, (scope, name), self.event)
            row["process_instance_key"] = self.event.key
            row["value"] = value.decode()
            row["updated"] = self.event.timestamp_ms

    def element(self, key: int, node: int) -> dict[str, Any]:
        row = self.rows.row(ELEMENT_INSTANCES, key, self.event)
        row["process_definition_key"] = self.definition_key
        row["process_id"] = self.definition.process_id
        row["element_id"], row["type"] = self.definition.elements[node]
        return row


def _advanced(rows: Rows, event: Record) -> None:
    advance: Advance = event.value
    step = _Step(rows, event)
    for op in advance.ops:
        change = _CHANGES.get(type(op))
        if change is not None:
            change(step, op)


def _began(step: _Step, op: ops.Began) -> None:
    row = step.rows.row(PROCESS_INSTANCES, step.event.key, step.event)
    row["process_definition_key"] = step.definition_key
    row["process_id"] = step.definition.process_id
    row["version"] = step.definition.version
    row["state"] = "ACTIVE"
    row["started"] = step.event.timestamp_ms
    row["incidents"] = row.get("incidents", 0)
    if op.parent:
        row["parent_element_instance_key"] = op.parent
    step.variables(step.event.key, op.variables)


def _activated(step: _Step, op: ops.Activated) -> None:
    row = step.element(op.key, op.node)
    row["process_instance_key"] = step.event.key
    row["scope_key"] = op.scope
    row["state"] = "ACTIVE"
    row["started"] = step.event.timestamp_ms
    if op.item > 0:
        row["item"] = op.item


def _passed(step: _Step, op: ops.Passed) -> None:
    row = step.element(op.key, op.node)
    row["process_instance_key"] = step.event.key
    row["scope_key"] = op.scope
    row["state"] = "COMPLETED"
    row["started"] = row["ended"] = step.event.timestamp_ms


def _completed(step: _Step, op: ops.Completed) -> None:
    _element_ended(step, op.key, "COMPLETED")


def _terminated(step: _Step, op: ops.Terminated) -> None:
    _element_ended(step, op.key, "TERMINATED")


def _element_ended(step: _Step, key: int, state: str) -> None:
    row = step.rows.row(ELEMENT_INSTANCES, key, step.event)
    row["state"] = state
    row["ended"] = step.event.timestamp_ms
    row["incident_key"] = None


def _changed(step: _Step, op: ops.Changed) -> None:
    if op.key != step.event.key:
        row = step.rows.row(ELEMENT_INSTANCES, op.key, step.event)
        row["incident_key"] = op.incident or None


def _variables_set(step: _Step, op: ops.VariablesSet) -> None:
    step.variables(op.scope, op.values)


def _ended(step: _Step, op: ops.Ended) -> None:
    row = step.rows.row(PROCESS_INSTANCES, step.event.key, step.event)
    row["state"] = "CANCELED" if op.canceled else "COMPLETED"
    row["ended"] = step.event.timestamp_ms
    if op.result:
        row["result"] = op.result.decode()


def _rebased(step: _Step, op: ops.Rebased) -> None:
    step.follow(op.definition)
    row = step.rows.row(PROCESS_INSTANCES, step.event.key, step.event)
    row["process_definition_key"] = op.definition
    row["process_id"] = step.definition.process_id
    row["version"] = step.definition.version


def _remapped(step: _Step, op: ops.Remapped) -> None:
    step.element(op.key, op.node)


def _deleted(rows: Rows, event: Record) -> None:
    row = rows.row(PROCESS_INSTANCES, event.key, event)
    row["state"] = "DELETED"
    row["result"] = None


_CHANGES: dict[type, Callable[[_Step, Any], None]] = {
    ops.Began: _began,
    ops.Activated: _activated,
    ops.Passed: _passed,
    ops.Completed: _completed,
    ops.Terminated: _terminated,
    ops.Changed: _changed,
    ops.VariablesSet: _variables_set,
    ops.Ended: _ended,
    ops.Rebased: _rebased,
    ops.Remapped: _remapped,
}
APPLIERS: dict[InstanceIntent, Applier] = dict.fromkeys(
    (
        InstanceIntent.CREATED,
        InstanceIntent.ADVANCED,
        InstanceIntent.COMPLETED,
        InstanceIntent.CANCELED,
        InstanceIntent.MODIFIED,
        InstanceIntent.MIGRATED,
    ),
    _advanced,
) | {InstanceIntent.DELETED: _deleted}
