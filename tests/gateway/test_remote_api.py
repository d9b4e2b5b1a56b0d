"""A remote Api gives what the Api gives, its errors included."""

import asyncio
import inspect
import socket
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest
from tests.gateway.fake_api import JOB, FakeApi, ask, remote, served

from holdfast import errors
from holdfast.client import remote as remote_module
from holdfast.client.remote import RemoteApi
from holdfast.engine.batch.values import BatchOperationState, BatchOperationType
from holdfast.engine.jobs.values import JobState
from holdfast.errors import ERRORS, HoldfastError
from holdfast.gateway.api import Api
from holdfast.gateway.batch.shapes import (
    BatchChange,
    BatchFailures,
    BatchItemFilter,
    BatchItemQuery,
    BatchItemState,
    BatchOperationFilter,
    BatchOperationQuery,
    BatchPageQuery,
    BatchRetry,
    NewBatchOperation,
)
from holdfast.gateway.distribution.shapes import (
    DistributionCancellation,
    DistributionQuery,
    DistributionSkip,
)
from holdfast.gateway.node_shapes import Health
from holdfast.gateway.processes.shapes import (
    ActivateElement,
    MapElement,
    MoveTokens,
    NewMessage,
    NewMigration,
    NewModification,
    NewProcessInstance,
    NewVariables,
    ProcessDefinitionQuery,
    ProcessInstanceQuery,
    Resource,
)
from holdfast.gateway.tasks.shapes import (
    ActivationRequest,
    HeldJob,
    IncidentQuery,
    JobCompletion,
    JobError,
    JobFailure,
    NewSchedule,
    NewTask,
    TaskQuery,
)

NEW_TASK = NewTask("mail", msgspec.Raw('{"to":"ä"}'.encode()), key="k")
VARIABLES = msgspec.Raw(b'{"total":7}')
MODIFICATION = NewModification(
    [ActivateElement("mail", "6", VARIABLES)], ["7"], ["box"], [MoveTokens("a", "b")], VARIABLES
)
MIGRATION = NewMigration("4", [MapElement("a", "b")])
WHERE = msgspec.Raw('{"error":{"$like":"*ü"}}'.encode())
_T = BatchOperationType


def new_batch(type_: BatchOperationType, **rest: Any) -> NewBatchOperation:
    return NewBatchOperation(type=type_, filter=WHERE, throttle=5, priority=-1, **rest)


BATCHES = [
    new_batch(_T.CANCEL_PROCESS_INSTANCE, dry_run=True),
    new_batch(_T.MODIFY_PROCESS_INSTANCE, modification=MODIFICATION),
    new_batch(_T.MIGRATE_PROCESS_INSTANCE, migration=MIGRATION),
    new_batch(_T.DELETE_PROCESS_INSTANCE),
    new_batch(_T.RESOLVE_INCIDENT, retries=2),
    new_batch(_T.RETRY_TASK, retries=3),
    new_batch(_T.DISCARD_TASK),
]


async def create_all(api: Api) -> list[Any]:
    return [await api.create_batch_operation(each) for each in BATCHES]


