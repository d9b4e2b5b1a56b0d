"""How answers go over the wire: in one piece, in order, and whole before a connection closes."""

import asyncio
from collections.abc import Awaitable, Callable

from tests.gateway.fake_api import FakeApi, ask, served

HEALTH = b"GET /v2/health HTTP/1.1\r\nHost: localhost\r\n\r\n"
CLOSING = b"GET /v2/topology HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"

Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[bytes]]


def talk(story: Talk) -> bytes:
    """What a plain connection to the server hears."""

    async def run() -> bytes:
        async with served(FakeApi()) as server:
            host, port = server.url.removeprefix("http://").split(":")
            reader, writer = await asyncio.open_connection(host, int(port))
            heard = await asyncio.wait_for(story(reader, writer), 10)
            writer.close()
            return heard

    return asyncio.run(run())


def test_head_and_body_of_an_answer_come_in_one_packet() -> None:
    async def story(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        writer.write(HEALTH)
        return await reader.read(65_536)

    heard = talk(story)
    assert heard.startswith(b"HTTP/1.1 200")
    assert heard.endswith(b'\r\n\r\n{"status":"UP"}')


def test_requests_sent_ahead_are_answered_in_their_order() -> None:
    async def story(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        writer.write(HEALTH * 3 + CLOSING)
        return await reader.read()

    heard = talk(story)
    assert heard.count(b'{"status":"UP"}') == 3
    assert heard.endswith(b'"-1"}')


def test_a_connection_that_is_to_close_gives_its_answer_first() -> None:
    async def story(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        writer.write(CLOSING)
        return await reader.read()

    assert b'"version":"1.2.3"' in talk(story)


def test_an_answer_without_a_body_is_sent_at_once() -> None:
    async def story(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        writer.write(b"HEAD /v2/health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        return await reader.readuntil(b"\r\n\r\n")

    assert talk(story).startswith(b"HTTP/1.1 405")


def test_an_answer_of_many_megabytes_comes_whole() -> None:
    async def run() -> None:
        api = FakeApi()
        numbers = b"holdfast_lag_records 0\n" * 500_000

        async def metrics() -> bytes:
            return numbers

        api.node.metrics = metrics  # pyright: ignore[reportAttributeAccessIssue]
        async with served(api) as server:
            assert (await ask(server.url, "GET", "/metrics")).content == numbers

    asyncio.run(run())


def test_what_is_not_http_is_refused_and_the_server_serves_on() -> None:
    async def run() -> None:
        async with served(FakeApi()) as server:
            host, port = server.url.removeprefix("http://").split(":")
            reader, writer = await asyncio.open_connection(host, int(port))
            writer.write(b"\x00\x01\x02 nonsense\r\n\r\n")
            assert (await asyncio.wait_for(reader.read(), 5)).startswith(b"HTTP/1.1 400")
            writer.close()
            assert (await ask(server.url, "GET", "/v2/health")).status == 200

    asyncio.run(run())


def test_a_client_that_goes_in_the_middle_of_its_body_harms_nothing() -> None:
    async def run() -> None:
        api = FakeApi()
        async with served(api) as server:
            host, port = server.url.removeprefix("http://").split(":")
            _, writer = await asyncio.open_connection(host, int(port))
            writer.write(
                b"POST /v2/tasks HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                b'Content-Length: 100\r\n\r\n{"type":'
            )
            await writer.drain()
            writer.close()
            assert (await ask(server.url, "GET", "/v2/health")).status == 200
        assert api.calls == []

    asyncio.run(run())
