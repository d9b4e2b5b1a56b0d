"""A client with one address: it waits for a node that is away, and what it repeats is done once."""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
from tests.gateway.fake_api import FakeApi, served

from holdfast import errors
from holdfast.client.remote import RemoteApi
from holdfast.gateway.access import asking
from holdfast.gateway.http import HttpServer
from holdfast.gateway.tasks.shapes import ActivationRequest, JobCompletion, NewTask, TaskQuery

Ask = Callable[[RemoteApi], Awaitable[Any]]


@pytest.fixture
def ids(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The request ids that come to a node."""
    found: list[str] = []
    remember = asking.requesting

    def requesting(id_: str) -> object:
        found.append(id_)
        return remember(id_)

    monkeypatch.setattr("holdfast.gateway.http.app.requesting", requesting)
    yield found


def submit(client: RemoteApi) -> Awaitable[Any]:
    return client.tasks.submit([NewTask("mail")])


def look(client: RemoteApi) -> Awaitable[Any]:
    return client.tasks.page(TaskQuery())


def work(client: RemoteApi) -> Awaitable[Any]:
    return client.jobs.complete([JobCompletion("1", "1")])


def poll(client: RemoteApi) -> Awaitable[Any]:
    return client.jobs.activate(ActivationRequest(["mail"], wait_ms=10))


async def after_errors(ask: Ask, *given: errors.HoldfastError, patience_s: float = 5.0) -> int:
    """Asks a node that gives these errors first; how often it was asked in the end."""
    left = list(given)

    class Failing(FakeApi):
        def tell(self, *call: Any) -> None:
            self.error = left.pop(0) if left else None
            super().tell(*call)

    api = Failing()
    async with served(api) as server:
        client = RemoteApi(server.url, patience_s=patience_s)
        try:
            await ask(client)
        finally:
            await client.close()
    return len(api.calls)


@pytest.mark.parametrize(
    "error",
    [
        errors.Unknown("it may have been done"),
        errors.Moved("it is elsewhere"),
        errors.Unavailable("the node is closing"),
    ],
    ids=lambda error: str(error.code),
)
def test_a_call_is_repeated_with_the_same_id_and_a_look_without(
    error: errors.HoldfastError, ids: list[str]
) -> None:
    assert asyncio.run(after_errors(submit, error, error)) == 3
    assert len(ids) == 3 and len(set(ids)) == 1
    assert asyncio.run(after_errors(look, error, error)) == 3
    assert len(ids) == 3, "what is only read needs no id"


@pytest.mark.parametrize("ask", [work, poll])
def test_what_workers_ask_is_sent_once_and_has_no_id(ask: Ask, ids: list[str]) -> None:
    with pytest.raises(errors.Unavailable):
        asyncio.run(after_errors(ask, errors.Unavailable("the node is closing")))
    assert ids == []


@pytest.mark.parametrize("ask", [submit, look])
def test_what_waiting_does_not_change_is_told_at_once(ask: Ask) -> None:
    with pytest.raises(errors.Unavailable, match="no tables"):
        asyncio.run(after_errors(ask, errors.Unavailable("no tables", lasting=1)))


@pytest.mark.parametrize("ask", [submit, look])
def test_without_patience_everything_is_sent_once_and_has_no_id(ask: Ask, ids: list[str]) -> None:
    with pytest.raises(errors.Unavailable):
        asyncio.run(after_errors(ask, errors.Unavailable("closing"), patience_s=0))
    assert ids == []


@pytest.mark.parametrize("ask", [submit, look])
def test_a_node_that_is_not_there_yet_is_waited_for(ask: Ask) -> None:
    async def run() -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
        url = f"http://127.0.0.1:{port}"
        client = RemoteApi(url, patience_s=5)
        asked = asyncio.ensure_future(ask(client))
        hasty = RemoteApi(url, patience_s=5, waits_for_start=False)
        with pytest.raises(errors.Unavailable, match=url):
            await ask(hasty)
        assert not asked.done()
        server = HttpServer(FakeApi(), port=port)
        await server.start()
        await asked
        await ask(hasty)
        await server.close()
        again = asyncio.ensure_future(ask(hasty))  # it was there before: it may come back
        await asyncio.sleep(0.1)
        assert not again.done()
        second = HttpServer(FakeApi(), port=port)
        await second.start()
        await again
        await second.close()
        await client.close()
        await hasty.close()

    asyncio.run(run())


def test_a_client_that_is_closed_does_not_go_on() -> None:
    async def run() -> None:
        client = RemoteApi("http://127.0.0.1:1", patience_s=30)
        asked = asyncio.ensure_future(submit(client))
        await asyncio.sleep(0.05)
        await client.close()
        with pytest.raises(errors.Unavailable):
            await asyncio.wait_for(asked, 5)

    asyncio.run(run())
