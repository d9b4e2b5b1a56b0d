"""Long polls end early when their client goes or the server closes, and lease no job to nobody."""

import asyncio
import time

import aiohttp
import pytest
from tests.gateway.fake_api import FakeApi, ask, ask_in, served

from holdfast.errors import Code, Unavailable
from holdfast.gateway.http import HttpServer

ACTIVATION = {"types": ["mail"], "waitMs": 60_000}
RESULTS = {"taskKeys": ["1"], "waitMs": 60_000}


def test_an_activation_gets_the_jobs_that_come_while_it_waits() -> None:
    async def run() -> None:
        api = FakeApi()
        async with served(api) as server:
            asking = asyncio.create_task(
                ask(server.url, "POST", "/v2/jobs/leases", json=ACTIVATION)
            )
            await asyncio.wait_for(api.waiting.wait(), 5)
            api.ready.set()
            reply = await asyncio.wait_for(asking, 5)
        assert [job["jobKey"] for job in reply.json()["jobs"]] == ["7"]
        assert reply.json()["jobs"][0]["payload"] == {"to": "a"}

    asyncio.run(run())


@pytest.mark.parametrize(
    ("path", "body"), [("/v2/jobs/leases", ACTIVATION), ("/v2/tasks/results", RESULTS)]
)
def test_a_client_that_goes_cancels_its_long_poll(path: str, body: dict[str, object]) -> None:
    async def run() -> None:
        api = FakeApi()
        async with served(api) as server:
            asking = asyncio.create_task(ask(server.url, "POST", path, json=body))
            await asyncio.wait_for(api.waiting.wait(), 5)
            asking.cancel()
            await asyncio.wait_for(api.cancelled.wait(), 5)
        assert len(api.calls) == 1

    asyncio.run(run())


def test_jobs_that_come_at_the_moment_their_client_goes_are_given_back() -> None:
    async def run() -> None:
        api = FakeApi()
        api.gives_jobs_when_cancelled = True
        async with served(api) as server:
            asking = asyncio.create_task(
                ask(server.url, "POST", "/v2/jobs/leases", json=ACTIVATION)
            )
            await asyncio.wait_for(api.waiting.wait(), 5)
            asking.cancel()
            await asyncio.wait_for(api.cancelled.wait(), 5)
        assert api.calls[1:] == [("jobs.release", b'[{"jobKey":"7","lease":"lease-7"}]')]

    asyncio.run(run())


def test_an_error_in_a_long_poll_is_a_problem_too() -> None:
    async def run() -> None:
        api = FakeApi()
        api.error = Unavailable("closing")
        async with served(api) as server:
            reply = await ask(server.url, "POST", "/v2/jobs/leases", json=ACTIVATION)
        assert (reply.status, reply.json()["code"]) == (503, Code.UNAVAILABLE)

    asyncio.run(run())


def test_a_connection_serves_on_after_a_long_poll() -> None:
    async def run() -> None:
        api = FakeApi()
        async with served(api) as server, aiohttp.ClientSession() as session:
            for _ in range(3):
                body = {"types": ["mail"], "waitMs": 10}
                reply = await ask_in(session, server.url, "POST", "/v2/jobs/leases", json=body)
                assert reply.json() == {"jobs": []}

    asyncio.run(run())


def test_closing_the_server_ends_long_polls_with_what_they_have() -> None:
    async def run() -> None:
        api = FakeApi()
        server = HttpServer(api)
        await server.start()
        activation = asyncio.create_task(
            ask(server.url, "POST", "/v2/jobs/leases", json=ACTIVATION)
        )
        results = asyncio.create_task(ask(server.url, "POST", "/v2/tasks/results", json=RESULTS))
        await api.called(2)
        began = time.monotonic()
        await server.close()
        assert time.monotonic() - began < 2
        assert (await activation).json() == {"jobs": []}
        outcome = {"taskKey": "1", "state": None, "error": None}
        assert (await results).json() == {"tasks": [outcome]}

    asyncio.run(run())


def test_closing_the_server_lets_a_request_finish() -> None:
    async def run() -> None:
        api = FakeApi()
        began, go_on = asyncio.Event(), asyncio.Event()

        async def cancel(task_key: str) -> None:
            began.set()
            await go_on.wait()

        api.tasks.cancel = cancel  # pyright: ignore[reportAttributeAccessIssue]
        server = HttpServer(api)
        await server.start()
        asking = asyncio.create_task(ask(server.url, "POST", "/v2/tasks/1/cancellation"))
        await asyncio.wait_for(began.wait(), 5)
        closing = asyncio.create_task(server.close())
        await asyncio.sleep(0.05)
        go_on.set()
        assert (await asking).status == 204
        await closing

    asyncio.run(run())


def test_a_port_in_use_is_named() -> None:
    async def run() -> None:
        async with served(FakeApi()) as server:
            port = int(server.url.rpartition(":")[2])
            with pytest.raises(Unavailable, match=f"127.0.0.1:{port}: another process"):
                await HttpServer(FakeApi(), port=port).start()

    asyncio.run(run())


def test_a_server_closes_twice_and_its_port_is_free_again() -> None:
    async def run() -> None:
        server = HttpServer(FakeApi())
        await server.close()
        await server.start()
        await server.close()
        await server.close()
        again = HttpServer(FakeApi(), port=int(server.url.rpartition(":")[2]))
        await again.start()
        await again.close()

    asyncio.run(run())
