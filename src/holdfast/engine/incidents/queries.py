"""What can be asked of the open incidents of a partition."""

from itertools import islice

import msgspec

from holdfast.engine.incidents.values import Incident, IncidentReason, cause_line, error_line
from holdfast.engine.kernel.query import Query, questions
from holdfast.engine.reader import Reader
from holdfast.limits import INCIDENTS_COUNTED_MAX, QUERY_ROWS_MAX


class FoundIncident(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """An open incident, with the element that it stops as it is called now."""

    key: int
    incident: Incident
    process_id: str = ""
    element_id: str = ""


class IncidentRows(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Some incidents, and behind which key to go on; 0 if there are no more."""

    items: list[FoundIncident]
    next_after: int = 0


class ListIncidents(Query[IncidentRows], frozen=True):
    """Open incidents behind a key, in the order of their keys; a bounded look."""

    after: int
    limit: int
    type: str | None = None
    process_id: str | None = None
    instance_key: int | None = None
    element_id: str | None = None
    reason: IncidentReason | None = None
    cause: str | None = None  # what `cause_line` makes of its error


def list_incidents(reader: Reader, query: ListIncidents) -> IncidentRows:
    items: list[FoundIncident] = []
    key = looked_at = 0
    incidents = reader.state.incidents
    rows = (
        incidents.open.scan(start=query.after + 1)
        if query.instance_key is None
        else incidents.of_instance(query.instance_key, query.after)
    )
    for key, incident in islice(rows, QUERY_ROWS_MAX):
        looked_at += 1
        if _is_asked(query, incident) and reader.may_read_incident(incident):
            items.append(_found(reader, key, incident))
        if len(items) == query.limit:
            return IncidentRows(items, key)
    return IncidentRows(items, key if looked_at == QUERY_ROWS_MAX else 0)


def _is_asked(query: ListIncidents, incident: Incident) -> bool:
    return (
        query.type in (None, incident.job_type)
        and query.process_id in (None, incident.process_id)
        and query.element_id in (None, incident.element_id)
        and query.reason in (None, incident.reason)
        and (query.cause is None or query.cause == cause_line(incident.error))
    )


def _found(reader: Reader, key: int, incident: Incident) -> FoundIncident:
    # A migration may have made it an instance of another element: the state knows.
    origin = reader.state.processes.origin(incident.element_key) if incident.element_key else None
    if origin is None:
        return FoundIncident(key, incident, incident.process_id, incident.element_id)
    return FoundIncident(key, incident, origin.process_id, origin.element_id)


class FindIncident(Query[FoundIncident | None], frozen=True):
    """An open incident by its key."""

    key: int


def find_incident(reader: Reader, query: FindIncident) -> FoundIncident | None:
    incident = reader.state.incidents.open.get(query.key)
    if incident is None or not reader.may_read_incident(incident):
        return None
    return _found(reader, query.key, incident)


class IncidentCause(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What incidents have in common that have the same cause."""

    process_id: str  # "": they are of tasks
    element_id: str
    type: str  # of the job; "": they are of elements themselves
    reason: IncidentReason
    line: str  # what `cause_line` makes of their errors


class CountedCause(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """How many incidents a cause has, and the first of them."""

    cause: IncidentCause
    incidents: int
    example_key: int
    example: str  # what `error_line` makes of its error
    first_ms: int
    last_ms: int


class CauseRows(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The causes of some incidents, and behind which key to go on; 0 if there are no more."""

    items: list[CountedCause]
    looked_at: int
    next_after: int = 0


class CountCauses(Query[CauseRows], frozen=True):
    """Open incidents behind a key, counted by their causes; a bounded look."""

    after: int
    type: str | None = None
    process_id: str | None = None


def count_causes(reader: Reader, query: CountCauses) -> CauseRows:
    wanted = ListIncidents(query.after, 0, query.type, query.process_id)
    found: dict[IncidentCause, CountedCause] = {}
    key = looked_at = 0
    rows = reader.state.incidents.open.scan(start=query.after + 1)
    for key, incident in islice(rows, INCIDENTS_COUNTED_MAX):
        looked_at += 1
        if _is_asked(wanted, incident) and reader.may_read_incident(incident):
            cause, at = _cause(incident), incident.created_ms
            example = "" if cause in found else error_line(incident.error)
            new = CountedCause(cause, 1, key, example, at, at)
            found[cause] = joined(found[cause], new) if cause in found else new
    counted = list(found.values())
    return CauseRows(counted, looked_at, key if looked_at == INCIDENTS_COUNTED_MAX else 0)


def _cause(incident: Incident) -> IncidentCause:
    return IncidentCause(
        incident.process_id, incident.element_id, incident.job_type, incident.reason,
        cause_line(incident.error),
    )  # fmt: skip


def joined(one: CountedCause, other: CountedCause) -> CountedCause:
    """Two counts of the same cause; the example is that of the first."""
    assert one.cause == other.cause
    return CountedCause(
        one.cause, one.incidents + other.incidents, one.example_key, one.example,
        min(one.first_ms, other.first_ms), max(one.last_ms, other.last_ms),
    )  # fmt: skip


QUERIES = questions(list_incidents, find_incident, count_causes)
