"""One name for a thing of every type: a permission for one of them shows nothing of the others.

Everything here is called `same`. For each type of resource somebody has every permission on `same`,
and asks every endpoint that reads for everything that is there.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest
from tests.gateway.access.access_node import Guarded, basic, bearer, guarded
from tests.gateway.fake_tables import FakeTables
from tests.gateway.rest.rest_tables import COMPLETE, OF_TASKS, put_batches
from tests.pipeline.select_tables import BASE, START_MS, Tables

from holdfast.engine.asker import Asker
from holdfast.engine.batch.values import BatchOperation, BatchOperationState, BatchOperationType
from holdfast.engine.identity.values import PERMISSIONS, OwnerType, Permission, ResourceType
from holdfast.engine.jobs.values import JobState, Outcome
from holdfast.engine.partition import DISPATCH
from holdfast.engine.reader import Reader
from holdfast.gateway.batch.shapes import BatchOperationView
from holdfast.gateway.batch.tables import PastOperation
from holdfast.gateway.content.shapes import NewAnnouncement, NewPackage, ProgressNote
from holdfast.gateway.endpoint import Endpoint
from holdfast.gateway.http.endpoints import ENDPOINTS
from holdfast.gateway.identity.shapes import Member, NewGroup, NewToken, NewUser
from holdfast.gateway.processes.shapes import NewProcessInstance, Resource
from holdfast.gateway.tasks.shapes import (
    ActivationRequest,
    JobCompletion,
    NewSchedule,
    NewTask,
)
from holdfast.groups.messages import UpdateEpoch, encode
from holdfast.model.bpmn import write_bpmn
from holdfast.model.dsl import Process
from holdfast.pipeline.schema import JOBS, PROCESS_DEFINITIONS, PROCESS_INSTANCES, VARIABLES
from holdfast.pipeline.search.serving import FolderTables

SAME = "same"
_R, _P, _T = ResourceType, Permission, OwnerType
READS = [
    each
    for each in ENDPOINTS
    if each.name.startswith(("get_", "list_", "search_")) and each.name != "get_metrics"
]
# what only users who may read that type may find in an answer
SECRETS = {
    _R.TASK: ("task-payload", "task-result", "task-in-tables"),
    _R.PROCESS_DEFINITION: ("process-variable", "process-result", "Process name", "in-tables-var"),
    _R.SCHEDULE: ("Europe/Lisbon",),
    _R.GROUP: ("group-description",),
    _R.ROLE: ("role-description",),
    _R.USER: ("user-email",),
    _R.TOKEN: ("token-of-",),
    _R.CONTENT: ("content-path", "content-host"),
    _R.PARTITION_GROUP: ("group-member",),
}
IN_TABLES = BASE + 900


def inside(story: Callable[[Guarded], Awaitable[None]], **settings: Any) -> None:
    async def run() -> None:
        async with guarded(**settings) as there:
            await story(there)

    asyncio.run(run())


def raw(value: Any) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(value))


async def end_job(there: Guarded, type_: str, result: Any) -> None:
    [job] = await there.admin.jobs.activate(ActivationRequest([type_], "w", 1, 60_000))
    await there.admin.jobs.complete([JobCompletion(job.job_key, job.lease, raw(result))])


async def make_everything(there: Guarded) -> list[str]:
    """Something of every type, all with one name; the keys of what has one."""
    admin, identity = there.admin, there.admin.identity
    process = Process(SAME, name="Process name").task("work")
    source = write_bpmn(process.definition()).decode()
    [definition] = await admin.processes.deploy([Resource("same.bpmn", source)])
    [ended] = await admin.instances.start(
        [NewProcessInstance(SAME, variables=raw({"v": "process-result"}))]
    )
    await end_job(there, "work", {})
    [runs] = await admin.instances.start(
        [NewProcessInstance(SAME, variables=raw({"v": "process-variable"}))]
    )
    [done] = await admin.tasks.submit([NewTask(SAME, raw("task-payload"))])
    await end_job(there, SAME, "task-result")
    [waits] = await admin.tasks.submit([NewTask(SAME, raw("task-payload"))])
    await admin.schedules.put(
        SAME, NewSchedule(NewTask("other"), cron="0 3 * * *", timezone="Europe/Lisbon")
    )
    await identity.create_group(_T.GROUP, NewGroup(SAME, description="group-description"))
    await identity.create_group(_T.ROLE, NewGroup(SAME, description="role-description"))
    await identity.create_user(NewUser(SAME, email="user-email"))
    await admin.content.publish(NewPackage(SAME, SAME, "DELETE", ["/content-path"]))
    await admin.content.announce(
        NewAnnouncement(SAME, "store", progress=[ProgressNote(SAME)], host="content-host")
    )
    member = "group-member/1"
    await admin.groups.append(SAME, encode(UpdateEpoch(0, member, 1, 1, (member,))))
    token = await identity.create_token(NewToken(SAME))
    SECRETS[_R.TOKEN] = (token.token_id,)
    view = await admin.instances.get(runs.process_instance_key)
    elements = [each.element_instance_key for each in view.elements]
    jobs = [each.job_key for each in view.elements if each.job_key]
    return [
        definition.process_definition_key, ended.process_instance_key, runs.process_instance_key,
        done.task_key, waits.task_key, *elements, *jobs, str(IN_TABLES), str(IN_TABLES + 1),
    ]  # fmt: skip


def put_tables(root: Path) -> None:
    tables = Tables(root)
    definition = {"process_id": SAME, "version": 1, "name": "Process name", "deployed": START_MS}
    tables.put(PROCESS_DEFINITIONS, 1, {IN_TABLES + 5: definition})
    of = {"process_definition_key": IN_TABLES + 5, "process_id": SAME, "version": 1}
    over = {"started": START_MS, "ended": START_MS + 5, "incidents": 0, "state": "COMPLETED"}
    tables.put(PROCESS_INSTANCES, 1, {IN_TABLES: of | over})
    variable = {"process_instance_key": IN_TABLES, "value": '"in-tables-var"', "updated": START_MS}
    tables.put(VARIABLES, 1, {(IN_TABLES, "v"): variable})
    task = {"type": SAME, "state": "INCIDENT", "retries": 0, "failures": 1, "created": START_MS}
    of_other = {"process_instance_key": IN_TABLES + 7, "element_instance_key": IN_TABLES + 8}
    tables.put(JOBS, 1, {IN_TABLES + 1: task | of_other | {"error": "task-in-tables"}})
    tables.publish({1: 10})


def requests_of(end: Endpoint, keys: list[str]) -> list[tuple[str, Any]]:
    """Every way to ask an endpoint for one of the things, or for all of them."""
    body: dict[str, Any] | None = None if end.request is None else {}
    paths = [end.path]
    if end.parameters:
        names = [*keys, SAME, *(f"{key}{'0' * 8}1" for key in keys)]
        paths = [re.sub(r"{\w+}", each, end.path) for each in names]
    bodies = [body]
    if end.name == "get_results":
        bodies = [{"taskKeys": keys}]
    elif end.name in ("search_variables", "search_jobs"):
        bodies += [{"filter": {"processInstanceKey": key}} for key in keys]
    elif end.name == "get_journal_bounds_since":
        bodies = [{"sinceMs": 0}]
    return [(path, each) for path in paths for each in bodies]


async def seen_by(there: Guarded, token: str, keys: list[str]) -> dict[str, str]:
    """What somebody is answered, by endpoint."""
    found: dict[str, str] = {}
    async with aiohttp.ClientSession(there.url, headers=bearer(token)) as session:
        for end in READS:
            texts: list[str] = []
            for path, body in requests_of(end, keys):
                async with session.request(end.method, path, json=body) as reply:
                    assert reply.status < 500 or reply.status == 503, (
                        end.name,
                        path,
                        await reply.text(),
                    )
                    if reply.status < 300:
                        texts.append(await reply.text())
                    elif "on some" in await reply.text():  # not let in at all
                        break
            found[end.name] = "\n".join(texts)
    return found


def test_a_permission_shows_nothing_of_what_has_the_same_name_and_another_type(
    tmp_path: Path,
) -> None:
    async def story(there: Guarded) -> None:
        put_tables(tmp_path / "tables")
        there.node.gateway.show_tables(FolderTables(tmp_path / "tables"))
        keys = await make_everything(there)
        for type_ in ResourceType:
            who = f"only-{type_}"
            await there.let(who, type_, SAME, *PERMISSIONS[type_])
            token = (await there.admin.identity.create_token(NewToken(who))).token
            answers = await seen_by(there, token, keys)
            everything = "\n".join(answers.values())
            for secret_of, secrets in SECRETS.items():
                for secret in secrets:
                    at = [name for name, text in answers.items() if secret in text]
                    if secret_of is type_:
                        assert secret in everything, f"{type_} does not show {secret}"
                    else:
                        assert not at, f"{type_} shows {secret} of {secret_of} in {at}"

    inside(story)


def test_an_outcome_that_does_not_say_what_it_is_of_needs_both_permissions() -> None:
    """An earlier release kept only the name: of a task's type, or of a process."""

    async def story(there: Guarded) -> None:
        source = write_bpmn(Process(SAME).task("work").definition()).decode()
        await there.admin.processes.deploy([Resource("same.bpmn", source)])
        rights = ((_R.TASK, _P.READ), (_R.PROCESS_DEFINITION, _P.READ_PROCESS_INSTANCE))
        for name, given in (("task", rights[:1]), ("process", rights[1:]), ("both", rights)):
            for resource, permission in given:
                for id_ in (SAME, "only-a-task"):
                    await there.let(name, resource, id_, permission)
        node = there.node
        processor = node.node.runner.processors[1]

        def seen(outcome: Outcome) -> list[str]:
            found: list[str] = []
            for name in ("task", "process", "both"):
                reader = Reader(processor, DISPATCH, node.journal, 0, Asker(name, _T.CLIENT))
                found += [name] if reader.may_read_outcome(outcome) else []
            return found

        old = Outcome(JobState.COMPLETED, b"1", "", 1, SAME)
        assert seen(old) == ["both"]
        assert seen(msgspec.structs.replace(old, type="only-a-task")) == ["task", "both"]
        assert seen(msgspec.structs.replace(old, is_job=True)) == ["task", "both"]
        assert seen(msgspec.structs.replace(old, definition=1)) == ["process", "both"]

    inside(story)


