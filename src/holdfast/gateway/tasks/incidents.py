"""Incidents: list them, retry or discard them one by one."""

from collections.abc import Iterator
from datetime import UTC, datetime

import msgspec

from holdfast.engine.incidents.values import Incident, IncidentIntent, JobIncident, Resolution
from holdfast.engine.kernel import Command
from holdfast.engine.state import EngineState
from holdfast.errors import InvalidArgument, NotFound
from holdfast.gateway import checks
from holdfast.gateway.access.asking import Asked
from holdfast.gateway.access.reading import may_read_incident
from holdfast.gateway.tasks.shapes import IncidentPage, IncidentQuery, IncidentView
from holdfast.limits import PAGE_ITEMS_MAX, RETRIES_MAX
from holdfast.records import ValueType, partition_of


class Incidents:
    """What can be asked about incidents."""

    def __init__(self, runner: Asked) -> None:
        self._runner = runner
        self._partitions = len(runner.processors)

    async def incidents(self, query: IncidentQuery) -> IncidentPage:
        """Open incidents in the order of their keys."""
        limit = checks.within(query.limit, 1, PAGE_ITEMS_MAX, "limit")
        after = checks.key_after(query.after, self._partitions, "incident")
        await self._runner.settled()
        items: list[IncidentView] = []
        for key, incident in self._open(query.process_instance_key, after):
            if not _is_wanted(incident, query) or not may_read_incident(self._runner, incident):
                continue
            items.append(_view(key, incident, self._runner.processors[partition_of(key)].view))
            if len(items) == limit:
                return IncidentPage(items, items[-1].incident_key)
        return IncidentPage(items)

    def _open(self, instance_key: str | None, after: int) -> Iterator[tuple[int, Incident]]:
        """The incidents behind a key, of one instance or of all; no instance has a wrong key."""
        if instance_key is None:
            for partition in range(max(partition_of(after), 1), self._partitions + 1):
                view = self._runner.processors[partition].view
                yield from view.incidents.open.scan(start=after + 1)
                after = 0
            return
        try:
            key = checks.key_from(instance_key, self._partitions, "process instance")
        except (InvalidArgument, NotFound):
            return
        view = self._runner.processors[partition_of(key)].view
        yield from view.incidents.of_instance(key, after)

    async def resolve(self, incident_key: str, retries: int) -> None:
        value = Resolution(checks.within(retries, 0, RETRIES_MAX, "retries"))
        await self._do(incident_key, IncidentIntent.RESOLVE, value)

    async def discard(self, incident_key: str) -> None:
        await self._do(incident_key, IncidentIntent.DISCARD, JobIncident())

    async def _do(
        self, incident_key: str, intent: IncidentIntent, value: Resolution | JobIncident
    ) -> None:
        key = checks.key_from(incident_key, self._partitions, "incident")
        command = Command(ValueType.INCIDENT, intent, key, value)
        (reply,) = await self._runner.submit(partition_of(key), [command])
        if error := reply.error():
            raise error


def _is_wanted(incident: Incident, query: IncidentQuery) -> bool:
    return (
        query.type in (None, incident.job_type)
        and query.process_id in (None, incident.process_id)
        and query.process_instance_key in (None, str(incident.instance_key))
    )


def _view(key: int, incident: Incident, state: EngineState) -> IncidentView:
    created = datetime.fromtimestamp(incident.created_ms / 1000, UTC)
    view = IncidentView(
        str(key), str(incident.job_key) if incident.job_key else None, incident.job_type,
        incident.reason, incident.error, created,
    )  # fmt: skip
    if not incident.element_key:
        return view
    # A migration may have made it an instance of another element: the state knows.
    origin = state.processes.origin(incident.element_key)
    return msgspec.structs.replace(
        view,
        process_instance_key=str(incident.instance_key),
        process_id=origin.process_id if origin else incident.process_id,
        element_id=origin.element_id if origin else incident.element_id,
        element_instance_key=str(incident.element_key),
    )