CALLS: dict[str, Callable[[Api], Awaitable[Any]]] = {
    "submit": lambda api: api.submit([NEW_TASK, NewTask("other")]),
    "task": lambda api: api.task("7"),
    "tasks": lambda api: api.tasks(TaskQuery("mail", JobState.WAITING, 3, "2")),
    "results": lambda api: api.results(["1", "2"], 20),
    "cancel": lambda api: api.cancel("7"),
    "activate": lambda api: api.activate(ActivationRequest(["mail"], "me", 3, 4_000, 20)),
    "complete": lambda api: api.complete([JobCompletion("7", "l", msgspec.Raw(b"[1]"))]),
    "fail": lambda api: api.fail([JobFailure("7", "l", "broke", True, 5)]),
    "throw": lambda api: api.throw([JobError("7", "l", "DECLINED", "no", VARIABLES)]),
    "update_retries": lambda api: api.update_retries("8", 4),
    "release": lambda api: api.release([HeldJob("7", "l")]),
    "extend": lambda api: api.extend(["l", "m"], 9_000),
    "incidents": lambda api: api.incidents(IncidentQuery("mail", 5, "2", "order", "5")),
    "resolve_incident": lambda api: api.resolve_incident("9", 4),
    "discard_incident": lambda api: api.discard_incident("9"),
    "put_schedule": lambda api: api.put_schedule("nightly", NewSchedule(NEW_TASK, "0 0 * * *")),
    "delete_schedule": lambda api: api.delete_schedule("nightly"),
    "schedules": lambda api: api.schedules(),
    "deploy": lambda api: api.deploy([Resource("a.bpmn", "<ä/>"), Resource("b.bpmn", "<b/>")]),
    "definitions": lambda api: api.definitions(ProcessDefinitionQuery("order", True)),
    "definition_source": lambda api: api.definition_source("3"),
    "start": lambda api: api.start(
        [NewProcessInstance("order", 2, VARIABLES, "k", 5_000, 6_000), NewProcessInstance("other")]
    ),
    "instance": lambda api: api.instance("5"),
    "instances": lambda api: api.instances(ProcessInstanceQuery("order", 2, True, 5, "4")),
    "cancel_instance": lambda api: api.cancel_instance("5"),
    "set_variables": lambda api: api.set_variables("5", NewVariables(VARIABLES, True)),
    "modify_instance": lambda api: api.modify_instance("5", MODIFICATION),
    "migrate_instance": lambda api: api.migrate_instance("5", MIGRATION),
    "publish": lambda api: api.publish(NewMessage("paid", "42", VARIABLES, "id", 5_000)),
    "distributions": lambda api: api.distributions(DistributionQuery("processes", 3, 5, "4")),
    "distribution": lambda api: api.distribution("4"),
    "skip_distribution": lambda api: api.skip_distribution(
        "4", DistributionSkip(3, "ann", "disk gone")
    ),
    "cancel_distribution": lambda api: api.cancel_distribution(
        "4", DistributionCancellation("ann", "not needed")
    ),
    "resume_distributions": lambda api: api.resume_distributions(3),
    "create_batch_operation": create_all,
    "batch_operation": lambda api: api.batch_operation("17"),
    "batch_operations": lambda api: api.batch_operations(
        BatchOperationQuery(
            BatchOperationFilter(BatchOperationState.ACTIVE, _T.RETRY_TASK), BatchPageQuery(5, "b")
        )
    ),
    "batch_operation_items": lambda api: api.batch_operation_items(
        BatchItemQuery(BatchItemFilter("17", "5", "6", BatchItemState.FAILED), BatchPageQuery(5))
    ),
    "suspend_batch_operation": lambda api: api.suspend_batch_operation("17"),
    "resume_batch_operation": lambda api: api.resume_batch_operation("17"),
    "cancel_batch_operation": lambda api: api.cancel_batch_operation("17"),
    "change_batch_operation": lambda api: api.change_batch_operation("17", BatchChange(0, 4)),
    "retry_batch_operation": lambda api: api.retry_batch_operation(
        "17", BatchRetry(BatchFailures.PARTITIONS, 1, 2, 3)
    ),
    "journal_bounds": lambda api: api.journal_bounds(),
    "journal_bounds_since": lambda api: api.journal_bounds_since(1_700_000_000_000),
    "read_journal": lambda api: api.read_journal(2, 5, 1_000),
    "topology": lambda api: api.topology(),
    "health": lambda api: api.health(),
    "metrics": lambda api: api.metrics(),
}


def comparable(answer: Any) -> Any:
    return answer if isinstance(answer, bytes) else msgspec.json.encode(answer)


def test_every_method_of_the_api_is_tried_here() -> None:
    methods = {name for name, _ in inspect.getmembers(Api, inspect.isfunction) if name[0] != "_"}
    assert methods - {"close"} == set(CALLS)


@pytest.mark.parametrize("name", CALLS)
def test_a_call_and_its_answer_come_through_unchanged(name: str) -> None:
    async def run() -> None:
        far, near = FakeApi(), FakeApi()
        async with remote(far) as client:
            answer = await CALLS[name](client)
        assert comparable(answer) == comparable(await CALLS[name](near))
        assert far.calls == near.calls

    asyncio.run(run())


def test_activated_jobs_carry_their_payload() -> None:
    async def run() -> None:
        api = FakeApi()
        api.ready.set()
        async with remote(api) as client:
            [job] = await client.activate(ActivationRequest(["mail"]))
        assert bytes(job.payload) == bytes(JOB.payload)
        assert job.lease == JOB.lease

    asyncio.run(run())


@pytest.mark.parametrize("schedule_id", ["a/b", "ü %2F?#", "..", ".", "a//b", "x+y"])
def test_a_schedule_may_have_any_name(schedule_id: str) -> None:
    async def run() -> None:
        api = FakeApi()
        async with remote(api) as client:
            await client.put_schedule(schedule_id, NewSchedule(NEW_TASK))
            await client.delete_schedule(schedule_id)
        assert [call[1] for call in api.calls] == [schedule_id, schedule_id]

    asyncio.run(run())


def test_thousands_of_tasks_go_in_one_request() -> None:
    async def run() -> None:
        payload = msgspec.Raw(b'"' + b"x" * 1_000 + b'"')
        api = FakeApi()
        async with remote(api) as client:
            receipts = await client.submit([NewTask("mail", payload)] * 10_000)
        assert len(receipts) == 10_000
        assert len(api.calls) == 1

    asyncio.run(run())


@pytest.mark.parametrize("kind", ERRORS.values())
def test_an_error_comes_back_as_the_same_error(kind: type[HoldfastError]) -> None:
    async def run() -> None:
        api = FakeApi()
        api.error = kind("Expected tea, but found coffee", retry_after_ms=1_234, key="12")
        async with remote(api) as client:
            with pytest.raises(HoldfastError, match="Expected tea, but found coffee") as raised:
                await client.topology()
        assert type(raised.value) is kind
        assert raised.value.fields == {"retry_after_ms": 1_234, "key": "12"}

    asyncio.run(run())