# --- who asks ---------------------------------------------------------------------------------


def test_users_clients_groups_and_roles_of_one_name_are_never_the_same() -> None:
    async def story(there: Guarded) -> None:
        identity = there.admin.identity
        await identity.create_user(NewUser(SAME, "right"))
        client = (await identity.create_token(NewToken(SAME))).token
        for type_ in (_T.GROUP, _T.ROLE):
            await identity.create_group(type_, NewGroup(SAME))
            await identity.add_member(type_, SAME, Member(_T.CLIENT, f"in-{type_}"))
        askers = {
            _T.USER: basic(SAME, "right"),
            _T.CLIENT: bearer(client),
            _T.GROUP: bearer((await identity.create_token(NewToken(f"in-{_T.GROUP}"))).token),
            _T.ROLE: bearer((await identity.create_token(NewToken(f"in-{_T.ROLE}"))).token),
        }
        for number, owner in enumerate(OwnerType):
            type_ = f"task-{number}"
            await there.let(SAME, _R.TASK, type_, _P.CREATE, type_=owner)
            for asker, headers in askers.items():
                async with (
                    aiohttp.ClientSession(there.url, headers=headers) as session,
                    session.post("/v2/tasks", json={"type": type_}) as reply,
                ):
                    expected = 200 if asker is owner else 403
                    assert reply.status == expected, (owner, asker, await reply.text())

    inside(story, basic_authentication=True)


