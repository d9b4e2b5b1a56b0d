"""A script of commands for a node, and a ledger of what the node has acknowledged."""

from dataclasses import dataclass, field
from random import Random

import msgspec

from holdfast.engine.jobs.values import JobIntent, JobState
from holdfast.engine.kernel.runner import TOPIC
from holdfast.engine.partition import DISPATCH, EngineProcessor, open_partition
from holdfast.errors import NotFound
from holdfast.gateway.tasks.shapes import (
    ActivatedJob,
    ActivationRequest,
    HeldJob,
    JobCompletion,
    JobFailure,
    NewSchedule,
    NewTask,
)
from holdfast.journal import Journal
from holdfast.records import RecordKind, ValueType
from holdfast.state import Store
from holdfast.state.memory import MemoryStore
from holdfast.testing import MemoryNode

COMMANDS = 200
ENDINGS = {JobIntent.COMPLETED, JobIntent.CANCELED, JobIntent.DISCARDED}


@dataclass
class Ledger:
    """What the node has said to be durable."""

    submitted: list[str] = field(default_factory=list)
    by_key: dict[str, str] = field(default_factory=dict)
    completed: dict[str, bytes] = field(default_factory=dict)
    canceled: set[str] = field(default_factory=set)
    scheduled: bool = False


class Script:
    """The same commands every time; one at a time, so that each is acknowledged by itself."""

    def __init__(self, node: MemoryNode, ledger: Ledger, seed: int = 7) -> None:
        self._node = node
        self._ledger = ledger
        self._random = Random(seed)
        self._held: list[ActivatedJob] = []

    async def run(self, commands: int = COMMANDS) -> None:
        for number in range(commands):
            await self._command(number)
            if number % 40 == 25:
                await self._write_state(flush=number % 80 == 25)

    async def _write_state(self, *, flush: bool) -> None:
        """The store gets what there is, and sometimes keeps it: a crash finds it at any age."""
        await self._node.node.runner.settled()
        self._node.node.runner.write_state()
        if flush:
            self._node.store.flush()

    async def _command(self, number: int) -> None:
        if number == 10:
            task = NewTask("tick")
            await self._node.gateway.schedules.put("s", NewSchedule(task, interval_ms=60_000))
            self._ledger.scheduled = True
            return
        draw = self._random.random()
        if draw < 0.4 or not self._ledger.submitted:
            await self._submit(number)
        elif draw < 0.6 or not self._held:
            await self._activate()
        elif draw < 0.85:
            await self._report()
        else:
            await self._cancel()

    async def _submit(self, number: int) -> None:
        key = f"key-{number}" if number % 3 == 0 else None
        delay_ms = 50 if number % 5 == 0 else 0
        payload = msgspec.Raw(msgspec.json.encode("x" * self._random.randrange(2_000)))
        task = NewTask("t", payload, key, priority=number % 2, delay_ms=delay_ms)
        (receipt,) = await self._node.gateway.tasks.submit([task])
        self._ledger.submitted.append(receipt.task_key)
        if key:
            self._ledger.by_key[key] = receipt.task_key

    async def _activate(self) -> None:
        request = ActivationRequest(["t"], jobs_max=2, lease_ms=3_600_000)
        self._held += await self._node.gateway.jobs.activate(request)

    async def _report(self) -> None:
        gateway, job = self._node.gateway, self._held.pop(0)
        match self._random.randrange(4):
            case 0:
                failure = JobFailure(job.job_key, job.lease, "boom", retry_after_ms=20)
                await gateway.jobs.fail([failure])
            case 1:
                await gateway.jobs.release([HeldJob(job.job_key, job.lease)])
            case _:
                result = job.job_key.encode()
                completion = JobCompletion(job.job_key, job.lease, msgspec.Raw(result))
                (answer,) = await gateway.jobs.complete([completion])
                if answer.code is None:
                    self._ledger.completed[job.job_key] = result

    async def _cancel(self) -> None:
        key = self._random.choice(self._ledger.submitted)
        try:
            await self._node.gateway.tasks.cancel(key)
        except NotFound:
            return
        self._ledger.canceled.add(key)


# --- checks -----------------------------------------------------------------------------------


def replayed(journal: Journal, partition: int, store: Store) -> EngineProcessor:
    """A processor that has read the log of a partition to its end, from where the store stands."""
    processor = open_partition(store, partition)
    offset = processor.next_offset
    while entries := journal.read_now(TOPIC, partition, offset):
        processor.replay(entries)
        offset = entries[-1].offset + 1
    return processor


def check_same_as_fresh(processor: EngineProcessor, journal: Journal) -> None:
    """The state is, byte for byte, what the log alone gives."""
    fresh = replayed(journal, processor.partition, MemoryStore())
    assert processor.state.dump() == fresh.state.dump(), "state is not what the log says"
    now, then = processor.progress, fresh.progress
    assert msgspec.structs.replace(now, replay_offset=0) == msgspec.structs.replace(
        then, replay_offset=0
    )


def endings(journal: Journal, partition: int) -> list[int]:
    """The jobs that ended on a partition, once for each time that they did."""
    found: list[int] = []
    offset = journal.bounds(TOPIC, partition).earliest
    while entries := journal.read_now(TOPIC, partition, offset):
        offset = entries[-1].offset + 1
        found += [
            record.key
            for record in DISPATCH.codec.decode_many([entry.payload for entry in entries])
            if record.kind == RecordKind.EVENT
            and record.value_type == ValueType.JOB
            and record.intent in ENDINGS
        ]
    return found


async def check_ledger(node: MemoryNode, ledger: Ledger) -> None:
    """Nothing acknowledged is lost, and nothing ended twice."""
    for key in ledger.submitted:
        view = await node.gateway.tasks.get(key)
        if key in ledger.completed:
            assert view.state == JobState.COMPLETED
            assert isinstance(view.result, msgspec.Raw)
            assert bytes(view.result) == ledger.completed[key]
        if key in ledger.canceled:
            assert view.state == JobState.CANCELED
    for partition in range(1, node.partitions + 1):
        ended = endings(node.journal, partition)
        assert len(ended) == len(set(ended)), "a job ended twice"
    assert len(await node.gateway.schedules.all()) >= ledger.scheduled
    for key, task_key in list(ledger.by_key.items())[-3:]:
        (receipt,) = await node.gateway.tasks.submit([NewTask("t", key=key)])
        assert (receipt.task_key, receipt.created) == (task_key, False)
