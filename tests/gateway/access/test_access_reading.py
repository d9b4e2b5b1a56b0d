"""What a user may do and see with one resource and not with another."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.gateway.access.access_node import Guarded, bearer, guarded
from tests.gateway.fake_api import ask
from tests.gateway.fake_tables import FakeTables
from tests.gateway.rest.rest_tables import BROKEN, ENDED, put_processes
from tests.pipeline.select_tables import Tables

from holdfast.client.remote import RemoteApi
from holdfast.engine.batch.values import BatchOperationType, Visible
from holdfast.engine.identity.values import OwnerType, Permission, ResourceType
from holdfast.errors import Forbidden, NotFound
from holdfast.gateway.batch.shapes import (
    BatchFailures,
    BatchOperationView,
    BatchRetry,
    NewBatchOperation,
)
from holdfast.gateway.identity.shapes import Member, NewGroup, NewToken
from holdfast.gateway.processes.shapes import (
    NewProcessInstance,
    ProcessDefinitionQuery,
    ProcessInstanceQuery,
    Resource,
)
from holdfast.gateway.tasks.shapes import (
    ActivationRequest,
    IncidentQuery,
    JobCompletion,
    JobFailure,
    NewSchedule,
    NewTask,
    TaskQuery,
)
from holdfast.model.bpmn import write_bpmn
from holdfast.model.dsl import Process
from holdfast.pipeline.search.serving import FolderTables

_R, _P = ResourceType, Permission
_DEFINITION = ResourceType.PROCESS_DEFINITION


def inside(story: Callable[[Guarded], Awaitable[None]], **settings: Any) -> None:
    async def run() -> None:
        async with guarded(**settings) as there:
            await story(there)

    asyncio.run(run())


def activation(*types: str, wait_ms: int = 0) -> ActivationRequest:
    return ActivationRequest(list(types), "worker", 10, 60_000, wait_ms)


async def deploy(there: Guarded, *ids: str) -> None:
    sources = [write_bpmn(Process(each).task(f"do-{each}").definition()).decode() for each in ids]
    await there.admin.processes.deploy(
        [Resource(f"{n}.bpmn", each) for n, each in enumerate(sources)]
    )


# --- tasks and workers ------------------------------------------------------------------------


def test_a_worker_has_the_jobs_of_its_types_only_and_waits_for_them_under_its_name() -> None:
    async def story(there: Guarded) -> None:
        worker = await there.machine("worker")
        await there.let("worker", _R.TASK, "mail", _P.WORK)
        with pytest.raises(Forbidden, match="WORK on TASK 'post'"):
            await worker.jobs.activate(activation("mail", "post", wait_ms=20_000))
        waiting = asyncio.create_task(worker.jobs.activate(activation("mail", wait_ms=20_000)))
        await asyncio.sleep(0)
        await there.admin.tasks.submit([NewTask("mail")])
        (job,) = await waiting
        thief = await there.machine("thief")
        await there.let("thief", _R.TASK, "post", _P.WORK)
        (refused,) = await thief.jobs.complete([JobCompletion(job.job_key, job.lease)])
        assert refused.code == "FORBIDDEN"
        (refused,) = await thief.jobs.extend([job.lease], 60_000)
        assert refused.code == "FORBIDDEN"
        (done,) = await worker.jobs.complete([JobCompletion(job.job_key, job.lease)])
        assert done.code is None
        with pytest.raises(Forbidden, match="CREATE on some TASK"):
            await worker.tasks.submit([NewTask("mail")])

    inside(story)


def test_a_worker_reports_a_failure_and_does_not_give_its_job_more_attempts() -> None:
    async def story(there: Guarded) -> None:
        worker = await there.machine("worker")
        await there.let("worker", _R.TASK, "mail", _P.WORK)
        (receipt,) = await there.admin.tasks.submit([NewTask("mail", retries=3)])
        (job,) = await worker.jobs.activate(activation("mail"))
        more = JobFailure(job.job_key, job.lease, "busy", retry_after_ms=0, retries=9)
        (refused,) = await worker.jobs.fail([more])
        assert refused.code == "FORBIDDEN"
        (done,) = await worker.jobs.fail([msgspec.structs.replace(more, retries=job.retries)])
        assert done.code is None
        assert (await there.admin.tasks.get(receipt.task_key)).retries == 2
        (job,) = await worker.jobs.activate(activation("mail", wait_ms=20_000))
        await there.let("worker", _R.TASK, "*", _P.UPDATE)
        (done,) = await worker.jobs.fail([msgspec.structs.replace(more, lease=job.lease)])
        assert done.code is None
        assert (await there.admin.tasks.get(receipt.task_key)).retries == 8
        (job,) = await worker.jobs.activate(activation("mail", wait_ms=20_000))
        (done,) = await worker.jobs.fail(
            [msgspec.structs.replace(more, lease=job.lease, retries=0)]
        )
        assert done.code is None
        assert (await there.admin.tasks.get(receipt.task_key)).state == "INCIDENT"

    inside(story)


def test_tasks_of_others_are_not_there() -> None:
    async def story(there: Guarded) -> None:
        mail, post = [
            receipt.task_key
            for receipt in await there.admin.tasks.submit([NewTask("mail"), NewTask("post")])
        ]
        reader = await there.machine("reader")
        await there.let("reader", _R.TASK, "mail", _P.READ)
        assert [each.type for each in (await reader.tasks.page(TaskQuery())).items] == ["mail"]
        assert (await reader.tasks.get(mail)).type == "mail"
        with pytest.raises(NotFound):
            await reader.tasks.get(post)
        states = [each.state for each in await reader.tasks.results([mail, post], 0)]
        assert states[0] is not None and states[1] is None
        for key in (mail, post):
            with pytest.raises(Forbidden, match="UPDATE on some TASK"):
                await reader.tasks.cancel(key)
        await there.let("reader", _R.TASK, "post", _P.UPDATE)
        jobs = await there.admin.jobs.activate(activation("mail", "post"))
        jobs += await there.admin.jobs.activate(activation("mail", "post"))
        await there.admin.jobs.fail(
            [JobFailure(job.job_key, job.lease, "broken", final=True) for job in jobs]
        )
        incidents = (await reader.incidents.page(IncidentQuery())).items
        assert [each.type for each in incidents] == ["mail"]
        with pytest.raises(Forbidden, match="UPDATE on TASK 'mail'"):
            await reader.incidents.resolve(incidents[0].incident_key, 0)

    inside(story)


def test_a_schedule_is_no_way_around_what_one_may_submit() -> None:
    async def story(there: Guarded) -> None:
        planner = await there.machine("planner")
        await there.let("planner", _R.SCHEDULE, "daily", _P.UPDATE, _P.READ)
        rule = NewSchedule(NewTask("mail"), interval_ms=60_000)
        with pytest.raises(Forbidden, match="CREATE on TASK 'mail'"):
            await planner.schedules.put("daily", rule)
        await there.let("planner", _R.TASK, "mail", _P.CREATE)
        await planner.schedules.put("daily", rule)
        with pytest.raises(Forbidden, match="SCHEDULE 'other'"):
            await planner.schedules.put("other", rule)
        await there.admin.schedules.put("other", rule)
        assert [each.schedule_id for each in await planner.schedules.all()] == ["daily"]

    inside(story)


# --- processes --------------------------------------------------------------------------------


def test_processes_of_others_are_neither_seen_nor_touched() -> None:
    async def story(there: Guarded) -> None:
        await deploy(there, "ours", "theirs")
        new = [NewProcessInstance("ours"), NewProcessInstance("theirs")]
        ours, theirs = [
            receipt.process_instance_key for receipt in await there.admin.instances.start(new)
        ]
        crew = await there.machine("crew")
        await there.let(
            "crew", _DEFINITION, "ours", _P.READ_PROCESS_INSTANCE, _P.READ_PROCESS_DEFINITION,
            _P.CANCEL_PROCESS_INSTANCE, _P.CREATE_PROCESS_INSTANCE,
        )  # fmt: skip
        found = (await crew.instances.page(ProcessInstanceQuery())).items
        assert [each.process_instance_key for each in found] == [ours]
        definitions = await crew.processes.find(ProcessDefinitionQuery())
        assert [each.process_id for each in definitions] == ["ours"]
        with pytest.raises(NotFound):
            await crew.instances.get(theirs)
        shown = await ask(
            there.url, "GET", f"/v2/process-instances/{theirs}", headers=crew._headers
        )
        assert shown.status == 404
        with pytest.raises(
            Forbidden, match="CANCEL_PROCESS_INSTANCE on PROCESS_DEFINITION 'theirs'"
        ):
            await crew.instances.cancel(theirs)
        with pytest.raises(Forbidden, match="CREATE_PROCESS_INSTANCE"):
            await crew.instances.start([NewProcessInstance("theirs")])
        await crew.instances.start([NewProcessInstance("ours")])
        await crew.instances.cancel(ours)
        assert (await crew.instances.get(ours)).state == "CANCELED"
        await there.admin.instances.cancel(theirs)
        with pytest.raises(NotFound):
            await crew.instances.get(theirs)

    inside(story)


def test_a_role_in_a_group_lets_its_members_in_and_out_again() -> None:
    async def story(there: Guarded) -> None:
        identity, robot = there.admin.identity, await there.machine("robot")
        await identity.create_group(OwnerType.GROUP, NewGroup("machines"))
        await identity.add_member(OwnerType.ROLE, "worker", Member(OwnerType.GROUP, "machines"))
        with pytest.raises(Forbidden):
            await robot.jobs.activate(activation("mail"))
        member = Member(OwnerType.CLIENT, "robot")
        await identity.add_member(OwnerType.GROUP, "machines", member)
        assert await robot.jobs.activate(activation("mail")) == []
        me = await robot.identity.own_identity()
        assert (me.groups, me.roles) == (["machines"], ["worker"])
        (group,) = (await identity.groups(OwnerType.GROUP)).items
        assert (group.id, group.members) == ("machines", [member])
        await identity.remove_member(OwnerType.GROUP, "machines", member)
        with pytest.raises(Forbidden):
            await robot.jobs.activate(activation("mail"))

    inside(story)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("access") / "tables"
    put_processes(Tables(root))
    return root


def test_searches_leave_out_what_may_not_be_seen(root: Path) -> None:
    async def story(there: Guarded) -> None:
        there.node.gateway.show_tables(FolderTables(root))

        async def found(token: str, of: str, filter_: dict[str, Any]) -> Any:
            reply = await ask(
                there.url, "POST", f"/v2/{of}/search", json={"filter": filter_},
                headers=bearer(token),
            )  # fmt: skip
            return len(reply.json()["items"]) if reply.status == 200 else reply.status

        identity = there.admin.identity
        crew, others = [
            (await identity.create_token(NewToken(name))).token for name in ("crew", "others")
        ]
        reading = (_P.READ_PROCESS_INSTANCE, _P.READ_PROCESS_DEFINITION)
        await there.let("crew", _DEFINITION, "order", *reading)
        await there.let("others", _DEFINITION, "other", *reading)
        admin = there.admin_token
        of_broken = {"processInstanceKey": str(BROKEN)}
        for of, filter_ in (
            ("process-instances", {}),
            ("process-instances", {"$or": [{"state": "TERMINATED"}, {"hasIncident": True}]}),
            ("element-instances", {}),
            ("incidents", {}),
            ("variables", of_broken),
            ("jobs", of_broken),
        ):
            all_ = await found(admin, of, filter_)
            assert all_ > 0, of
            assert await found(crew, of, filter_) == all_, of
            assert await found(others, of, filter_) == 0, of
        for of in ("variables", "jobs"):
            assert await found(crew, of, {}) == 403
        clerk = (await identity.create_token(NewToken("clerk"))).token
        await there.let("clerk", _R.TASK, "*", _P.READ)
        for of in ("jobs", "incidents"):
            assert await found(clerk, of, {}) == await found(admin, of, {}) > 0, "by their types"
        await there.let("clerk", _DEFINITION, "other", _P.READ_PROCESS_INSTANCE)
        assert await found(clerk, "process-instances", {}) == 0
        path = f"/v2/process-instances/{ENDED}"
        for token, status in ((crew, 200), (others, 404)):
            assert (await ask(there.url, "GET", path, headers=bearer(token))).status == status

    inside(story)


# --- batch operations -------------------------------------------------------------------------

WHERE = msgspec.Raw(b'{"type":"mail"}')


async def ended(client: RemoteApi, key: str) -> BatchOperationView:
    async with asyncio.timeout(20):
        while True:
            view = await client.batches.get(key)
            if view.end_date is not None:
                return view
            await asyncio.sleep(0.01)


def test_a_batch_operation_sees_and_does_what_its_creator_may() -> None:
    tables = FakeTables()

    async def story(there: Guarded) -> None:
        await there.admin.tasks.submit([NewTask("mail", retries=0), NewTask("post", retries=0)])
        for type_ in ("mail", "post"):
            jobs = await there.admin.jobs.activate(activation(type_))
            await there.admin.jobs.fail(
                [JobFailure(job.job_key, job.lease, "broken") for job in jobs]
            )
            tables.keys += [int(job.job_key) for job in jobs]
        clerk = await there.machine("clerk")
        new = NewBatchOperation(type=BatchOperationType.RETRY_TASK, filter=WHERE)
        dry = msgspec.structs.replace(new, dry_run=True)
        await there.let("clerk", _R.BATCH, "*", _P.CREATE_BATCH_OPERATION_DISCARD_TASK, _P.READ)
        for asked in (new, dry):
            with pytest.raises(Forbidden, match="CREATE_BATCH_OPERATION_RETRY_TASK on BATCH"):
                await clerk.batches.create(asked)
        await there.let("clerk", _R.TASK, "mail", _P.READ, _P.UPDATE)
        discard = msgspec.structs.replace(new, type=BatchOperationType.DISCARD_TASK)
        await clerk.batches.create(msgspec.structs.replace(discard, dry_run=True))
        assert tables.asked[-1].visible == Visible((), ("mail",))
        key = (await clerk.batches.create(discard)).batch_operation_key
        assert key is not None
        view = await ended(clerk, key)
        assert tables.asked[-1].visible == Visible((), ("mail",))
        assert tables.asked[-1].claims == {"sub": "clerk", "type": "CLIENT"}
        # These tables leave nothing out, so that the item of others is refused by its own command.
        assert (view.operations_completed_count, view.operations_failed_count) == (1, 1)
        left = [each.type for each in (await there.admin.tasks.page(TaskQuery())).items]
        assert left == ["post"]
        with pytest.raises(Forbidden, match="UPDATE on some BATCH"):
            await clerk.batches.suspend(key)
        other = await there.machine("other")
        await there.let("other", _R.BATCH, "*", _P.CREATE)
        with pytest.raises(Forbidden, match="READ_PROCESS_INSTANCE on PROCESS_DEFINITION"):
            await other.batches.retry(key, BatchRetry(BatchFailures.ITEMS))

    inside(story, open_tables=tables.open)
