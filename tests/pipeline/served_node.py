"""A node in a folder that is also served over HTTP, for tests that read and write it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from holdfast.client.portal import Portal
from holdfast.config import Config
from holdfast.engine.jobs.values import JobIntent
from holdfast.engine.kernel.runner import TOPIC
from holdfast.engine.partition import DISPATCH as ENGINE
from holdfast.gateway.http import HttpServer
from holdfast.gateway.processes.shapes import NewProcessInstance, Resource
from holdfast.gateway.tasks.shapes import ActivationRequest, JobCompletion, NewTask
from holdfast.journal.local import JournalReader
from holdfast.limits import READ_BYTES_MAX
from holdfast.model.bpmn import write_bpmn
from holdfast.model.dsl import Process
from holdfast.node import LocalNode
from holdfast.records import Record, RecordKind, ValueType

PARTITIONS = 3


class ServedNode:
    """Runs on a loop of its own until it is closed."""

    def __init__(
        self, folder: Path, *, port: int = 0, wrap: Callable[[Any], Any] = lambda api: api
    ) -> None:
        self.folder = folder
        self.portal = Portal("node")
        config = Config(partitions=PARTITIONS, log_level="error")
        self.node = self.portal.call(LocalNode.open(folder, config))
        self.api = self.node.gateway
        self.server = HttpServer(wrap(self.api), port=port)
        self.portal.call(self.server.start())

    @property
    def url(self) -> str:
        return self.server.url

    def close(self) -> None:
        self.stop_serving()
        self.portal.call(self.node.close())
        self.portal.close()

    def stop_serving(self) -> None:
        self.portal.call(self.server.close())

    def submit(self, count: int, type_: str = "mail") -> None:
        tasks = [NewTask(type_, msgspec.Raw(b'{"n":%d}' % n), f"{type_}-{n}") for n in range(count)]
        self.portal.call(self.api.tasks.submit(tasks))

    def deploy(self, process: Process) -> None:
        resource = Resource(f"{process.id}.bpmn", write_bpmn(process.definition()).decode())
        self.portal.call(self.api.processes.deploy([resource]))

    def live_a_little(self) -> None:
        """Events of many kinds, and a rejection."""
        self.submit(40)
        self.deploy(Process("order").task("charge").task("ship"))
        starts = [NewProcessInstance("order", key=f"o{n}") for n in range(12)]
        self.portal.call(self.api.instances.start(starts))
        self.portal.call(self.api.instances.start(starts))
        jobs = self.portal.call(
            self.api.jobs.activate(ActivationRequest(["mail", "charge"], "w", 20))
        )
        done = [JobCompletion(job.job_key, job.lease, msgspec.Raw(b"{}")) for job in jobs]
        self.portal.call(self.api.jobs.complete(done))

    def records(self) -> dict[int, list[Record]]:
        """All records that the files hold, by partition."""
        reader = JournalReader.open(str(self.folder / "journal"))
        found: dict[int, list[Record]] = {}
        for partition in range(1, PARTITIONS + 1):
            found[partition] = []
            position = 0
            while entries := reader.read_now(TOPIC, partition, position, READ_BYTES_MAX):
                found[partition] += map(ENGINE.codec.decode, [each.payload for each in entries])
                position = entries[-1].offset + 1
        self.portal.call(reader.close())
        return found

    def events(self, value_type: ValueType, intent: int) -> list[Record]:
        return [
            record
            for records in self.records().values()
            for record in records
            if record.kind is RecordKind.EVENT
            and record.value_type == value_type
            and record.intent == intent
        ]

    def keys_of_created_tasks(self) -> list[str]:
        created = self.events(ValueType.JOB, JobIntent.CREATED)
        return sorted(record.value.idempotency_key for record in created)
