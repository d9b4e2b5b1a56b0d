"""A client with several addresses: any member does, and what is sent again is done once."""

import asyncio
import socket
from collections.abc import Awaitable, Callable

import pytest
from tests.gateway.fake_api import FakeApi, served

from holdfast import errors
from holdfast.client.addresses import Addresses
from holdfast.client.remote import RemoteApi
from holdfast.errors import InvalidArgument
from holdfast.gateway.access import asking
from holdfast.gateway.node.shapes import MemberView, Topology
from holdfast.gateway.tasks.shapes import ActivationRequest, NewTask
from holdfast.gateway.transactions.shapes import TransactionRequest


def nobody() -> str:
    """A URL at which nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return f"http://127.0.0.1:{taken.getsockname()[1]}"


def test_a_list_of_addresses_is_read_and_a_wrong_one_is_named() -> None:
    found = Addresses("http://user:secret@a:1/, https://b:2 ,http://c:3")
    assert [found.url, found.count, found.first.username] == ["http://a:1", 3, "user"]
    for expected in ("https://b:2", "http://c:3", "http://a:1"):
        found.failed(found.url)
        assert found.url == expected
    found.failed("http://c:3")  # another request has found out already
    assert found.url == "http://a:1"
    found.learn(["http://c:3/", "", "http://d:4"])
    assert found.count == 4
    with pytest.raises(InvalidArgument, match="'b:2', in 'http://a:1,b:2'"):
        Addresses("http://a:1,b:2")


def test_the_next_address_is_taken_when_nobody_listens_at_one() -> None:
    async def run() -> None:
        api = FakeApi()
        async with served(api) as server:
            client = RemoteApi(f"{nobody()},{nobody()},{server.url}")
            (receipt,) = await client.tasks.submit([NewTask("mail")])
            assert receipt.task_key == "0"
            assert client.url == server.url
            api.ready.set()
            assert await client.jobs.activate(ActivationRequest(["mail"], wait_ms=10))
            await client.close()

    asyncio.run(run())


@pytest.mark.parametrize(
    "error",
    [
        errors.Unknown("it may have been done"),
        errors.Moved("it is elsewhere"),
        errors.Unavailable("the node is closing"),
    ],
    ids=lambda error: str(error.code),
)
@pytest.mark.parametrize(
    "ask",
    [
        lambda client: client.tasks.submit([NewTask("mail")]),
        lambda client: client.transactions.commit(TransactionRequest([])),
    ],
    ids=["quick", "takes its time"],
)
def test_what_may_have_been_done_is_sent_again_with_the_same_id(
    ask: Callable[[RemoteApi], Awaitable[object]],
    error: errors.HoldfastError,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ids: list[str] = []
    remember = asking.requesting

    def requesting(id_: str) -> object:
        ids.append(id_)
        return remember(id_)

    monkeypatch.setattr("holdfast.gateway.http.app.requesting", requesting)

    async def run() -> None:
        first, second = FakeApi(), FakeApi()
        first.error = error
        async with served(first) as one, served(second) as other:
            client = RemoteApi(f"{one.url},{other.url}")
            await ask(client)
            await ask(client)
            await client.close()
        assert len(second.calls) >= 2

    asyncio.run(run())
    assert len(ids) == 3 and ids[0] == ids[1] != ids[2]


@pytest.mark.parametrize(
    "ask",
    [
        lambda client: client.tasks.submit([NewTask("mail")]),
        lambda client: client.jobs.activate(ActivationRequest(["mail"], wait_ms=10)),
    ],
    ids=["once", "long poll"],
)
def test_it_is_not_sent_for_ever_and_a_refusal_not_again(
    ask: Callable[[RemoteApi], object],
) -> None:
    async def run() -> None:
        api = FakeApi()
        async with served(api) as one, served(api) as other:
            client = RemoteApi(f"{one.url},{other.url}", patience_s=0.2)
            api.error = errors.Unavailable("the node is closing")
            with pytest.raises(errors.Unavailable):
                await ask(client)  # pyright: ignore
            api.calls.clear()
            api.error = errors.InvalidArgument("no such thing")
            with pytest.raises(errors.InvalidArgument):
                await ask(client)  # pyright: ignore
            assert len(api.calls) == 1
            await client.close()

    asyncio.run(run())


def test_further_members_are_learned_from_one(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        api, late = FakeApi(), FakeApi()
        async with served(late) as later:
            async with served(api) as server:
                members = [MemberView("c", later.url, "1", [1], [])]

                async def topology() -> Topology:
                    return Topology("1", [], members=members)

                monkeypatch.setattr(api.node, "topology", topology)
                client = RemoteApi(f"{server.url},{nobody()}")
                await client.tasks.submit([NewTask("mail")])
                async with asyncio.timeout(5):
                    while client.addresses.count < 3:  # noqa: ASYNC110 - with a deadline
                        await asyncio.sleep(0.01)
            await client.tasks.submit([NewTask("mail")])  # those that were given are gone
            assert client.url == later.url
            await client.close()

    asyncio.run(run())
