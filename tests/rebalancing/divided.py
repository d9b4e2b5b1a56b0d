"""A node's folder with everything in it, opened with as many members as it is divided among."""

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec

from holdfast.config import Config
from holdfast.engine.kernel.recovery import TOPIC
from holdfast.gateway.processes.shapes import NewProcessInstance, Resource
from holdfast.gateway.service import Gateway
from holdfast.gateway.tasks.shapes import (
    ActivatedJob,
    ActivationRequest,
    JobCompletion,
    NewSchedule,
    NewTask,
)
from holdfast.journal.local import JournalReader, WrittenAppend
from holdfast.layout import layout_of
from holdfast.limits import SEGMENT_BYTES_MIN
from holdfast.members.member import Member
from holdfast.model.bpmn import write_bpmn
from holdfast.model.dsl import Process
from holdfast.node import LocalNode

PARTITIONS = 5
CONFIG = Config(
    partitions=PARTITIONS, segment_bytes=SEGMENT_BYTES_MIN, snapshot_interval_ms=10**9,
    ended_kept_max=0, log_level="critical",
)  # fmt: skip
LEASE_MS = 3_600_000
STAYS = ("holdfast.toml", "admin-token", "readers/report.json", "tables/progress.json")


class Truth(msgspec.Struct):
    """What was acknowledged."""

    waiting: dict[str, bytes] = {}
    leased: dict[str, str] = {}  # the job's lease
    ended: dict[str, bytes] = {}  # the result
    keyed: dict[str, str] = {}  # the task of an idempotency key
    instances: list[str] = []


@contextlib.asynccontextmanager
async def opened(folder: Path) -> AsyncIterator[list[LocalNode]]:
    """The nodes of all members, which reach one another."""
    layout = layout_of(folder)
    async with contextlib.AsyncExitStack() as stack:
        if layout.members == 1:
            node = await LocalNode.open(folder, CONFIG)
            stack.push_async_callback(node.close)
            yield [node]
            return
        members: list[Member] = []
        for number in range(1, layout.members + 1):
            members.append(await Member.open(layout, number, CONFIG))
            stack.push_async_callback(members[-1].close)
        for member in members:
            assert await member.reached(30)
        yield [member.node for member in members]


async def make_folder(folder: Path) -> Truth:
    """A node of one process whose log was cut; files that are not the members'."""
    truth = Truth()
    async with opened(folder) as (node,):
        api = node.gateway
        source = write_bpmn(Process("p").task("step").definition()).decode()
        await api.processes.deploy([Resource("p.bpmn", source)])
        await api.schedules.put("s", NewSchedule(NewTask("tick"), interval_ms=86_400_000))
        for batch in range(4):
            await work(api, truth, batch)
            await node.take_snapshot()
    journal = JournalReader.open(str(folder / "journal"))
    bounds = [journal.bounds(TOPIC, each) for each in range(1, PARTITIONS + 1)]
    assert any(each.earliest for each in bounds), "the log was cut"
    assert any(each.earliest < each.next for each in bounds), "and not all of it"
    journal.let_go()
    for name in STAYS:
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("{}" if path.suffix == ".json" else "")
    return truth


async def work(api: Gateway, truth: Truth, batch: int) -> None:
    """Some more of everything: tasks that wait, are leased and are done, and an instance."""
    payloads = [b'"%d %d %s"' % (batch, each, b"x" * 400) for each in range(60)]
    tasks = [
        NewTask("work", msgspec.Raw(each), key=f"{batch}-{number}" if number % 3 else None)
        for number, each in enumerate(payloads)
    ]
    receipts = await api.tasks.submit(tasks)
    for receipt, task in zip(receipts, tasks, strict=True):
        assert receipt.created
        truth.waiting[receipt.task_key] = bytes(task.payload)
        if task.key:
            truth.keyed[task.key] = receipt.task_key
    jobs = await activate(api, 20)
    for job in jobs:
        del truth.waiting[job.job_key]
    truth.leased |= {job.job_key: job.lease for job in jobs}
    await complete_some(api, truth, 10)
    (instance,) = await api.instances.start([NewProcessInstance("p", key=f"instance-{batch}")])
    truth.instances.append(instance.process_instance_key)


async def activate(api: Gateway, count: int) -> list[ActivatedJob]:
    found: list[ActivatedJob] = []
    while len(found) < count:
        request = ActivationRequest(["work"], jobs_max=count - len(found), lease_ms=LEASE_MS)
        found += await api.jobs.activate(request)
    return found


async def complete_some(api: Gateway, truth: Truth, count: int) -> None:
    """Completes jobs by the leases of whenever they were leased."""
    for key in list(truth.leased)[:count]:
        result = b'"%s"' % key.encode()
        completion = JobCompletion(key, truth.leased.pop(key), msgspec.Raw(result))
        (answer,) = await api.jobs.complete([completion])
        assert answer.code is None, answer
        truth.ended[key] = result


async def check_all(api: Gateway, truth: Truth) -> None:
    """Everything is there, once, under its key."""
    for key, payload in truth.waiting.items():
        task = await api.tasks.get(key)
        assert task.state == "WAITING" and bytes(task.payload) == payload
    for key in truth.leased:
        assert (await api.tasks.get(key)).state == "ACTIVE"
    for key, result in truth.ended.items():
        task = await api.tasks.get(key)
        assert task.state == "COMPLETED" and isinstance(task.result, msgspec.Raw)
        assert bytes(task.result) == result
    for key, task_key in list(truth.keyed.items())[::7]:
        (receipt,) = await api.tasks.submit([NewTask("work", key=key)])
        assert (receipt.task_key, receipt.created) == (task_key, False)
    for key in truth.instances:
        assert (await api.instances.get(key)).state == "ACTIVE"
    assert [each.schedule_id for each in await api.schedules.all()] == ["s"]


def logs(folder: Path) -> dict[int, tuple[int, int, list[WrittenAppend]]]:
    """All that the logs of a folder have."""
    layout = layout_of(folder)
    readers = [JournalReader.open(str(each)) for each in layout.journals()]
    found: dict[int, tuple[int, int, list[WrittenAppend]]] = {}
    for partition in range(1, PARTITIONS + 1):
        reader = readers[layout.owner(partition) - 1]
        earliest, end = reader.bounds(TOPIC, partition)
        appends = reader.appends(TOPIC, partition, earliest, 1 << 30)
        found[partition] = (earliest, end, appends)
    for reader in readers:
        reader.let_go()
    return found
