"""What ended recently is listed and shown by the node itself, within its bounds."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest
from tests.gateway.access.access_node import guarded

from holdfast.config import Config
from holdfast.engine.ended import look
from holdfast.engine.identity.values import Permission, ResourceType
from holdfast.engine.incidents.values import IncidentState
from holdfast.engine.jobs.values import JobState
from holdfast.engine.kernel import Command
from holdfast.engine.processes.values import InstanceIntent, InstanceRef
from holdfast.errors import Forbidden, InvalidArgument, NotFound
from holdfast.gateway.processes.shapes import (
    InstanceState,
    NewProcessInstance,
    ProcessInstanceQuery,
    Resource,
)
from holdfast.gateway.shapes import ListScope
from holdfast.gateway.tasks.shapes import (
    ActivatedJob,
    ActivationRequest,
    IncidentQuery,
    JobCompletion,
    JobFailure,
    NewTask,
    TaskQuery,
    TaskView,
)
from holdfast.limits import ENDED_BEGUN_RATIO, ENDED_RECORDS
from holdfast.model.bpmn import write_bpmn
from holdfast.model.dsl import Process
from holdfast.records import ValueType, partition_of
from holdfast.testing import MemoryNode
from holdfast.testing.loop import run

HOUR_MS = 3_600_000
ENDED = TaskQuery(scope=ListScope.ENDED)


def inside(
    story: Callable[[MemoryNode], Awaitable[None]], partitions: int = 3, **config: Any
) -> None:
    async def told() -> None:
        node = await MemoryNode(partitions=partitions, config=Config(**config)).start()
        await story(node)
        await node.close()

    run(told())


async def take(node: MemoryNode, type_: str, jobs_max: int = 1) -> list[ActivatedJob]:
    return await node.gateway.jobs.activate(ActivationRequest([type_], "w", jobs_max, 60_000))


async def complete(node: MemoryNode, type_: str, result: bytes = b"1") -> None:
    """Whatever of a type waits is done."""
    while jobs := await take(node, type_, 100):
        done = [JobCompletion(each.job_key, each.lease, msgspec.Raw(result)) for each in jobs]
        await node.gateway.jobs.complete(done)


async def submit(node: MemoryNode, type_: str, **options: Any) -> str:
    (receipt,) = await node.gateway.tasks.submit([NewTask(type_, **options)])
    return receipt.task_key


async def do(node: MemoryNode, type_: str, **options: Any) -> str:
    key = await submit(node, type_, **options)
    await complete(node, type_)
    return key


async def deploy(node: MemoryNode, process: Process) -> None:
    source = write_bpmn(process.definition()).decode()
    await node.gateway.processes.deploy([Resource("p.bpmn", source)])


async def start(node: MemoryNode, **options: Any) -> str:
    (receipt,) = await node.gateway.instances.start([NewProcessInstance("p", **options)])
    return receipt.process_instance_key


async def keys(node: MemoryNode, query: TaskQuery) -> list[str]:
    return [each.task_key for each in (await node.gateway.tasks.page(query)).items]


async def all_pages(node: MemoryNode, query: TaskQuery) -> list[TaskView]:
    found: list[TaskView] = []
    while True:
        page = await node.gateway.tasks.page(query)
        found += page.items
        if page.after is None:
            return found
        query = msgspec.structs.replace(query, after=page.after)


# --- tasks ------------------------------------------------------------------------------------


def test_a_task_is_listed_as_soon_as_it_has_ended_the_last_one_first() -> None:
    async def story(node: MemoryNode) -> None:
        done: list[str] = []
        for _ in range(5):
            done.insert(0, await do(node, "mail"))
            await asyncio.sleep(0.01)
        page = await node.gateway.tasks.page(ENDED)
        assert [each.task_key for each in page.items] == done
        assert {each.state for each in page.items} == {JobState.COMPLETED}
        assert all(each.created and each.finished and each.worker == "w" for each in page.items)
        assert page.ended_since is None, "all that ever ended is there"
        assert not (await node.gateway.tasks.page(TaskQuery())).items

    inside(story)


def test_each_end_has_its_state_and_its_error() -> None:
    async def story(node: MemoryNode) -> None:
        tasks, jobs = node.gateway.tasks, node.gateway.jobs
        canceled = await submit(node, "mail", delay_ms=1_000)
        await tasks.cancel(canceled)
        discarded = await submit(node, "ship", retries=0)
        (job,) = await take(node, "ship")
        await jobs.fail([JobFailure(job.job_key, job.lease, "Traceback\n  x\nValueError: no")])
        stuck = (await node.gateway.incidents.page(IncidentQuery())).items[0]
        await node.gateway.incidents.discard(stuck.incident_key)
        waiting = await submit(node, "wait")
        for state, key, error in (
            (JobState.CANCELED, canceled, "canceled"),
            (JobState.DISCARDED, discarded, "ValueError: no"),
        ):
            (view,) = (await tasks.page(TaskQuery(state=state))).items
            assert (view.task_key, view.state, view.error) == (key, state, error)
        assert not (await tasks.page(TaskQuery(state=JobState.COMPLETED))).items
        assert await keys(node, TaskQuery(scope=ListScope.ALL)) == [waiting, discarded, canceled]
        assert await keys(node, TaskQuery("ship", scope=ListScope.ALL)) == [discarded]
        assert await keys(node, TaskQuery(state=JobState.WAITING, scope=ListScope.ALL)) == [waiting]

    inside(story)


def test_an_ended_task_is_shown_with_its_payload_though_nothing_is_kept_of_it() -> None:
    async def story(node: MemoryNode) -> None:
        key = await do(node, "mail", payload=msgspec.Raw(b'{"to":"ada"}'), keep_ms=0)
        with pytest.raises(NotFound):
            await node.gateway.tasks.get(key)
        view = await node.gateway.tasks.details(key)
        assert (view.type, view.state, view.priority) == ("mail", JobState.COMPLETED, 0)
        assert (view.payload, view.result) == (msgspec.Raw(b'{"to":"ada"}'), msgspec.Raw(b"1"))
        open_ = await submit(node, "mail")
        assert (await node.gateway.tasks.details(open_)).state is JobState.WAITING
        with pytest.raises(NotFound, match="the tables of the pipeline"):
            await node.gateway.tasks.details(str(int(open_) + 1_000))

    inside(story)


def test_pages_neither_repeat_nor_leave_out_what_had_ended_while_work_goes_on() -> None:
    async def story(node: MemoryNode) -> None:
        await node.gateway.tasks.submit([NewTask("mail") for _ in range(40)])
        await complete(node, "mail")  # all of them at one time
        for _ in range(20):
            await do(node, "mail")
        before = await keys(node, ENDED)
        assert len(before) == 60 and len(set(before)) == 60
        found: list[str] = []
        query = TaskQuery(scope=ListScope.ENDED, limit=7)
        while True:
            page = await node.gateway.tasks.page(query)
            found += [each.task_key for each in page.items]
            if page.after is None:
                break
            await asyncio.sleep(0.001)
            await do(node, "mail")
            query = TaskQuery(scope=ListScope.ENDED, limit=7, after=page.after)
        assert found == before

    inside(story)


@pytest.mark.parametrize("limit", [1, 3, 5, 10])
def test_all_pages_of_one_partition_are_turned_whatever_their_size(limit: int) -> None:
    async def story(node: MemoryNode) -> None:
        done: list[str] = []
        for _ in range(10):
            done.insert(0, await do(node, "mail"))
            await asyncio.sleep(0.001)
        found = await all_pages(node, TaskQuery(scope=ListScope.ENDED, limit=limit))
        assert [each.task_key for each in found] == done

    inside(story, partitions=1)


def test_a_list_of_all_goes_on_from_open_tasks_to_ended_ones() -> None:
    async def story(node: MemoryNode) -> None:
        ended = [await do(node, "mail") for _ in range(9)]
        open_ = [await submit(node, "wait") for _ in range(12)]
        for limit in (1, 4, 6, 12, 100):
            found = await all_pages(node, TaskQuery(scope=ListScope.ALL, limit=limit))
            listed = [each.task_key for each in found]
            assert listed[:12] == sorted(open_) and sorted(listed[12:]) == sorted(ended)

    inside(story)


@pytest.mark.parametrize("after", ["7", "x", "1-", "-1", "1-2-3", "9" * 20 + "-1"])
def test_a_cursor_that_no_page_gave_is_refused(after: str) -> None:
    async def story(node: MemoryNode) -> None:
        with pytest.raises((InvalidArgument, NotFound)):
            await node.gateway.tasks.page(TaskQuery(scope=ListScope.ENDED, after=after))

    inside(story)


# --- instances and incidents ------------------------------------------------------------------


def test_ended_instances_are_listed_and_shown_with_their_variables_and_jobs() -> None:
    async def story(node: MemoryNode) -> None:
        await deploy(node, Process("p").task("a"))
        done = await start(node, variables=msgspec.Raw(b'{"n":1}'))
        await complete(node, "a", b'{"m":2}')
        forgotten = await start(node, keep_ms=0)
        running = await start(node)
        await node.gateway.instances.cancel(forgotten)
        page, get = node.gateway.instances.page, node.gateway.instances.get
        ended = await page(ProcessInstanceQuery("p", scope=ListScope.ENDED))
        assert {(each.process_instance_key, each.state) for each in ended.items} == {
            (done, InstanceState.COMPLETED), (forgotten, InstanceState.CANCELED)
        }  # fmt: skip
        assert all(each.version == 1 and each.created and each.finished for each in ended.items)
        everything = await page(ProcessInstanceQuery(scope=ListScope.ALL))
        assert everything.items[0].process_instance_key == running and len(everything.items) == 3
        (canceled,) = (await page(ProcessInstanceQuery(state=InstanceState.CANCELED))).items
        assert canceled.process_instance_key == forgotten
        assert not (await page(ProcessInstanceQuery("q", scope=ListScope.ENDED))).items
        assert not (await page(ProcessInstanceQuery(version=2, scope=ListScope.ENDED))).items
        (active,) = (await page(ProcessInstanceQuery(state=InstanceState.ACTIVE))).items
        assert active.process_instance_key == running
        assert not (await page(ProcessInstanceQuery(state=InstanceState.TERMINATING))).items
        assert msgspec.json.decode((await get(done)).variables) == {"n": 1, "m": 2}
        assert (await get(forgotten)).state is InstanceState.CANCELED, "from the log alone"
        (job, _) = (await node.gateway.tasks.page(TaskQuery("a", scope=ListScope.ENDED))).items
        assert job.state in (JobState.COMPLETED, JobState.CANCELED)

    inside(story)


def test_an_instance_whose_outcome_was_deleted_is_not_listed() -> None:
    async def story(node: MemoryNode) -> None:
        await deploy(node, Process("p").task("a"))
        key = await start(node)
        await complete(node, "a", b"{}")
        ended = ProcessInstanceQuery(scope=ListScope.ENDED)
        assert len((await node.gateway.instances.page(ended)).items) == 1
        delete = Command(ValueType.PROCESS_INSTANCE, InstanceIntent.DELETE, int(key), InstanceRef())
        await node.node.runner.submit(partition_of(int(key)), [delete])
        assert not (await node.gateway.instances.page(ended)).items
        with pytest.raises(NotFound, match="no longer kept"):
            await node.gateway.instances.get(key)

    inside(story)


def test_resolved_and_discarded_incidents_are_listed_and_shown() -> None:
    async def story(node: MemoryNode) -> None:
        incidents = node.gateway.incidents
        await deploy(node, Process("p").task("a", retries=0))
        instance = await start(node)
        task = await submit(node, "ship", retries=0)
        for type_ in ("a", "ship"):
            (job,) = await take(node, type_)
            failure = JobFailure(job.job_key, job.lease, f"Traceback\n{type_} failed")
            await node.gateway.jobs.fail([failure])
        by_type = {each.type: each for each in (await incidents.page(IncidentQuery())).items}
        assert (await incidents.get(by_type["a"].incident_key)) == by_type["a"]
        await incidents.resolve(by_type["a"].incident_key, 0)
        await node.crash()
        await node.restart()
        incidents = node.gateway.incidents
        await incidents.discard(by_type["ship"].incident_key)

        ended = (await incidents.page(IncidentQuery(scope=ListScope.ENDED))).items
        assert [(each.type, each.state) for each in ended] == [
            ("ship", IncidentState.DISCARDED), ("a", IncidentState.RESOLVED)
        ]  # fmt: skip
        assert ended[0].task_key == task and ended[0].error == "ship failed"
        assert ended[1].process_instance_key == instance and ended[1].element_id == "a"
        assert all(each.created and each.ended for each in ended)
        shown = await incidents.get(by_type["ship"].incident_key)
        assert shown.error == "Traceback\nship failed" and shown.state is IncidentState.DISCARDED
        of_instance = IncidentQuery(process_instance_key=instance, scope=ListScope.ALL)
        assert [each.type for each in (await incidents.page(of_instance)).items] == ["a"]
        resolved = IncidentQuery(state=IncidentState.RESOLVED)
        assert [each.type for each in (await incidents.page(resolved)).items] == ["a"]
        with pytest.raises(NotFound, match="open or ended recently"):
            await incidents.get(str(int(task) + 1_000))

    inside(story)


def test_an_incident_that_ends_with_its_instance_or_its_task_is_listed() -> None:
    async def story(node: MemoryNode) -> None:
        await deploy(node, Process("p").wait("paid", message="m", key="missing"))
        instance = await start(node)
        task = await submit(node, "ship", retries=0)
        (job,) = await take(node, "ship")
        await node.gateway.jobs.fail([JobFailure(job.job_key, job.lease, "no")])
        await node.gateway.tasks.cancel(task)
        await node.gateway.instances.cancel(instance)
        ended = (await node.gateway.incidents.page(IncidentQuery(scope=ListScope.ENDED))).items
        assert {each.state for each in ended} == {IncidentState.DISCARDED} and len(ended) == 2
        assert {each.process_instance_key for each in ended} == {instance, None}

    inside(story)


# --- bounds -----------------------------------------------------------------------------------


def test_what_ended_is_forgotten_by_age() -> None:
    async def story(node: MemoryNode) -> None:
        old = await do(node, "mail", keep_ms=0)
        await asyncio.sleep(HOUR_MS / 1000 - 60)
        young = await do(node, "mail")
        assert await keys(node, ENDED) == [young, old]
        await asyncio.sleep(120)
        page = await node.gateway.tasks.page(ENDED)
        assert [each.task_key for each in page.items] == [young]
        assert page.ended_since is not None
        assert page.ended_since.timestamp() * 1000 == node.clock.now_ms() - HOUR_MS
        with pytest.raises(NotFound):
            await node.gateway.tasks.details(old)

    inside(story, ended_kept_ms=HOUR_MS)


def test_what_ended_is_bounded_by_count_and_so_is_memory() -> None:
    async def story(node: MemoryNode) -> None:
        done = [await do(node, "mail") for _ in range(10)]
        for _ in range(4):
            for _ in range(3):  # on each partition: in mind, because they have not ended
                await node.gateway.tasks.submit([NewTask("never") for _ in range(20)])
            assert await keys(node, ENDED)
            done += [await do(node, "mail") for _ in range(30)]
            page = await node.gateway.tasks.page(ENDED)
            listed = [each.task_key for each in page.items]
            assert len(listed) == 12, "12 of all partitions together"
            assert set(listed) <= set(done[-40:]) and page.ended_since is not None
        for processor in node.node.runner.processors.values():
            ended = processor.view.ended
            assert ended.size() <= (3 + ENDED_BEGUN_RATIO) * 4 + ENDED_BEGUN_RATIO

    inside(story, ended_kept_max=12)


def test_a_question_reads_a_bounded_part_of_the_log_and_the_next_one_what_is_new() -> None:
    async def story(node: MemoryNode) -> None:
        for _ in range(60):
            await do(node, "mail")
        read: list[int] = []
        journal = node.journal
        plain = journal.read

        async def counted(*arguments: Any) -> Any:
            entries = await plain(*arguments)
            read.append(len(entries))
            return entries

        journal.read = counted  # type: ignore[method-assign]
        await keys(node, ENDED)
        assert 0 < sum(read) <= 3 * 4 * ENDED_RECORDS
        read.clear()
        await keys(node, ENDED)
        assert sum(read) == 0
        await do(node, "mail")
        await keys(node, ENDED)
        assert 0 < sum(read) < 10

    inside(story, ended_kept_max=12)


def test_a_question_reads_a_bounded_number_of_bytes_where_records_are_large(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(look, "ENDED_LOOK_BYTES_MAX", 100_000)
    monkeypatch.setattr(look, "ENDED_READ_BYTES", 10_000)

    async def story(node: MemoryNode) -> None:
        large = msgspec.Raw(b'"%s"' % (b"x" * 5_000))
        done = [await do(node, "mail", payload=large) for _ in range(100)]  # 10 kB each
        read, plain = [], node.journal.read

        async def counted(*arguments: Any) -> Any:
            entries = await plain(*arguments)
            read.append(sum(len(each.payload) for each in entries))
            return entries

        node.journal.read = counted  # type: ignore[method-assign]
        page = await node.gateway.tasks.page(ENDED)
        listed = [each.task_key for each in page.items]
        assert 5 < len(listed) < 15 and set(listed) <= set(done[-15:])
        assert page.ended_since is not None
        assert sum(read) < 300_000

    inside(story, partitions=1)


def test_a_part_of_the_log_that_is_given_up_while_it_is_read_is_left_out() -> None:
    async def story(node: MemoryNode) -> None:
        done = [await do(node, "mail") for _ in range(20)]
        plain, cuts = node.journal.read, [60]

        async def cutting(topic: str, partition: int, *arguments: Any) -> Any:
            if cuts:
                node.journal.discard(topic, partition, cuts.pop())
            return await plain(topic, partition, *arguments)

        node.journal.read = cutting  # type: ignore[method-assign]
        page = await node.gateway.tasks.page(ENDED)
        listed = [each.task_key for each in page.items]
        assert 0 < len(listed) < 20 and set(listed) <= set(done)
        assert page.ended_since is not None
        oldest = await node.gateway.tasks.details(listed[-1])
        assert oldest.state is JobState.COMPLETED and oldest.type == "mail"

    inside(story, partitions=1)


def test_nothing_is_listed_where_nothing_is_to_be_kept() -> None:
    async def story(node: MemoryNode) -> None:
        await do(node, "mail")
        page = await node.gateway.tasks.page(ENDED)
        assert not page.items and page.ended_since is not None

    inside(story, ended_kept_max=0)


# --- the log decides --------------------------------------------------------------------------


def test_what_ended_is_known_after_a_crash_and_the_state_is_the_same_whether_somebody_asked() -> (
    None
):
    async def story(node: MemoryNode) -> None:
        done = [await do(node, "mail") for _ in range(10)]
        before = await keys(node, ENDED)
        assert sorted(before) == sorted(done)
        rows = {each: node.dump(each) for each in (1, 2, 3)}
        await node.crash()
        await node.restart()
        assert await keys(node, ENDED) == before
        assert {each: node.dump(each) for each in (1, 2, 3)} == rows

    inside(story)


def test_a_log_that_was_cut_tells_since_when_it_knows() -> None:
    async def story(node: MemoryNode) -> None:
        await do(node, "mail")
        await asyncio.sleep(60)
        late = await do(node, "mail")
        for partition in (1, 2, 3):
            _, end = node.journal.bounds("records", partition)
            node.journal.discard("records", partition, max(end - 3, 0))
        page = await node.gateway.tasks.page(ENDED)
        assert page.ended_since is not None
        listed = {each.task_key: each for each in page.items}
        assert listed[late].type == "mail", "the outcome in the state knows the type"

    inside(story)


def test_questions_at_the_same_time_read_the_log_once() -> None:
    async def story(node: MemoryNode) -> None:
        done = [await do(node, "mail") for _ in range(20)]
        read, plain = [], node.journal.read

        async def slow(*arguments: Any) -> Any:
            entries = await plain(*arguments)
            await asyncio.sleep(0.001)
            read.append(len(entries))
            return entries

        node.journal.read = slow  # type: ignore[method-assign]
        pages = await asyncio.gather(*(keys(node, ENDED) for _ in range(5)))
        assert all(sorted(each) == sorted(done) for each in pages)
        assert sum(read) == sum(node.journal.bounds("records", each).next for each in (1, 2, 3))

    inside(story)


def test_an_asker_sees_what_ended_of_the_types_and_processes_that_it_may_read() -> None:
    async def story() -> None:
        async with guarded() as there:
            admin, reader = there.admin, await there.machine("reader")
            source = write_bpmn(Process("p").task("a").definition()).decode()
            await admin.processes.deploy([Resource("p.bpmn", source)])
            await admin.instances.start([NewProcessInstance("p")])
            await admin.tasks.submit([NewTask("mail"), NewTask("post")])
            for type_ in ("mail", "post", "a"):
                for job in await admin.jobs.activate(ActivationRequest([type_], "w")):
                    await admin.jobs.complete([JobCompletion(job.job_key, job.lease)])
            await there.let("reader", ResourceType.TASK, "mail", Permission.READ)
            ended = (await reader.tasks.page(ENDED)).items
            assert [each.type for each in ended] == ["mail"]
            others = [each for each in (await admin.tasks.page(ENDED)).items if each.type == "post"]
            with pytest.raises(NotFound):
                await reader.tasks.details(others[0].task_key)
            with pytest.raises(Forbidden):
                await reader.instances.page(ProcessInstanceQuery(scope=ListScope.ALL))
            permission = Permission.READ_PROCESS_INSTANCE
            await there.let("reader", ResourceType.PROCESS_DEFINITION, "p", permission)
            (instance,) = (
                await reader.instances.page(ProcessInstanceQuery(scope=ListScope.ENDED))
            ).items
            assert instance.process_id == "p"
            assert {each.type for each in (await reader.tasks.page(ENDED)).items} == {"mail", "a"}

    asyncio.run(story())
