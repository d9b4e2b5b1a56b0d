"""The tables in memory, and what has to be the same in them and in the engine's own state."""

import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from holdfast.journal import Entry
from holdfast.pipeline.changes.fold import fold
from holdfast.pipeline.changes.rows import KnownDefinition, Rows, add
from holdfast.pipeline.schema import INCIDENTS, PROCESS_INSTANCES, TABLES
from holdfast.pipeline.tables.arrow import merged, rows_as_arrow

ENGINE_TESTS = Path(__file__).parents[1] / "engine"
for folder in (ENGINE_TESTS, ENGINE_TESTS / "batch"):
    if str(folder) not in sys.path:
        sys.path.append(str(folder))  # whose random stories are told here too


class MemoryTables:
    """What the executors do for one partition, without files."""

    def __init__(self, partition: int = 1) -> None:
        self.partition = partition
        self.tables: dict[str, pa.Table] = {}
        self.definitions: dict[int, KnownDefinition] = {}

    def take(self, entries: Sequence[Entry]) -> None:
        """One micro-batch."""
        rows = Rows(self.partition, self.definitions)
        fold(entries, rows)
        self.definitions |= rows.deployed
        self._close_incidents(rows)
        for name, table in TABLES.items():
            if table.is_history:
                added = rows_as_arrow(table, rows.history[name])
                known = self.tables.get(name)
                self.tables[name] = pa.concat_tables([known, added]) if known else added
            elif rows.changed[name]:
                self.tables[name] = merged(table, self.tables.get(name), rows.changed[name])

    def _close_incidents(self, rows: Rows) -> None:
        known = {row["incident_key"]: row for row in self.rows(INCIDENTS.name)}
        for incident in rows.ended_incidents:
            instance = known[incident]["process_instance_key"]
            if instance is not None:
                changed = rows.changed[PROCESS_INSTANCES.name]
                row = changed.setdefault(instance, {"partition_id": self.partition})
                row["position"] = 0
                add(row, "incidents", -1)

    def rows(self, name: str) -> list[dict[str, Any]]:
        table = self.tables.get(name)
        return [] if table is None else table.to_pylist()


def _milliseconds(moment: Any) -> int:
    return 0 if moment is None else round(moment.timestamp() * 1000)


def check_tables(tables: Any, view: Any) -> None:
    """Every live thing of the engine is in the tables as it is, and nothing else is live there."""
    _check_jobs(tables, view)
    _check_instances(tables, view)
    _check_elements(tables, view)
    _check_variables(tables, view)
    _check_messages(tables, view)
    check_batches(tables, view)


def _check_jobs(tables: Any, view: Any) -> None:
    live = {row["job_key"]: row for row in tables.rows("jobs") if row["ended"] is None}
    known = dict(view.jobs.jobs.scan())
    assert live.keys() == known.keys()
    for key, job in known.items():
        row = live[key]
        assert row["state"] == view.jobs.state_of(key, job)
        assert row["retries"] == job.retries
        assert row["failures"] == job.failures
        assert row["type"] == job.submitted.type
        assert (row["incident_key"] or 0) == job.incident_key
        assert (row["process_instance_key"] or 0) == job.submitted.instance_key
        if row["state"] == "SCHEDULED":
            assert _milliseconds(row["due"]) == job.due_ms


def _check_instances(tables: Any, view: Any) -> None:
    rows = {row["process_instance_key"]: row for row in tables.rows("process_instances")}
    live = {key: row for key, row in rows.items() if row["state"] == "ACTIVE"}
    known = dict(view.processes.instances.scan())
    assert live.keys() == known.keys()
    open_ = dict(view.incidents.open.scan())
    shown = {row["incident_key"]: row for row in tables.rows("incidents") if row["state"] == "OPEN"}
    assert shown.keys() == open_.keys()
    for key, incident in open_.items():
        if not incident.element_key:
            continue
        origin = view.processes.origin(incident.element_key)
        if origin is None:  # the log is cut between an incident and the step of its instance
            continue
        now = (origin.process_id, origin.element_id)
        assert (incident.process_id, incident.element_id) == now
        assert (shown[key]["process_id"], shown[key]["element_id"]) == now
    incidents = Counter(each.instance_key for each in open_.values())
    for key, instance in known.items():
        assert live[key]["process_definition_key"] == instance.definition
        definition = view.processes.definitions.get(instance.definition)
        assert live[key]["process_id"] == definition.process_id
        assert live[key]["parent_element_instance_key"] == (instance.parent or None)
    for key, row in rows.items():
        assert row["incidents"] == incidents[key]