@pytest.mark.parametrize("creator", [_T.USER, _T.CLIENT])
def test_items_of_a_batch_operation_are_shown_to_who_created_it_and_to_who_sees_all(
    creator: OwnerType,
) -> None:
    key = 2251799813685250  # one that was given out
    tables = FakeTables()
    claims = msgspec.to_builtins(Asker(SAME, creator))
    tables.past_operations[key] = PastOperation(
        BatchOperation(BatchOperationType.RETRY_TASK, b"{}", claims=claims, partitions=(1,)),
        BatchOperationView(
            batch_operation_key=str(key), batch_operation_type=BatchOperationType.RETRY_TASK,
            state=BatchOperationState.COMPLETED, filter=msgspec.Raw(b"{}"),
            operations_failed_count=1,
        ),
    )  # fmt: skip

    async def story(there: Guarded) -> None:
        identity = there.admin.identity
        await identity.create_user(NewUser(SAME, "right"))
        askers = {
            _T.USER: basic(SAME, "right"),
            _T.CLIENT: bearer((await identity.create_token(NewToken(SAME))).token),
        }
        for each in askers:
            await there.let(SAME, _R.BATCH, "*", _P.READ, _P.CREATE, type_=each)
        ways: list[tuple[str, Any]] = [
            ("/v2/batch-operation-items/listing", {"filter": {"batchOperationKey": str(key)}}),
            (f"/v2/batch-operations/{key}/retry", {}),
        ]
        for path, body in ways:
            for asker, headers in askers.items():
                async with (
                    aiohttp.ClientSession(there.url, headers=headers) as session,
                    session.post(path, json=body) as reply,
                ):
                    expected = 200 if asker is creator else 403
                    assert reply.status == expected, (path, asker, await reply.text())
            async with (
                aiohttp.ClientSession(there.url, headers=bearer(there.admin_token)) as session,
                session.post(path, json=body) as reply,
            ):
                assert reply.status == 200, await reply.text()
        async with (
            aiohttp.ClientSession(there.url, headers=askers[creator]) as session,
            session.post("/v2/batch-operation-items/listing", json={}) as reply,
        ):
            assert reply.status == 403, "not those of everybody"

    inside(story, open_tables=tables.open, basic_authentication=True)


