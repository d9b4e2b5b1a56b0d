"""Incidents: list them, retry or discard them one by one."""

from datetime import UTC, datetime

import msgspec

from holdfast.config import Config
from holdfast.engine.ended.values import EndedKind, EndedThing
from holdfast.engine.incidents.queries import (
    CountCauses,
    CountedCause,
    FindIncident,
    FoundIncident,
    IncidentCause,
    ListIncidents,
    joined,
)
from holdfast.engine.incidents.values import (
    IncidentIntent,
    IncidentState,
    JobIncident,
    Resolution,
)
from holdfast.engine.kernel import Command
from holdfast.engine.kernel.others import others
from holdfast.errors import InvalidArgument, NotFound
from holdfast.gateway import checks
from holdfast.gateway.access.asking import Asked
from holdfast.gateway.ended import OLDER, EndedPage, EndedThings, page_of
from holdfast.gateway.shapes import ListScope
from holdfast.gateway.tasks.api import IncidentApi
from holdfast.gateway.tasks.causes import IncidentGroup, IncidentGroupQuery, IncidentGroups
from holdfast.gateway.tasks.shapes import (
    IncidentPage,
    IncidentQuery,
    IncidentView,
)
from holdfast.gateway.walk import walk
from holdfast.limits import (
    INCIDENT_CAUSES_MAX,
    INCIDENTS_GROUPED_MAX,
    PAGE_ITEMS_MAX,
    RETRIES_MAX,
)
from holdfast.records import ValueType, partition_of


class IncidentService(IncidentApi):
    """What can be asked about incidents."""

    def __init__(self, asked: Asked, config: Config) -> None:
        self._asked = asked
        self._ended = EndedThings(asked, config)

    async def page(self, query: IncidentQuery) -> IncidentPage:
        """Those of one instance are on one partition."""
        limit = checks.within(query.limit, 1, PAGE_ITEMS_MAX, "limit")
        instance = None
        if query.process_instance_key is not None:
            try:
                instance = checks.key_from(
                    query.process_instance_key, self._asked.count, "process instance"
                )
            except (InvalidArgument, NotFound):
                return IncidentPage([])  # no instance has a wrong key

        def asked(after: int, left: int) -> ListIncidents:
            return ListIncidents(
                after, left, query.type, query.process_id, instance, query.element_id,
                query.reason, query.cause,
            )  # fmt: skip

        async def list_open(after: str | None, left: int) -> tuple[list[IncidentView], int]:
            start = checks.key_after(after, self._asked.count, "incident")
            if instance is None:
                found, last = await walk(self._asked, start, left, asked)
            else:
                rows = await self._asked.ask(partition_of(instance), asked(start, left))
                found, last = rows.items, rows.next_after
            return [_view(each) for each in found], last

        async def list_ended(after: str | None, left: int) -> EndedPage:
            return await self._ended.page(
                EndedKind.INCIDENT, after, left, state=query.state, type=query.type,
                process_id=query.process_id, instance_key=instance,
            )  # fmt: skip

        scope = query.scope
        if query.state is not None:
            scope = ListScope.OPEN if query.state is IncidentState.OPEN else ListScope.ENDED
        of_open = (query.element_id, query.reason, query.cause)
        if scope is not ListScope.OPEN and any(each is not None for each in of_open):
            raise InvalidArgument(
                "Expected elementId, reason and cause for open incidents only, but found the scope"
                f" {scope}; the tables have those that ended"
            )
        page = await page_of(scope, query.after, limit, list_open, list_ended, ended_view)
        return IncidentPage(page.items, page.after, page.ended_since)

    async def groups(self, query: IncidentGroupQuery) -> IncidentGroups:
        """Partition by partition, until all or enough were looked at."""
        found: dict[IncidentCause, CountedCause] = {}
        looked_at = left_out = 0
        partition, after = 1, 0
        while partition <= self._asked.count and looked_at < INCIDENTS_GROUPED_MAX:
            await others()  # a partition that is here answers without a turn for anybody else
            asked = CountCauses(after, query.type, query.process_id)
            rows = await self._asked.ask(partition, asked)
            looked_at += rows.looked_at
            for each in rows.items:
                if (known := found.get(each.cause)) is not None:
                    found[each.cause] = joined(known, each)
                elif len(found) < INCIDENT_CAUSES_MAX:
                    found[each.cause] = each
                else:
                    left_out += each.incidents
            after = rows.next_after
            if not after:
                partition += 1
        groups = sorted(found.values(), key=lambda each: (-each.incidents, each.example_key))
        is_whole = partition > self._asked.count
        return IncidentGroups([_group(each) for each in groups], looked_at, left_out, is_whole)

    async def get(self, incident_key: str) -> IncidentView:
        key = checks.key_from(incident_key, self._asked.count, "incident")
        found = await self._asked.ask(partition_of(key), FindIncident(key))
        if found is not None:
            return _view(found)
        ended = await self._ended.find(EndedKind.INCIDENT, key)
        if ended is None:
            raise NotFound(
                f"Expected an incident with key {incident_key}, but none is open or ended recently;"
                f" {OLDER}",
                key=incident_key,
            )
        return msgspec.structs.replace(ended_view(ended.thing), error=ended.error)

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


def ended_view(thing: EndedThing) -> IncidentView:
    """An incident that was resolved or discarded."""
    incident = thing.incident
    assert incident is not None, "an incident ended that nothing is known of"
    found = FoundIncident(thing.key, incident, incident.process_id, incident.element_id)
    return msgspec.structs.replace(
        _view(found), state=IncidentState(thing.state), ended=checks.moment(thing.ended_ms)
    )


def _group(counted: CountedCause) -> IncidentGroup:
    cause = counted.cause
    return IncidentGroup(
        counted.incidents, cause.process_id or None, cause.element_id or None, cause.type or None,
        cause.reason, cause.line, str(counted.example_key), counted.example,
        datetime.fromtimestamp(counted.first_ms / 1000, UTC),
        datetime.fromtimestamp(counted.last_ms / 1000, UTC),
    )  # fmt: skip


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
