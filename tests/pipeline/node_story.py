"""A node with something to tell: processes that end, wait, fail; tasks, messages, incidents."""

import asyncio
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pyarrow.parquet as pq
from engine_tables import check_tables

from holdfast.config import Config
from holdfast.errors import HoldfastError
from holdfast.gateway.processes.shapes import NewMessage, NewProcessInstance, Resource
from holdfast.gateway.tasks.shapes import (
    ActivationRequest,
    IncidentQuery,
    JobCompletion,
    JobFailure,
    NewTask,
)
from holdfast.model.bpmn import write_bpmn
from holdfast.model.dsl import Process
from holdfast.node import LocalNode
from holdfast.pipeline.log import open_log
from holdfast.pipeline.schema import TABLES
from holdfast.pipeline.tables.delta import DeltaLog, files_at

PARTITIONS = 3


class NodeStory:
    """Does random things to a node in a folder, and compares its state with the tables.

    Leases and messages last as long as it is told: a node that is opened later ends them.
    """

    def __init__(self, folder: Path, seed: int = 0, lasting_ms: int = 60_000) -> None:
        self.folder = folder
        self._lasting_ms = lasting_ms
        self._random = Random(seed)
        self._config = Config(partitions=PARTITIONS, log_level="error")

    def tell(self, rounds: int) -> None:
        """Some rounds of work; then the node is closed."""
        asyncio.run(self._tell(rounds))

    async def _tell(self, rounds: int) -> None:
        node = await LocalNode.open(self.folder, self._config)
        gateway, random = node.gateway, self._random
        process = Process("order").task("pay").wait("w", message="paid", key="id").task("ship")
        await gateway.processes.deploy(
            [Resource("order.bpmn", write_bpmn(process.definition()).decode())]
        )
        for _ in range(rounds):
            ids = [str(random.randrange(40)) for _ in range(random.randrange(1, 8))]
            variables = [msgspec.Raw(msgspec.json.encode({"id": each})) for each in ids]
            await gateway.instances.start(
                [NewProcessInstance("order", variables=v) for v in variables]
            )
            await gateway.tasks.submit([NewTask("mail", msgspec.Raw(b"[1]"), retries=0)])
            for each in ids:
                if random.random() < 0.6:
                    await gateway.messages.publish(
                        NewMessage("paid", each, ttl_ms=self._lasting_ms)
                    )
            request = ActivationRequest(["pay", "ship", "mail"], "w", 20, self._lasting_ms, 0)
            for job in await gateway.jobs.activate(request):
                if random.random() < 0.7:
                    await gateway.jobs.complete([JobCompletion(job.job_key, job.lease)])
                elif random.random() < 0.7:
                    failure = JobFailure(job.job_key, job.lease, "broke", final=True)
                    await gateway.jobs.fail([failure])
            for incident in (await gateway.incidents.page(IncidentQuery())).items:
                if random.random() < 0.3:
                    await gateway.incidents.resolve(incident.incident_key, 1)
                elif random.random() < 0.2 and incident.task_key:
                    try:
                        await gateway.incidents.discard(incident.incident_key)
                    except HoldfastError:
                        continue  # a job of a process cannot be given up
        await node.close()

    def ends(self) -> dict[int, int]:
        """How far the log is."""
        log = open_log(str(self.folder))
        try:
            return {partition: bounds.next for partition, bounds in log.bounds().items()}
        finally:
            log.close()

    def check(self, root: Path) -> None:
        """The tables on disk are what the node's own state is, and every record is in them once."""
        asyncio.run(self._check(root))

    async def _check(self, root: Path) -> None:
        ends = self.ends()  # a node that is opened may go on
        node = await LocalNode.open(self.folder, self._config)
        try:
            for partition, processor in node.runner.processors.items():
                check_tables(StoredTables(root, partition), processor.view)
        finally:
            await node.close()
        positions = dict.fromkeys(range(1, PARTITIONS + 1), 0)
        rows = StoredTables(root, None).rows("records")
        for row in sorted(rows, key=lambda row: (row["partition_id"], row["position"])):
            assert row["position"] == positions[row["partition_id"]], "lost or doubled"
            positions[row["partition_id"]] += 1
        assert positions == ends


class StoredTables:
    """The rows of the tables on disk that belong to one partition, or to all."""

    def __init__(self, root: Path, partition: int | None) -> None:
        self._root = root
        self._partition = partition

    def rows(self, name: str) -> list[dict[str, Any]]:
        table = TABLES[name]
        version = DeltaLog(self._root, table).version
        files = [each.path for each in files_at(self._root, table, version)]
        empty = dict.fromkeys(table.names)  # a file may be older than a column
        rows = [empty | row for file in files for row in pq.read_table(file).to_pylist()]
        wanted = self._partition
        return [row for row in rows if wanted is None or row["partition_id"] == wanted]