def _check_elements(tables: Any, view: Any) -> None:
    live = {
        row["element_instance_key"]: row
        for row in tables.rows("element_instances")
        if row["state"] == "ACTIVE"
    }
    known = dict(view.processes.elements.scan())
    assert live.keys() == known.keys()
    for key, element in known.items():
        row = live[key]
        definition = view.processes.instances.get(element.instance).definition
        node = view.processes.plans[definition].nodes[element.node]
        assert row["element_id"] == node.id
        assert row["scope_key"] == element.scope
        assert row["process_instance_key"] == element.instance
        assert (row["incident_key"] or 0) == element.incident


def _check_variables(tables: Any, view: Any) -> None:
    shown = {(row["scope_key"], row["name"]): row["value"] for row in tables.rows("variables")}
    for scope, variables in view.processes.variables.scan():
        for name, value in variables.items():
            assert shown[scope, name] == value.decode()


def _check_messages(tables: Any, view: Any) -> None:
    kept = {row["message_key"] for row in tables.rows("messages") if row["state"] == "PUBLISHED"}
    assert kept == {key for key, _ in view.messages.messages.scan()}


# --- batch operations -------------------------------------------------------------------------

OUTCOMES = ("total", "completed", "failed", "skipped", "canceled")


def check_batches(tables: Any, view: Any) -> None:
    """What a partition leads and does of batch operations is in its tables as it is."""
    _check_operations(tables, view)
    _check_parts(tables, view)


def _check_operations(tables: Any, view: Any) -> None:
    rows = {row["batch_operation_key"]: row for row in tables.rows("batch_operations")}
    led = {key: row for key, row in view.batches.operations.scan() if view.batches.leads(key)}
    assert {key for key, row in rows.items() if row["ended"] is None} == led.keys()
    for key, stored in led.items():
        row, operation = rows[key], stored.operation
        assert row["state"] == stored.state
        assert row["type"] == operation.type
        assert row["filter"] == operation.filter.decode()
        assert (row["throttle"], row["priority"]) == (operation.throttle, operation.priority)
        assert row["partitions"] == len(operation.partitions)
        assert row["partitions_ended"] == stored.reported
        reports = view.batches.reports(key)
        for outcome in OUTCOMES:
            assert row[outcome] == sum(getattr(each.counts, outcome) for each in reports)


def _check_parts(tables: Any, view: Any) -> None:
    rows = {row["batch_operation_key"]: row for row in tables.rows("batch_operation_partitions")}
    parts = dict(view.batches.parts.scan())
    assert {key for key, row in rows.items() if row["ended"] is None} == parts.keys()
    items: dict[int, Counter[str]] = {}
    for row in tables.rows("batch_operation_items"):
        items.setdefault(row["batch_operation_key"], Counter())[row["state"]] += 1
    for key, part in parts.items():
        for outcome in OUTCOMES:
            assert rows[key][outcome] == getattr(part.counts, outcome)
        assert (rows[key]["started"] is not None) == part.is_started
    for key, row in rows.items():
        states = items.get(key, Counter())
        assert states.total() == row["total"]
        left = row["total"]
        for outcome in OUTCOMES[1:]:
            assert states[outcome.upper()] == row[outcome]
            left -= row[outcome]
        assert states["ACTIVE"] == left
        assert left == 0 or key in parts, "what is over has an outcome for every item"
