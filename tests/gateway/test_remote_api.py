"""A remote Api gives what the Api gives, its errors included."""

import asyncio
import socket
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, get_args, get_origin

import msgspec
import pytest
from tests.gateway.fake_api import JOB, FakeApi, ask, remote, served
from tests.gateway.samples import sample

from holdfast import errors
from holdfast.client import remote as remote_module
from holdfast.client.remote import RemoteApi
from holdfast.engine.batch.values import BatchOperationType
from holdfast.engine.identity.values import OwnerType
from holdfast.errors import ERRORS, HoldfastError
from holdfast.gateway.api import SPACES, Api, namespace
from holdfast.gateway.batch.shapes import NewBatchOperation
from holdfast.gateway.identity.shapes import MEMBERS, Member, NewGroup
from holdfast.gateway.node.shapes import Health
from holdfast.gateway.operation import operations_of
from holdfast.gateway.processes.shapes import (
    ActivateElement,
    MapElement,
    MoveTokens,
    NewMigration,
    NewModification,
)
from holdfast.gateway.tasks.shapes import ActivationRequest, NewSchedule, NewTask, TaskQuery

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


class Call(NamedTuple):
    """An operation and what it is called with."""

    space: str
    method: str
    arguments: tuple[Any, ...]

    async def on(self, api: Api) -> Any:
        return await getattr(getattr(api, self.space), self.method)(*self.arguments)


def calls() -> Iterator[Call]:
    """Every operation of the table, with something in every field of its arguments."""
    for space in SPACES:
        for method, entry in operations_of(namespace(space)):
            given = [argument(entry.hints[name], name) for name in entry.arguments]
            yield Call(space, method, tuple(given))
    for each in BATCHES:
        yield Call("batches", "create", (each,))
    for type_, members in MEMBERS.items():
        yield Call("identity", "groups", (type_,))
        yield Call("identity", "create_group", (type_, NewGroup("ops", "ü", "ä")))
        for member in members:
            yield Call("identity", "add_member", (type_, "a b", Member(member, "ü?")))


def argument(type_: Any, name: str) -> Any:
    if type_ is OwnerType:
        return OwnerType.ROLE
    if get_origin(type_) is Sequence:
        return [sample(get_args(type_)[0], name)] * 2
    return Member(OwnerType.USER, "ann") if type_ is Member else sample(type_, name)


CALLS = list(calls())


def comparable(answer: Any) -> Any:
    return answer if isinstance(answer, bytes) else msgspec.json.encode(answer)


@pytest.mark.parametrize("call", CALLS, ids=lambda each: f"{each.space}.{each.method}")
def test_a_call_and_its_answer_come_through_unchanged(call: Call) -> None:
    async def run() -> None:
        far, near = FakeApi(), FakeApi()
        async with remote(far) as client:
            answer = await call.on(client)
        assert comparable(answer) == comparable(await call.on(near))
        assert far.calls[:1] == near.calls, "others may be asked for what the answer has beside"

    asyncio.run(run())


def test_arguments_may_be_named() -> None:
    async def run() -> None:
        api = FakeApi()
        async with remote(api) as client:
            await client.tasks.results(wait_ms=0, task_keys=("1", "2"))
            with pytest.raises(TypeError, match="missing a required argument: 'wait_ms'"):
                await client.tasks.results(["1"])  # pyright: ignore
        assert api.calls == [("tasks.results", b'["1","2"]', 0)]

    asyncio.run(run())


def test_a_member_of_a_wrong_type_is_refused_before_it_is_sent() -> None:
    async def run() -> None:
        api = FakeApi()
        async with remote(api) as client:
            with pytest.raises(errors.InvalidArgument, match="Expected a member of type CLIENT, U"):
                await client.identity.add_member(OwnerType.GROUP, "g", Member(OwnerType.ROLE, "r"))
        assert api.calls == []

    asyncio.run(run())


def test_activated_jobs_carry_their_payload() -> None:
    async def run() -> None:
        api = FakeApi()
        api.ready.set()
        async with remote(api) as client:
            [job] = await client.jobs.activate(ActivationRequest(["mail"]))
        assert bytes(job.payload) == bytes(JOB.payload)
        assert job.lease == JOB.lease

    asyncio.run(run())


