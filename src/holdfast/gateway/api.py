"""What can be asked of a node: the gateway keeps it inside, a remote client from afar."""

from collections.abc import Sequence
from typing import Protocol

from holdfast.gateway.access.access import Access
from holdfast.gateway.batch.api import BatchApi
from holdfast.gateway.distribution.api import DistributionApi
from holdfast.gateway.identity.api import IdentityApi
from holdfast.gateway.journal.api import JournalApi
from holdfast.gateway.node_shapes import Health, Topology
from holdfast.gateway.processes.api import ProcessApi
from holdfast.gateway.tasks.shapes import (
    ActivatedJob,
    ActivationRequest,
    Answer,
    HeldJob,
    IncidentPage,
    IncidentQuery,
    JobCompletion,
    JobError,
    JobFailure,
    NewSchedule,
    NewTask,
    ScheduleView,
    TaskOutcome,
    TaskPage,
    TaskQuery,
    TaskReceipt,
    TaskView,
)


class Api(ProcessApi, DistributionApi, BatchApi, JournalApi, Protocol):
    """Everything that clients, workers and the CLI need."""

    @property
    def access(self) -> Access | None:
        """Whom whoever serves it to others asks first; None: everybody may do everything."""
        ...

    @property
    def identity(self) -> IdentityApi: ...

    async def submit(self, tasks: Sequence[NewTask]) -> list[TaskReceipt]:
        """Durable when it returns. Tasks without a key are appended together, all or none."""
        ...

    async def task(self, task_key: str) -> TaskView: ...

    async def tasks(self, query: TaskQuery) -> TaskPage: ...

    async def results(self, task_keys: Sequence[str], wait_ms: int) -> list[TaskOutcome]:
        """How tasks ended, waiting up to a time for those that have not."""
        ...

    async def cancel(self, task_key: str) -> None: ...

    async def activate(self, request: ActivationRequest) -> list[ActivatedJob]:
        """Leases waiting jobs to a worker; waits for some if there is none."""
        ...

    async def complete(self, jobs: Sequence[JobCompletion]) -> list[Answer]: ...

    async def fail(self, jobs: Sequence[JobFailure]) -> list[Answer]: ...

    async def throw(self, jobs: Sequence[JobError]) -> list[Answer]:
        """Errors that the processes of the jobs know."""
        ...

    async def update_retries(self, job_key: str, retries: int) -> None: ...

    async def release(self, jobs: Sequence[HeldJob]) -> list[Answer]: ...

    async def extend(self, leases: Sequence[str], lease_ms: int) -> list[Answer]: ...

    async def incidents(self, query: IncidentQuery) -> IncidentPage: ...

    async def resolve_incident(self, incident_key: str, retries: int) -> None: ...

    async def discard_incident(self, incident_key: str) -> None: ...

    async def put_schedule(self, schedule_id: str, schedule: NewSchedule) -> ScheduleView: ...

    async def delete_schedule(self, schedule_id: str) -> None: ...

    async def schedules(self) -> list[ScheduleView]: ...

    async def topology(self) -> Topology: ...

    async def health(self) -> Health: ...

    async def metrics(self) -> bytes:
        """The node's numbers in Prometheus' text format."""
        ...

    async def close(self) -> None: ...
