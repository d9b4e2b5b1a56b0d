"""A node over real HTTP in a thread of its own, with something of everything to be asked about."""

from pathlib import Path

from rest_tables import put_batches, put_processes
from tests.gateway.fake_tables import FakeTables
from tests.pipeline.select_tables import Tables

from holdfast.client.portal import Portal
from holdfast.clock import SystemClock
from holdfast.engine.batch.values import BatchOperation
from holdfast.gateway.batch.shapes import (
    BatchItemPage,
    BatchItemQuery,
    BatchOperationPage,
    BatchOperationQuery,
)
from holdfast.gateway.batch.tables import BatchTables
from holdfast.gateway.http import HttpServer
from holdfast.gateway.processes.shapes import NewMessage, NewProcessInstance, Resource
from holdfast.gateway.tasks.shapes import ActivationRequest, JobFailure, NewTask
from holdfast.model.bpmn import write_bpmn
from holdfast.model.dsl import Process
from holdfast.pipeline.batch.tables import PipelineTables
from holdfast.pipeline.search.search import Search
from holdfast.pipeline.search.serving import FolderTables
from holdfast.testing import MemoryNode

ORDER = (
    Process("order").task("charge", retries=0).wait("paid", message="payment", key="orderId")
)  # fmt: skip


class SearchedTables(FakeTables):
    """Chooses nothing, as nobody selects here; filters, operations and items are the pipeline's."""

    def __init__(self, root: Path) -> None:
        super().__init__()
        self._tables = PipelineTables(root, Search(root), SystemClock())

    async def open(self) -> BatchTables:
        return self

    def check(self, operation: BatchOperation) -> None:
        self._tables.check(operation)

    async def operations(self, query: BatchOperationQuery) -> BatchOperationPage:
        return await self._tables.operations(query)

    async def items(self, query: BatchItemQuery) -> BatchItemPage:
        return await self._tables.items(query)


class FuzzNode:
    """A node that may be asked anything."""

    def __init__(self, folder: Path) -> None:
        root = folder / "tables"
        tables = Tables(root)
        put_processes(tables)
        put_batches(tables)
        self.portal = Portal("fuzz")
        self.portal.call(self._start(root))
        self.definition = self.portal.call(self._deploy())

    async def _start(self, root: Path) -> None:
        opening = SearchedTables(root).open
        self._node = MemoryNode(partitions=2, clock=SystemClock(), open_tables=opening)
        await self._node.start()
        self._node.gateway.tables = FolderTables(root)
        self._server = HttpServer(self._node.gateway)
        await self._server.start()
        self.url = self._server.url

    async def _deploy(self) -> str:
        source = write_bpmn(ORDER.definition()).decode()
        [definition] = await self._node.gateway.processes.deploy([Resource("order.bpmn", source)])
        return definition.process_definition_key

    def seed(self) -> dict[str, list[str]]:
        """Makes something of everything; the keys that fields of requests may have."""
        return self.portal.call(self._seed())

    async def _seed(self) -> dict[str, list[str]]:
        gateway = self._node.gateway
        tasks = [each.task_key for each in await gateway.tasks.submit([NewTask("mail")] * 3)]
        started = await gateway.instances.start([NewProcessInstance("order")] * 3)
        instances = [each.process_instance_key for each in started]
        held = await gateway.jobs.activate(ActivationRequest(["charge"], "fuzz", 3, 60_000))
        await gateway.jobs.fail([JobFailure(held[0].job_key, held[0].lease, "no")])
        message = await gateway.messages.publish(NewMessage("payment", "1", ttl_ms=60_000))
        views = [await gateway.instances.get(each) for each in instances]
        elements = [part for view in views for part in view.elements]
        jobs = [part.job_key for part in elements if part.job_key]
        incidents = [part.incident_key for part in elements if part.incident_key]
        operations = await gateway.batches.page(BatchOperationQuery())
        return {
            "task_key": tasks,
            "job_key": [*jobs, *tasks],
            "instance_key": instances,
            "process_instance_key": instances,
            "element_key": [*instances, *(part.element_instance_key for part in elements)],
            "element_instance_key": [part.element_instance_key for part in elements],
            "incident_key": incidents,
            "definition_key": [self.definition],
            "process_definition_key": [self.definition],
            "message_key": [message.message_key],
            "batch_operation_key": [each.batch_operation_key for each in operations.items],
            "lease": [each.lease for each in held],
            "type": ["charge", "mail"],
            "process_id": ["order"],
            "process_definition_id": ["order"],
            "element_id": ["charge", "paid"],
            "source_element_id": ["charge", "paid"],
            "target_element_id": ["charge", "paid"],
        }

    def close(self) -> None:
        async def end() -> None:
            await self._server.close()
            await self._node.close()

        self.portal.call(end())
        self.portal.close()
