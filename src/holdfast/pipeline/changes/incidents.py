"""What the events of incidents change."""

from holdfast.engine.incidents.values import Incident, IncidentIntent
from holdfast.pipeline.changes.rows import Applier, Rows, add
from holdfast.pipeline.schema import INCIDENTS, PROCESS_INSTANCES
from holdfast.records import Record


def _created(rows: Rows, event: Record) -> None:
    new: Incident = event.value
    row = rows.row(INCIDENTS, event.key, event)
    row["state"] = "OPEN"
    row["reason"] = str(new.reason)
    row["error"] = new.error
    row["created"] = new.created_ms
    if new.job_key:
        row["job_key"] = new.job_key
        row["type"] = new.job_type
    if new.instance_key:
        row["process_instance_key"] = new.instance_key
        row["process_id"] = new.process_id
        row["element_id"] = new.element_id
        row["element_instance_key"] = new.element_key
        add(rows.row(PROCESS_INSTANCES, new.instance_key, event), "incidents")


def _migrated(rows: Rows, event: Record) -> None:
    now: Incident = event.value
    row = rows.row(INCIDENTS, event.key, event)
    row["process_id"] = now.process_id
    row["element_id"] = now.element_id


def _ended(state: str) -> Applier:
    def ended(rows: Rows, event: Record) -> None:
        row = rows.row(INCIDENTS, event.key, event)
        row["state"] = state
        row["ended"] = event.timestamp_ms
        if "created" not in row:
            rows.ended_incidents.append(event.key)  # the table knows whose it was
        elif instance := row.get("process_instance_key"):
            add(rows.row(PROCESS_INSTANCES, instance, event), "incidents", -1)

    return ended


APPLIERS: dict[IncidentIntent, Applier] = {
    IncidentIntent.CREATED: _created,
    IncidentIntent.RESOLVED: _ended("RESOLVED"),
    IncidentIntent.DISCARDED: _ended("DISCARDED"),
    IncidentIntent.MIGRATED: _migrated,
}