def test_a_search_of_items_finds_those_of_operations_that_one_created(tmp_path: Path) -> None:
    root = tmp_path / "tables"
    put_batches(Tables(root))

    async def story(there: Guarded) -> None:
        there.node.gateway.show_tables(FolderTables(root))
        identity = there.admin.identity
        await identity.create_user(NewUser("ann", "right"))
        askers = {
            _T.USER: basic("ann", "right"),  # who created one of them
            _T.CLIENT: bearer((await identity.create_token(NewToken("ann"))).token),
        }
        for each in askers:
            await there.let("ann", _R.BATCH, "*", _P.READ, type_=each)
        askers[_T.ROLE] = bearer(there.admin_token)

        async def found(asker: OwnerType, filter_: dict[str, str]) -> int:
            async with (
                aiohttp.ClientSession(there.url, headers=askers[asker]) as session,
                session.post("/v2/batch-operation-items/search", json={"filter": filter_}) as reply,
            ):
                return len((await reply.json())["items"]) if reply.status == 200 else -reply.status

        hers, of_others = ({"batchOperationKey": str(key)} for key in (COMPLETE, OF_TASKS))
        assert [await found(each, hers) for each in askers] == [3, 0, 3]
        assert [await found(each, of_others) for each in askers] == [0, 0, 1]
        assert [await found(each, {}) for each in askers] == [-403, -403, 4]

    inside(story, basic_authentication=True)