@pytest.mark.parametrize("schedule_id", ["a/b", "ü %2F?#", "..", ".", "a//b", "x+y"])
def test_a_schedule_may_have_any_name(schedule_id: str) -> None:
    async def run() -> None:
        api = FakeApi()
        async with remote(api) as client:
            await client.schedules.put(schedule_id, NewSchedule(NEW_TASK))
            await client.schedules.delete(schedule_id)
        assert [call[1] for call in api.calls] == [schedule_id, schedule_id]

    asyncio.run(run())


def test_thousands_of_tasks_go_in_one_request() -> None:
    async def run() -> None:
        payload = msgspec.Raw(b'"' + b"x" * 1_000 + b'"')
        api = FakeApi()
        async with remote(api) as client:
            receipts = await client.tasks.submit([NewTask("mail", payload)] * 10_000)
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
                await client.node.topology()
        assert type(raised.value) is kind
        assert raised.value.fields == {"retry_after_ms": 1_234, "key": "12"}

    asyncio.run(run())


def test_a_bug_comes_back_as_internal() -> None:
    async def run() -> None:
        api = FakeApi()
        api.error = KeyError("x")
        async with remote(api) as client:
            with pytest.raises(errors.Internal, match="bug"):
                await client.node.topology()

    asyncio.run(run())


def test_no_node_at_the_url_is_unavailable_and_names_it() -> None:
    async def run() -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        client = RemoteApi(url)
        with pytest.raises(errors.Unavailable, match=url):
            await client.tasks.submit([NEW_TASK])
        await client.close()

    asyncio.run(run())


@pytest.mark.parametrize("half", [b"", b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{"])
def test_a_request_whose_connection_breaks_is_sent_once_and_may_have_been_done(half: bytes) -> None:
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
            with pytest.raises(errors.Unknown, match=f"{url}.*check that before you repeat it"):
                await client.tasks.submit([NEW_TASK])
            with pytest.raises(errors.Unavailable, match=url):  # a reader asks whenever it likes
                await client.tasks.page(TaskQuery())
            await client.close()
        assert requests == 2

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
                await client.node.topology()
            await client.close()

    asyncio.run(run())


def test_an_answer_that_does_not_come_exceeds_the_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_module, "ANSWER_S_MAX", 0.1)

    async def run() -> None:
        async with await asyncio.start_server(lambda *_: None, "127.0.0.1", 0) as server:
            client = RemoteApi(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
            with pytest.raises(errors.DeadlineExceeded, match=r"within 0\.15 s"):
                await client.tasks.results(["1"], 50)
            await client.close()

    asyncio.run(run())


def test_cancelling_an_activation_far_away_cancels_it_at_the_node() -> None:
    async def run() -> None:
        api = FakeApi()
        async with remote(api) as client:
            activation = asyncio.create_task(
                client.jobs.activate(ActivationRequest(["mail"], wait_ms=60_000))
            )
            await asyncio.wait_for(api.waiting.wait(), 5)
            activation.cancel()
            await asyncio.wait_for(api.cancelled.wait(), 5)

    asyncio.run(run())


def test_many_long_polls_leave_room_for_other_requests() -> None:
    async def run() -> None:
        api = FakeApi()
        async with remote(api) as client:
            polls = [asyncio.create_task(client.tasks.results(["1"], 60_000)) for _ in range(200)]
            await api.called(remote_module.LONG_POLLS_MAX)
            await asyncio.wait_for(client.node.topology(), 5)
            api.ready.set()
            await asyncio.wait_for(asyncio.gather(*polls), 20)

    asyncio.run(run())


def test_a_closed_client_is_unavailable() -> None:
    async def run() -> None:
        api = FakeApi()
        async with remote(api) as client:
            waiting = asyncio.create_task(client.tasks.results(["1"], 60_000))
            await asyncio.wait_for(api.waiting.wait(), 5)
            await client.close()
            await client.close()
            with pytest.raises(errors.Unavailable, match="closed"):
                await asyncio.wait_for(waiting, 5)
            with pytest.raises(errors.Unavailable, match="closed"):
                await client.node.topology()

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
