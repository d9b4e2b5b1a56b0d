"""Incidents: list them, retry or discard them one by one."""

from datetime import UTC, datetime

import msgspec

from holdfast.engine.incidents.queries import FoundIncident, ListIncidents
from holdfast.engine.incidents.values import IncidentIntent, JobIncident, Resolution
from holdfast.engine.kernel import Command
from holdfast.errors import InvalidArgument, NotFound
from holdfast.gateway import checks
from holdfast.gateway.access.asking import Asked
from holdfast.gateway.tasks.api import IncidentApi
from holdfast.gateway.tasks.shapes import IncidentPage, IncidentQuery, IncidentView
from holdfast.gateway.walk import walk
from holdfast.limits import PAGE_ITEMS_MAX, RETRIES_MAX
from holdfast.records import ValueType, partition_of


class IncidentService(IncidentApi):
    """What can be asked about incidents."""

    def __init__(self, asked: Asked) -> None:
        self._asked = asked

    async def page(self, query: IncidentQuery) -> IncidentPage:
        """Open incidents in the order of their keys."""
        limit = checks.within(query.limit, 1, PAGE_ITEMS_MAX, "limit")
        start = checks.key_after(query.after, self._asked.count, "incident")
        if query.process_instance_key is not None:
            return await self._of_instance(query, start, limit)
        found, last = await walk(
            self._asked, start, limit,
            lambda after, left: ListIncidents(after, left, query.type, query.process_id),
        )  # fmt: skip
        return _page(found, last)

    async def _of_instance(self, query: IncidentQuery, after: int, limit: int) -> IncidentPage:
        """Those of one instance; no instance has a wrong key."""
        instance_key = query.process_instance_key
        assert instance_key is not None
        try:
            key = checks.key_from(instance_key, self._asked.count, "process instance")
        except (InvalidArgument, NotFound):
            return IncidentPage([])
        asked = ListIncidents(after, limit, query.type, query.process_id, key)
        rows = await self._asked.ask(partition_of(key), asked)
        return _page(rows.items, rows.next_after)

    async def resolve(self, incident_key: str, retries: int) -> None:
        value = Resolution(checks.within(retries, 0, RETRIES_MAX, "retries"))
        await self._do(incident_key, IncidentIntent.RESOLVE, value)

    async def discard(self, incident_key: str) -> None:
        await self._do(incident_key, IncidentIntent.DISCARD, JobIncident())

    async def _do(
        self, incident_key: str, intent: IncidentIntent, value: Resolution | JobIncident
    ) -> None:
        key = checks.key_from(incident_key, self._asked.count, "incident")
        command = Command(ValueType.INCIDENT, intent, key, value)
        (reply,) = await self._asked.submit(partition_of(key), [command])
        if error := reply.error():
            raise error


def _page(found: list[FoundIncident], last: int) -> IncidentPage:
    return IncidentPage([_view(each) for each in found], str(last) if last else None)


def _view(found: FoundIncident) -> IncidentView:
    incident = found.incident
    created = datetime.fromtimestamp(incident.created_ms / 1000, UTC)
    view = IncidentView(
        str(found.key), str(incident.job_key) if incident.job_key else None, incident.job_type,
        incident.reason, incident.error, created,
    )  # fmt: skip
    if not incident.element_key:
        return view
    return msgspec.structs.replace(
        view,
        process_instance_key=str(incident.instance_key),
        process_id=found.process_id,
        element_id=found.element_id,
        element_instance_key=str(incident.element_key),
    )