def test_a_bug_comes_back_as_internal() -> None:
    async def run() -> None:
        api = FakeApi()
        api.error = KeyError("x")
        async with remote(api) as client:
            with pytest.raises(errors.Internal, match="bug"):
                await client.topology()

    asyncio.run(run())


def test_no_node_at_the_url_is_unavailable_and_names_it() -> None:
    async def run() -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        client = RemoteApi(url)
        with pytest.raises(errors.Unavailable, match=url):
            await client.submit([NEW_TASK])
        await client.close()

    asyncio.run(run())


@pytest.mark.parametrize("half", [b"", b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{"])
def test_a_connection_that_breaks_is_unavailable_and_sent_once(half: bytes) -> None:
    async def run() -> None:
        requests = 0

        async def breaks(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            nonlocal requests
            requests += 1
            await reader.readuntil(b"\r\n\r\n")
            writer.write(half)
            writer.close()

        async with await asyncio.start_server(breaks, "127.0.0.1", 0) as server:
            url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
            client = RemoteApi(url)
            with pytest.raises(errors.Unavailable, match=url):
                await client.submit([NEW_TASK])
            await client.close()
        assert requests == 1

    asyncio.run(run())


@pytest.mark.parametrize(
    ("status", "kind"), [(502, errors.Unavailable), (404, errors.Internal), (200, errors.Internal)]
)
def test_an_answer_that_is_not_from_a_node_is_told_as_such(
    status: int, kind: type[HoldfastError]
) -> None:
    async def run() -> None:
        async def page(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 %d No\r\ncontent-length: 7\r\n\r\n<html/>" % status)
            writer.close()

        async with await asyncio.start_server(page, "127.0.0.1", 0) as server:
            client = RemoteApi(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
            with pytest.raises(kind, match="<html/>"):
                await client.topology()
            await client.close()

    asyncio.run(run())


def test_an_answer_that_does_not_come_exceeds_the_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_module, "ANSWER_S_MAX", 0.1)

    async def run() -> None:
        async with await asyncio.start_server(lambda *_: None, "127.0.0.1", 0) as server:
            client = RemoteApi(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
            with pytest.raises(errors.DeadlineExceeded, match=r"within 0\.15 s"):
                await client.results(["1"], 50)
            await client.close()

    asyncio.run(run())


def test_cancelling_an_activation_far_away_cancels_it_at_the_node() -> None:
    async def run() -> None:
        api = FakeApi()
        async with remote(api) as client:
            activation = asyncio.create_task(
                client.activate(ActivationRequest(["mail"], wait_ms=60_000))
            )
            await asyncio.wait_for(api.waiting.wait(), 5)
            activation.cancel()
            await asyncio.wait_for(api.cancelled.wait(), 5)

    asyncio.run(run())


def test_many_long_polls_leave_room_for_other_requests() -> None:
    async def run() -> None:
        api = FakeApi()
        async with remote(api) as client:
            polls = [asyncio.create_task(client.results(["1"], 60_000)) for _ in range(200)]
            await api.called(remote_module.LONG_POLLS_MAX)
            await asyncio.wait_for(client.topology(), 5)
            api.ready.set()
            await asyncio.wait_for(asyncio.gather(*polls), 20)

    asyncio.run(run())


def test_a_closed_client_is_unavailable() -> None:
    async def run() -> None:
        api = FakeApi()
        async with remote(api) as client:
            waiting = asyncio.create_task(client.results(["1"], 60_000))
            await asyncio.wait_for(api.waiting.wait(), 5)
            await client.close()
            await client.close()
            with pytest.raises(errors.Unavailable, match="closed"):
                await asyncio.wait_for(waiting, 5)
            with pytest.raises(errors.Unavailable, match="closed"):
                await client.topology()

    asyncio.run(run())


@pytest.mark.parametrize("url", ["localhost:8080", "ftp://here", "", "http://"])
def test_a_url_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(errors.InvalidArgument, match="Expected a URL"):
        RemoteApi(url)


def test_health_asks_nothing_of_the_node_and_metrics_are_plain_text() -> None:
    async def run() -> None:
        api = FakeApi()
        async with served(api) as server:
            health = await ask(server.url, "GET", "/v2/health")
            assert (health.json(), api.calls) == ({"status": "UP"}, [])
            api.condition = Health("DEGRADED", ["a segment"])
            health = await ask(server.url, "GET", "/v2/health")
            assert health.json() == {"status": "DEGRADED", "damage": ["a segment"]}
            api.condition = Health("REBUILDING", ["a row cannot be read"])
            health = await ask(server.url, "GET", "/v2/health")
            assert (health.status, health.json()["code"]) == (503, "UNAVAILABLE")
            assert "a row cannot be read" in health.json()["detail"]
            metrics = await ask(server.url, "GET", "/metrics")
            assert metrics.headers["content-type"].startswith("text/plain; version=0.0.4")

    asyncio.run(run())
