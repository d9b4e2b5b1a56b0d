"""Incidents from a user's program: list them, and decide about each."""

from holdfast.client.expecting import expect
from holdfast.client.portal import Portal
from holdfast.gateway.api import Api
from holdfast.gateway.tasks.shapes import IncidentQuery, IncidentView


class IncidentCalls:
    """The part of `Holdfast` that is about incidents."""

    portal: Portal
    api: Api

    def incidents(
        self, task: str | None = None, limit: int = 100, *, process: str | None = None
    ) -> list[IncidentView]:
        """Open incidents: tasks and elements of processes that wait for a decision."""
        query = IncidentQuery(task, limit=limit, process_id=process)
        return self.portal.call(self.api.incidents.page(query)).items

    async def incidents_async(
        self, task: str | None = None, limit: int = 100, *, process: str | None = None
    ) -> list[IncidentView]:
        """Like `incidents`, for an event loop."""
        query = IncidentQuery(task, limit=limit, process_id=process)
        return (await self.portal.reach(self.api.incidents.page(query))).items

    def retry_incident(self, incident_key: str, retries: int = 0) -> None:
        """Retries a task or element once the cause is fixed; `retries` follow the next attempt."""
        expect("incident_key", incident_key, str)
        self.portal.call(self.api.incidents.resolve(incident_key, retries))

    async def retry_incident_async(self, incident_key: str, retries: int = 0) -> None:
        """Like `retry_incident`, for an event loop."""
        expect("incident_key", incident_key, str)
        await self.portal.reach(self.api.incidents.resolve(incident_key, retries))

    def discard_incident(self, incident_key: str) -> None:
        """Discards an incident with its task, which ends without a result."""
        expect("incident_key", incident_key, str)
        self.portal.call(self.api.incidents.discard(incident_key))

    async def discard_incident_async(self, incident_key: str) -> None:
        """Like `discard_incident`, for an event loop."""
        expect("incident_key", incident_key, str)
        await self.portal.reach(self.api.incidents.discard(incident_key))
