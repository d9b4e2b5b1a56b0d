"""An Api that does nothing but tell what it was asked, so that tests see the wire alone."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import aiohttp
import msgspec

from holdfast.client.remote import RemoteApi
from holdfast.engine.batch.values import BatchOperationState, BatchOperationType
from holdfast.engine.incidents.values import IncidentReason
from holdfast.engine.jobs.values import JobState
from holdfast.engine.timers.values import CatchUp
from holdfast.gateway.batch.shapes import (
    BatchChange,
    BatchErrorView,
    BatchItemPage,
    BatchItemQuery,
    BatchItemState,
    BatchItemView,
    BatchOperationPage,
    BatchOperationQuery,
    BatchOperationReceipt,
    BatchOperationView,
    BatchPageInfo,
    BatchPartitionView,
    BatchPreview,
    BatchRetry,
    BatchShare,
    NewBatchOperation,
)
from holdfast.gateway.distribution.shapes import (
    DistributionCancellation,
    DistributionPage,
    DistributionQuery,
    DistributionSkip,
    DistributionView,
    TargetState,
    TargetView,
)
from holdfast.gateway.http import HttpServer
from holdfast.gateway.journal.shapes import JournalBounds, PartitionBounds
from holdfast.gateway.node_shapes import Health, PartitionView, Topology
from holdfast.gateway.processes.shapes import (
    ElementState,
    ElementView,
    InstanceState,
    MessageReceipt,
    NewMessage,
    NewMigration,
    NewModification,
    NewProcessInstance,
    NewVariables,
    ProcessDefinition,
    ProcessDefinitionQuery,
    ProcessInstancePage,
    ProcessInstanceQuery,
    ProcessInstanceReceipt,
    ProcessInstanceView,
    ProcessSource,
    Resource,
)
from holdfast.gateway.tasks.shapes import (
    ActivatedJob,
    ActivationRequest,
    Answer,
    HeldJob,
    IncidentPage,
    IncidentQuery,
    IncidentView,
    JobCompletion,
    JobError,
    JobFailure,
    JobOrigin,
    NewSchedule,
    NewTask,
    ScheduleView,
    TaskOutcome,
    TaskPage,
    TaskQuery,
    TaskReceipt,
    TaskView,
)

NOON = datetime(2030, 1, 2, 12, tzinfo=UTC)
ORIGIN = JobOrigin("order", 2, "5", "mail", "6", {"template": "thanks"})
JOB = ActivatedJob("7", "mail", msgspec.Raw(b'{"to":"a"}'), "lease-7", 30_000, 1, 3, True, ORIGIN)


class FakeApi:
    """Keeps each call in `calls`; raises `error` if there is one; long polls wait for `ready`."""

    access = None

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.error: Exception | None = None
        self.jobs: list[ActivatedJob] = [JOB]
        self.condition = Health("UP")
        self.ready = asyncio.Event()
        self.waiting = asyncio.Event()
        self.cancelled = asyncio.Event()
        self.gives_jobs_when_cancelled = False

    async def health(self) -> Health:
        return self.condition

    async def called(self, times: int) -> None:
        """Waits until there were so many calls."""
        async with asyncio.timeout(10):
            while len(self.calls) < times:  # noqa: ASYNC110 - it is the tests' fake, and short
                await asyncio.sleep(0.01)

    def _called(self, *call: Any) -> None:
        self.calls.append(call)
        if self.error is not None:
            raise self.error

    async def _wait(self, wait_ms: int) -> bool:
        """Whether it is ready in time."""
        if wait_ms == 0:
            return self.ready.is_set()
        self.waiting.set()
        try:
            await asyncio.wait_for(self.ready.wait(), wait_ms / 1_000)
        except TimeoutError:
            return False
        except asyncio.CancelledError:
            self.cancelled.set()
            if not self.gives_jobs_when_cancelled:
                raise
        return True

    async def submit(self, tasks: Sequence[NewTask]) -> list[TaskReceipt]:
        self._called("submit", *[(task.type, bytes(task.payload), task.key) for task in tasks])
        return [TaskReceipt(str(index), index == 0) for index, _ in enumerate(tasks)]

    async def task(self, task_key: str) -> TaskView:
        self._called("task", task_key)
        return TaskView(task_key, "mail", JobState.WAITING, created=NOON)

    async def tasks(self, query: TaskQuery) -> TaskPage:
        self._called("tasks", query)
        return TaskPage([TaskView("7", "mail", JobState.WAITING)], after="7")

    async def results(self, task_keys: Sequence[str], wait_ms: int) -> list[TaskOutcome]:
        self._called("results", list(task_keys), wait_ms)
        state = JobState.COMPLETED if await self._wait(wait_ms) else None
        return [TaskOutcome(task_key, state) for task_key in task_keys]

    async def cancel(self, task_key: str) -> None:
        self._called("cancel", task_key)

    async def activate(self, request: ActivationRequest) -> list[ActivatedJob]:
        self._called("activate", request)
        return self.jobs if await self._wait(request.wait_ms) else []

    async def complete(self, jobs: Sequence[JobCompletion]) -> list[Answer]:
        self._called("complete", *[(job.job_key, job.lease, bytes(job.result)) for job in jobs])
        return [Answer(job.job_key) for job in jobs]

    async def fail(self, jobs: Sequence[JobFailure]) -> list[Answer]:
        self._called("fail", *jobs)
        return [Answer(job.job_key, "NOT_FOUND", "no such lease") for job in jobs]

    async def throw(self, jobs: Sequence[JobError]) -> list[Answer]:
        self._called("throw", *[(job.job_key, job.code, bytes(job.variables)) for job in jobs])
        return [Answer(job.job_key) for job in jobs]

    async def update_retries(self, job_key: str, retries: int) -> None:
        self._called("update_retries", job_key, retries)

    async def release(self, jobs: Sequence[HeldJob]) -> list[Answer]:
        self._called("release", *jobs)
        return [Answer(job.job_key) for job in jobs]

    async def extend(self, leases: Sequence[str], lease_ms: int) -> list[Answer]:
        self._called("extend", list(leases), lease_ms)
        return [Answer(lease) for lease in leases]

    async def incidents(self, query: IncidentQuery) -> IncidentPage:
        self._called("incidents", query)
        reason = next(iter(IncidentReason))
        return IncidentPage([IncidentView("9", "7", "mail", reason, "no route", NOON)])

    async def resolve_incident(self, incident_key: str, retries: int) -> None:
        self._called("resolve_incident", incident_key, retries)

    async def discard_incident(self, incident_key: str) -> None:
        self._called("discard_incident", incident_key)

    async def put_schedule(self, schedule_id: str, schedule: NewSchedule) -> ScheduleView:
        self._called("put_schedule", schedule_id, schedule.task.type, schedule.cron)
        return _schedule(schedule_id)

    async def delete_schedule(self, schedule_id: str) -> None:
        self._called("delete_schedule", schedule_id)

    async def schedules(self) -> list[ScheduleView]:
        self._called("schedules")
        return [_schedule("nightly")]

    async def deploy(self, resources: Sequence[Resource]) -> list[ProcessDefinition]:
        self._called("deploy", *resources)
        return [_definition(each.name) for each in resources]

    async def definitions(self, query: ProcessDefinitionQuery) -> list[ProcessDefinition]:
        self._called("definitions", query)
        return [_definition("order")]

    async def definition_source(self, definition_key: str) -> ProcessSource:
        self._called("definition_source", definition_key)
        return ProcessSource(definition_key, "<bpmn>ü</bpmn>")

    async def start(self, instances: Sequence[NewProcessInstance]) -> list[ProcessInstanceReceipt]:
        self._called(
            "start",
            *[
                (each.process_id, each.version, bytes(each.variables), each.key)
                for each in instances
            ],
        )
        return [ProcessInstanceReceipt(str(index), index == 0) for index, _ in enumerate(instances)]

    async def instance(self, instance_key: str) -> ProcessInstanceView:
        self._called("instance", instance_key)
        return _instance(instance_key)

    async def instances(self, query: ProcessInstanceQuery) -> ProcessInstancePage:
        self._called("instances", query)
        return ProcessInstancePage([_instance("5")], after="5")

    async def cancel_instance(self, instance_key: str) -> None:
        self._called("cancel_instance", instance_key)

    async def set_variables(self, scope_key: str, variables: NewVariables) -> None:
        self._called("set_variables", scope_key, bytes(variables.variables), variables.local)

    async def modify_instance(self, instance_key: str, modification: NewModification) -> None:
        self._called("modify_instance", instance_key, msgspec.json.encode(modification))

    async def migrate_instance(self, instance_key: str, migration: NewMigration) -> None:
        self._called("migrate_instance", instance_key, migration)

    async def publish(self, message: NewMessage) -> MessageReceipt:
        self._called("publish", msgspec.json.encode(message))
        return MessageReceipt("11")

    async def distributions(self, query: DistributionQuery) -> DistributionPage:
        self._called("distributions", query)
        return DistributionPage([_distribution("4")], after="4")

    async def distribution(self, distribution_key: str) -> DistributionView:
        self._called("distribution", distribution_key)
        return _distribution(distribution_key)

    async def skip_distribution(self, distribution_key: str, skip: DistributionSkip) -> None:
        self._called("skip_distribution", distribution_key, skip)

    async def cancel_distribution(
        self, distribution_key: str, cancellation: DistributionCancellation
    ) -> None:
        self._called("cancel_distribution", distribution_key, cancellation)

    async def resume_distributions(self, partition: int) -> int:
        self._called("resume_distributions", partition)
        return 12

    async def create_batch_operation(self, new: NewBatchOperation) -> BatchOperationReceipt:
        self._called("create_batch_operation", msgspec.json.encode(new))
        if new.dry_run:
            return BatchOperationReceipt(new.type, preview=PREVIEW)
        return BatchOperationReceipt(new.type, "17")

    async def batch_operation(self, batch_operation_key: str) -> BatchOperationView:
        self._called("batch_operation", batch_operation_key)
        return _batch_operation(batch_operation_key)

    async def batch_operations(self, query: BatchOperationQuery) -> BatchOperationPage:
        self._called("batch_operations", query)
        return BatchOperationPage([_batch_operation("17")], BatchPageInfo(1, False, "a", "b"))

    async def batch_operation_items(self, query: BatchItemQuery) -> BatchItemPage:
        self._called("batch_operation_items", query)
        item = BatchItemView(
            BatchOperationType.CANCEL_PROCESS_INSTANCE, "17", "5", "5", BatchItemState.FAILED,
            NOON, "INVALID_STATE", "it is ü",
        )  # fmt: skip
        return BatchItemPage([item], BatchPageInfo(100_000, True, "a", "b"))

    async def suspend_batch_operation(self, batch_operation_key: str) -> None:
        self._called("suspend_batch_operation", batch_operation_key)

    async def resume_batch_operation(self, batch_operation_key: str) -> None:
        self._called("resume_batch_operation", batch_operation_key)

    async def cancel_batch_operation(self, batch_operation_key: str) -> None:
        self._called("cancel_batch_operation", batch_operation_key)

    async def change_batch_operation(self, batch_operation_key: str, change: BatchChange) -> None:
        self._called("change_batch_operation", batch_operation_key, change)

    async def retry_batch_operation(
        self, batch_operation_key: str, retry: BatchRetry
    ) -> BatchOperationReceipt:
        self._called("retry_batch_operation", batch_operation_key, retry)
        return BatchOperationReceipt(BatchOperationType.RETRY_TASK, "18")

    async def journal_bounds(self) -> JournalBounds:
        self._called("journal_bounds")
        return JournalBounds([PartitionBounds(1, 3, 10), PartitionBounds(2, 0, 0)])

    async def journal_bounds_since(self, since_ms: int) -> JournalBounds:
        self._called("journal_bounds_since", since_ms)
        return JournalBounds([PartitionBounds(1, 7, 10), PartitionBounds(2, 0, 0)])

    async def read_journal(self, partition: int, position: int, bytes_max: int) -> bytes:
        self._called("read_journal", partition, position, bytes_max)
        return msgspec.msgpack.encode([[position, 1_700_000_000_000, b"\xff\x00"]])

    async def topology(self) -> Topology:
        self._called("topology")
        return Topology("1.2.3", [PartitionView(1, 10, 9)])

    async def metrics(self) -> bytes:
        self._called("metrics")
        return b"holdfast_lag_records 0\n"

    async def close(self) -> None:
        self._called("close")


PREVIEW = BatchPreview(3, [BatchShare(1, 1), BatchShare(2, 2)], ["5", "6"])


def _batch_operation(batch_operation_key: str) -> BatchOperationView:
    return BatchOperationView(
        batch_operation_key=batch_operation_key,
        batch_operation_type=BatchOperationType.CANCEL_PROCESS_INSTANCE,
        state=BatchOperationState.ACTIVE,
        start_date=NOON,
        operations_total_count=9,
        operations_completed_count=4,
        operations_failed_count=1,
        errors=[BatchErrorView(2, "QUERY_FAILED", "no ü")],
        filter=msgspec.Raw(b'{"state":"ACTIVE"}'),
        partitions=[BatchPartitionView(1, BatchOperationState.ACTIVE, 9, 4, 1)],
        items_per_second=12.5,
        estimated_end=NOON,
    )


def _schedule(schedule_id: str) -> ScheduleView:
    return ScheduleView(schedule_id, "mail", "0 0 * * *", None, "UTC", CatchUp.ALL, NOON, 3)


def _definition(process_id: str) -> ProcessDefinition:
    return ProcessDefinition("3", process_id, 2, "An order", NOON, True)


def _distribution(distribution_key: str) -> DistributionView:
    targets = [
        TargetView(2, TargetState.REFUSED, 3, NOON, "ValueError: no room for ü"),
        TargetView(3, TargetState.WAITING, 0, behind="3"),
    ]
    return DistributionView(
        distribution_key, 1, "PROCESS", "DEPLOY", "processes", NOON, 1_234, targets
    )


def _instance(instance_key: str) -> ProcessInstanceView:
    inner = ElementView("7", "mail", "JOB", ElementState.INCIDENT, NOON, job_key="8")
    outer = ElementView("6", "box", "SUBPROCESS", ElementState.ACTIVE, NOON, children=[inner])
    return ProcessInstanceView(
        instance_key, "order", InstanceState.ACTIVE, 2, "3", created=NOON,
        variables=msgspec.Raw(b'{"total":7}'), elements=[outer], incidents=1,
    )  # fmt: skip


@asynccontextmanager
async def served(api: FakeApi) -> AsyncIterator[HttpServer]:
    """The api on a free port of loopback."""
    server = HttpServer(api)
    await server.start()
    try:
        yield server
    finally:
        await server.close()


@asynccontextmanager
async def remote(api: FakeApi) -> AsyncIterator[RemoteApi]:
    """A client of the api over HTTP."""
    async with served(api) as server:
        client = RemoteApi(server.url)
        try:
            yield client
        finally:
            await client.close()


class Reply(msgspec.Struct):
    """An HTTP answer as tests look at it."""

    status: int
    headers: dict[str, str]
    content: bytes

    def json(self) -> Any:
        return msgspec.json.decode(self.content)


async def ask(url: str, method: str, path: str, **options: Any) -> Reply:
    """One plain HTTP request."""
    async with aiohttp.ClientSession() as session:
        return await ask_in(session, url, method, path, **options)


async def ask_in(
    session: aiohttp.ClientSession, url: str, method: str, path: str, **options: Any
) -> Reply:
    """One plain HTTP request in a session that stays."""
    async with session.request(method, url + path, **options) as response:
        headers = {name.lower(): value for name, value in response.headers.items()}
        return Reply(response.status, headers, await response.read())
