"""What can be asked of the open incidents of a partition."""

from itertools import islice

import msgspec

from holdfast.engine.incidents.values import Incident
from holdfast.engine.kernel.query import Query, questions
from holdfast.engine.reader import Reader
from holdfast.limits import QUERY_ROWS_MAX


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
        if (
            query.type not in (None, incident.job_type)
            or query.process_id not in (None, incident.process_id)
            or not reader.may_read_incident(incident)
        ):
            continue
        items.append(_found(reader, key, incident))
        if len(items) == query.limit:
            return IncidentRows(items, key)
    return IncidentRows(items, key if looked_at == QUERY_ROWS_MAX else 0)


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


QUERIES = questions(list_incidents, find_incident)
