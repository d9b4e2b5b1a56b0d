"""The gateway inside the node: keeps the `Api` over the partitions, wherever they are."""

from collections.abc import Callable, Sequence

from holdfast.clock import Clock
from holdfast.config import Config
from holdfast.engine.batch.selector import Selector
from holdfast.engine.batch.values import BatchOperationIntent
from holdfast.engine.progress import FindProgress
from holdfast.gateway.access.access import Access
from holdfast.gateway.access.asking import Asked
from holdfast.gateway.access.visible import VisibleTables
from holdfast.gateway.batch.service import Batches
from holdfast.gateway.batch.shapes import (
    BatchChange,
    BatchItemPage,
    BatchItemQuery,
    BatchOperationPage,
    BatchOperationQuery,
    BatchOperationReceipt,
    BatchOperationView,
    BatchRetry,
    NewBatchOperation,
)
from holdfast.gateway.batch.tables import OpenTables, TablesSelector
from holdfast.gateway.distribution.service import Distributions
from holdfast.gateway.distribution.shapes import (
    DistributionCancellation,
    DistributionPage,
    DistributionQuery,
    DistributionSkip,
    DistributionView,
)
from holdfast.gateway.identity.service import IdentityService
from holdfast.gateway.journal.service import JournalReads
from holdfast.gateway.journal.shapes import JournalBounds
from holdfast.gateway.node_shapes import Health, PartitionView, Topology
from holdfast.gateway.processes.definitions import Definitions
from holdfast.gateway.processes.instances import Instances
from holdfast.gateway.processes.messages import Messages
from holdfast.gateway.processes.shapes import (
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
from holdfast.gateway.rest.look import Look
from holdfast.gateway.rest.tables import NoTables, Tables
from holdfast.gateway.tasks.defaults import DefaultsOfTasks
from holdfast.gateway.tasks.incidents import Incidents
from holdfast.gateway.tasks.jobs import Jobs
from holdfast.gateway.tasks.schedules import Schedules
from holdfast.gateway.tasks.service import Tasks
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
from holdfast.metrics import Metrics
from holdfast.partitions import Partitions
from holdfast.version import VERSION

UP = Health("UP")


class Gateway:
    """Everything that can be asked of this node."""

    def __init__(
        self,
        partitions: Partitions,
        config: Config,
        clock: Clock,
        metrics: Metrics,
        open_tables: OpenTables | None = None,
    ) -> None:
        self._config = config
        self._metrics = metrics
        asked = Asked(partitions)
        self.access = Access(config, clock, asked) if config.authorization else None
        self.look = Look(asked, clock)
        self._asked = asked
        self.show_tables(NoTables())
        defaults = DefaultsOfTasks(asked)
        self._tasks = Tasks(asked, config, clock, defaults)
        self._jobs = Jobs(asked, clock, defaults)
        self._incidents = Incidents(asked)
        self._schedules = Schedules(asked, config, clock, defaults)
        self._distributions = Distributions(asked)
        self.identity = IdentityService(asked, self._distributions, clock)
        self._definitions = Definitions(asked, self._distributions, clock)
        self._instances = Instances(asked, config)
        self._messages = Messages(asked)
        self._journal = JournalReads(asked)
        self.health_now: Callable[[], Health] = lambda: UP
        self._batch_operations = Batches(asked, clock, open_tables)
        self.selector: Selector = TablesSelector(self._batch_operations.open_tables)
        metrics.batch.numbers = self._batch_operations.counts.numbers

    def show_tables(self, tables: Tables) -> None:
        """From now on searches are answered from these."""
        self.tables: Tables = VisibleTables(tables, self._asked)

    # --- what can be asked --------------------------------------------------------------------

    async def submit(self, tasks: Sequence[NewTask]) -> list[TaskReceipt]:
        return await self._tasks.submit(tasks)

    async def task(self, task_key: str) -> TaskView:
        return await self._tasks.task(task_key)

    async def tasks(self, query: TaskQuery) -> TaskPage:
        return await self._tasks.tasks(query)

    async def results(self, task_keys: Sequence[str], wait_ms: int) -> list[TaskOutcome]:
        return await self._tasks.results(task_keys, wait_ms)

    async def cancel(self, task_key: str) -> None:
        await self._tasks.cancel(task_key)

    async def activate(self, request: ActivationRequest) -> list[ActivatedJob]:
        return await self._jobs.activate(request)

    async def complete(self, jobs: Sequence[JobCompletion]) -> list[Answer]:
        return await self._jobs.complete(jobs)

    async def fail(self, jobs: Sequence[JobFailure]) -> list[Answer]:
        return await self._jobs.fail(jobs)

    async def throw(self, jobs: Sequence[JobError]) -> list[Answer]:
        return await self._jobs.throw(jobs)

    async def update_retries(self, job_key: str, retries: int) -> None:
        await self._jobs.update_retries(job_key, retries)

    async def release(self, jobs: Sequence[HeldJob]) -> list[Answer]:
        return await self._jobs.release(jobs)

    async def extend(self, leases: Sequence[str], lease_ms: int) -> list[Answer]:
        return await self._jobs.extend(leases, lease_ms)

    async def incidents(self, query: IncidentQuery) -> IncidentPage:
        return await self._incidents.incidents(query)

    async def resolve_incident(self, incident_key: str, retries: int) -> None:
        await self._incidents.resolve(incident_key, retries)

    async def discard_incident(self, incident_key: str) -> None:
        await self._incidents.discard(incident_key)

    async def put_schedule(self, schedule_id: str, schedule: NewSchedule) -> ScheduleView:
        return await self._schedules.put(schedule_id, schedule)

    async def delete_schedule(self, schedule_id: str) -> None:
        await self._schedules.delete(schedule_id)

    async def schedules(self) -> list[ScheduleView]:
        return await self._schedules.all()

    async def deploy(self, resources: Sequence[Resource]) -> list[ProcessDefinition]:
        return await self._definitions.deploy(resources)

    async def definitions(self, query: ProcessDefinitionQuery) -> list[ProcessDefinition]:
        return await self._definitions.definitions(query)

    async def definition_source(self, definition_key: str) -> ProcessSource:
        return await self._definitions.source(definition_key)

    async def start(self, instances: Sequence[NewProcessInstance]) -> list[ProcessInstanceReceipt]:
        return await self._instances.start(instances)

    async def instance(self, instance_key: str) -> ProcessInstanceView:
        return await self._instances.instance(instance_key)

    async def instances(self, query: ProcessInstanceQuery) -> ProcessInstancePage:
        return await self._instances.instances(query)

    async def cancel_instance(self, instance_key: str) -> None:
        await self._instances.cancel(instance_key)

    async def set_variables(self, scope_key: str, variables: NewVariables) -> None:
        await self._instances.set_variables(scope_key, variables)

    async def modify_instance(self, instance_key: str, modification: NewModification) -> None:
        await self._instances.modify(instance_key, modification)

    async def migrate_instance(self, instance_key: str, migration: NewMigration) -> None:
        await self._instances.migrate(instance_key, migration)

    async def publish(self, message: NewMessage) -> MessageReceipt:
        return await self._messages.publish(message)

    async def distributions(self, query: DistributionQuery) -> DistributionPage:
        return await self._distributions.distributions(query)

    async def distribution(self, distribution_key: str) -> DistributionView:
        return await self._distributions.distribution(distribution_key)

    async def skip_distribution(self, distribution_key: str, skip: DistributionSkip) -> None:
        await self._distributions.skip(distribution_key, skip)

    async def cancel_distribution(
        self, distribution_key: str, cancellation: DistributionCancellation
    ) -> None:
        await self._distributions.cancel(distribution_key, cancellation)

    async def resume_distributions(self, partition: int) -> int:
        return await self._distributions.resume(partition)

    async def create_batch_operation(self, new: NewBatchOperation) -> BatchOperationReceipt:
        return await self._batch_operations.create(new)

    async def batch_operation(self, batch_operation_key: str) -> BatchOperationView:
        return await self._batch_operations.operation(batch_operation_key)

    async def batch_operations(self, query: BatchOperationQuery) -> BatchOperationPage:
        return await self._batch_operations.operations(query)

    async def batch_operation_items(self, query: BatchItemQuery) -> BatchItemPage:
        return await self._batch_operations.items(query)

    async def suspend_batch_operation(self, batch_operation_key: str) -> None:
        await self._batch_operations.control(batch_operation_key, BatchOperationIntent.SUSPEND)

    async def resume_batch_operation(self, batch_operation_key: str) -> None:
        await self._batch_operations.control(batch_operation_key, BatchOperationIntent.RESUME)

    async def cancel_batch_operation(self, batch_operation_key: str) -> None:
        await self._batch_operations.control(batch_operation_key, BatchOperationIntent.CANCEL)

    async def change_batch_operation(self, batch_operation_key: str, change: BatchChange) -> None:
        await self._batch_operations.change(batch_operation_key, change)

    async def retry_batch_operation(
        self, batch_operation_key: str, retry: BatchRetry
    ) -> BatchOperationReceipt:
        return await self._batch_operations.retry(batch_operation_key, retry)

    async def journal_bounds(self) -> JournalBounds:
        return await self._journal.bounds()

    async def journal_bounds_since(self, since_ms: int) -> JournalBounds:
        return await self._journal.bounds_since(since_ms)

    async def read_journal(self, partition: int, position: int, bytes_max: int) -> bytes:
        return await self._journal.read(partition, position, bytes_max)

    async def topology(self) -> Topology:
        found = await self._asked.ask_all(FindProgress())
        return Topology(
            VERSION,
            [
                PartitionView(partition, each.next_position, each.processed_position)
                for partition, each in enumerate(found, 1)
            ],
            self._config.host,
            self._config.port,
        )

    async def health(self) -> Health:
        return self.health_now()

    async def metrics(self) -> bytes:
        await self._batch_operations.counts.count()
        return self._metrics.exposition()

    async def close(self) -> None:
        """The node that this gateway belongs to is closed by whoever opened it."""
