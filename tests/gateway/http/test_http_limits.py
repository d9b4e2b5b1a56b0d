"""What a client can cost before it is known: each bound is kept while others are served."""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.gateway.fake_api import FakeApi, ask

from holdfast.gateway.http import HttpServer
from holdfast.gateway.http.connections import ConnectionLimits, Connections
from holdfast.metrics import HttpMetrics

HEALTH = b"GET /v2/health HTTP/1.1\r\nHost: localhost\r\n\r\n"
METRICS = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"
HEAD = b"POST /v2/tasks HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
SHORT_MS = 200  # instead of seconds


class Stage:
    """A server with small bounds, and plain connections to it."""

    def __init__(self, limits: ConnectionLimits) -> None:
        self.api = FakeApi()
        self.metrics = HttpMetrics()
        self.server = HttpServer(self.api, limits=limits, metrics=self.metrics)
        self._writers: list[asyncio.StreamWriter] = []

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        self._writers.append(writer)
        return reader, writer

    async def heard(self, *sent: bytes) -> bytes:
        """All that a connection hears until it is closed."""
        reader, writer = await self.connect()
        for each in sent:
            writer.write(each)
        return await asyncio.wait_for(reader.read(), 20)

    @property
    def port(self) -> int:
        return int(self.server.url.rpartition(":")[2])

    def refused(self) -> dict[str, float]:
        counted = next(iter(self.metrics.collect()))
        return {each.labels["reason"]: each.value for each in counted.samples}

    async def close(self) -> None:
        for writer in self._writers:
            writer.close()
        await self.server.close()


def with_limits(story: Callable[[Stage], Awaitable[None]], **limits: int) -> None:
    async def run() -> None:
        async with staged(**limits) as stage:
            await story(stage)

    asyncio.run(run())


@asynccontextmanager
async def staged(**limits: int) -> Any:
    stage = Stage(ConnectionLimits(**limits))
    await stage.server.start()
    try:
        yield stage
    finally:
        await stage.close()


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110 - nothing tells when a connection is gone
            await asyncio.sleep(0.01)


def problem(heard: bytes, status: int, code: str) -> dict[str, Any]:
    head, _, body = heard.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 %d " % status), heard[:500]
    assert b"application/problem+json" in head and b"connection: close" in head
    found = msgspec.json.decode(body)
    assert (found["status"], found["code"]) == (status, code)
    return found


# --- heads ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"GET /v2/health HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 70_000, 431),
        (b"GET /v2/health HTTP/1.1\r\n" + b"X: a\r\n" * 15_000, 431),
        (b"GET /v2/health HTTP/1.1\r\nHost: localhost\r\n" + b"X: a\r\n" * 101 + b"\r\n", 431),
        (b"GET /" + b"a" * 70_000, 431),
        (b"GET /" + b"a" * 9_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n", 414),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n0\r\nX: " + b"a" * 70_000, 431),  # a trailer
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n1;" + b"a" * 70_000, 431),  # an extension
        (b"\x16\x03\x01 nonsense\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", 400),
    ],
)
def test_a_head_that_is_too_large_or_none_is_refused(sent: bytes, status: int) -> None:
    async def story(stage: Stage) -> None:
        problem(await stage.heard(sent), status, "INVALID_ARGUMENT")
        assert stage.api.calls == []
        assert sum(stage.refused().values()) == 1
        assert (await ask(stage.server.url, "GET", "/v2/health")).status == 200

    with_limits(story)


def test_a_head_within_its_bounds_is_served_whatever_its_pieces() -> None:
    async def story(stage: Stage) -> None:
        padding = b"X-Padding: " + b"a" * 50_000 + b"\r\n"
        request = HEALTH.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n" + padding + b"\r\n")
        assert (await stage.heard(request)).endswith(b'{"status":"UP"}')
        reader, writer = await stage.connect()
        for byte in HEALTH:
            writer.write(bytes([byte]))
            await asyncio.sleep(0)
        assert (await asyncio.wait_for(reader.read(65_536), 20)).endswith(b'{"status":"UP"}')

    with_limits(story)


def test_two_hundred_megabytes_of_header_are_refused_early_and_stall_nobody() -> None:
    async def story(stage: Stage) -> None:
        def send() -> int:
            sent = 0
            with socket.create_connection(("127.0.0.1", stage.port)) as wire:
                try:
                    wire.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nX: ")
                    for _ in range(200):
                        wire.sendall(b"a" * 1_000_000)
                        sent += 1
                except OSError:
                    pass
            return sent

        sending = asyncio.create_task(asyncio.to_thread(send))
        slowest, loop = 0.0, asyncio.get_running_loop()
        while not sending.done():
            began = loop.time()
            assert (await ask(stage.server.url, "GET", "/v2/health")).status == 200
            slowest = max(slowest, loop.time() - began)
        await sending
        assert slowest < 2.0
        assert stage.refused() == {"large_head": 1}

    with_limits(story)


# --- time -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sent", "reason"),
    [
        (b"", "silent"),
        (b"\r\n", "silent"),
        (b"GET /v2/health HTTP/1.1\r\nHost: loc", "slow_head"),
        (HEAD + b"Content-Length: 50\r\n\r\n{", "slow_body"),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n", "slow_body"),
    ],
)
def test_a_client_that_does_not_go_on_is_closed(sent: bytes, reason: str) -> None:
    async def story(stage: Stage) -> None:
        heard = await stage.heard(sent)
        assert stage.refused() == {reason: 1}
        if reason == "silent":
            assert heard == b""
        else:
            problem(heard, 408, "DEADLINE_EXCEEDED")
        assert stage.api.calls == []

    with_limits(story, head_ms_max=SHORT_MS, body_grace_ms=SHORT_MS)


def test_an_idle_connection_that_sends_a_line_break_is_closed_all_the_same() -> None:
    async def story(stage: Stage) -> None:
        reader, writer = await stage.connect()
        writer.write(HEALTH)
        await reader.readuntil(b"}")
        writer.write(b"\r\n")
        assert await asyncio.wait_for(reader.read(), 20) == b""
        assert stage.refused() == {"silent": 1}

    with_limits(story, head_ms_max=SHORT_MS)


def test_a_head_that_trickles_is_late_however_often_a_byte_comes() -> None:
    async def story(stage: Stage) -> None:
        reader, writer = await stage.connect()
        reading = asyncio.create_task(reader.read())
        writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\nX: ")
        async with asyncio.timeout(20):
            while not reading.done():
                writer.write(b"a")
                await asyncio.sleep(0.01)
        problem(await reading, 408, "DEADLINE_EXCEEDED")

    with_limits(story, head_ms_max=SHORT_MS)


def test_a_body_that_comes_fast_enough_may_take_its_time() -> None:
    async def story(stage: Stage) -> None:
        reader, writer = await stage.connect()
        body = b'{"type": "mail"' + b" " * 60_000 + b"}"
        writer.write(HEAD + b"Content-Length: %d\r\n\r\n" % len(body))
        for begin in range(0, len(body), 6_000):  # 20 pieces in twice the time of grace
            writer.write(body[begin : begin + 6_000])
            await asyncio.sleep(2 * SHORT_MS / 1_000 / 10)
        assert (await asyncio.wait_for(reader.read(65_536), 20)).startswith(b"HTTP/1.1 200")

    with_limits(story, body_grace_ms=SHORT_MS, body_bytes_per_second_min=1_000)


# --- connections ------------------------------------------------------------------------------


def test_too_many_connections_are_refused_and_those_that_are_there_served() -> None:
    async def story(stage: Stage) -> None:
        held = [await stage.connect() for _ in range(4)]
        for reader, writer in held:
            writer.write(HEALTH)
            await reader.readuntil(b"}")
        found = problem(await stage.heard(), 503, "RESOURCE_EXHAUSTED")
        assert "too many connections" in found["detail"]
        for reader, writer in held:
            writer.write(HEALTH)
            assert (await reader.readuntil(b"}")).startswith(b"HTTP/1.1 200")
        held[0][1].close()
        await until(lambda: stage.metrics.connections() < 4)
        reader, writer = await stage.connect()
        writer.write(HEALTH)
        assert (await reader.readuntil(b"}")).startswith(b"HTTP/1.1 200")

    with_limits(story, connections_max=4, per_address_max=4)


def test_one_address_has_its_share_and_leaves_the_others_theirs() -> None:
    metrics = HttpMetrics()
    connections = Connections(ConnectionLimits(connections_max=8, per_address_max=2), metrics)
    assert [connections.opened("10.0.0.1") for _ in range(3)] == [
        None, None, "connections_of_address",
    ]  # fmt: skip
    assert connections.opened("10.0.0.2") is None
    assert [connections.opened(f"2001:db8::{each}") for each in (1, 2, 3)] == [
        None, None, "connections_of_address",
    ]  # fmt: skip
    assert connections.opened("::ffff:10.0.0.1") == "connections_of_address"
    assert [connections.opened(each) for each in ("127.0.0.1", "127.0.0.2", "::1")] == [None] * 3
    assert connections.opened("10.0.0.3") == "connections"
    assert metrics.connections() == 8
    connections.closed("10.0.0.1")
    assert connections.opened("10.0.0.1") is None
    for address in ("10.0.0.1", "10.0.0.1", "10.0.0.2", "2001:db8::9", "2001:db8::9"):
        connections.closed(address)
    for address in ("127.0.0.1",) * 3:
        connections.closed(address)
    assert metrics.connections() == 0


def test_connections_from_one_address_beyond_its_share_are_told_so() -> None:
    async def story(stage: Stage) -> None:
        [await stage.connect() for _ in range(6)]
        found = problem(await stage.heard(), 429, "RESOURCE_EXHAUSTED")
        assert "127.0.0.1" in found["detail"]

    with_limits(story, connections_max=8, per_address_max=6)


# --- answers that nobody reads ----------------------------------------------------------------


def memory_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4_096 / 1_000_000


def test_requests_sent_ahead_wait_outside_and_are_all_answered() -> None:
    async def story(stage: Stage) -> None:
        reader, writer = await stage.connect()
        writer.write(
            HEALTH * 5_000 + HEALTH.replace(b"localhost", b"localhost\r\nConnection: close")
        )
        heard = await asyncio.wait_for(reader.read(), 60)
        assert heard.count(b'{"status":"UP"}') == 5_001

    with_limits(story)


def test_bodies_sent_ahead_are_read_whole_and_in_order() -> None:
    async def story(stage: Stage) -> None:
        reader, writer = await stage.connect()
        body = b'{"type": "mail"' + b" " * 100_000 + b"}"
        whole = HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body
        writer.write(whole * 10 + METRICS.replace(b"localhost", b"localhost\r\nConnection: close"))
        heard = await asyncio.wait_for(reader.read(), 60)
        assert heard.count(b"HTTP/1.1 200") == 11
        assert len(stage.api.calls) == 11

    with_limits(story)


def test_answers_that_nobody_reads_take_no_memory() -> None:
    async def story(stage: Stage) -> None:
        async def metrics() -> bytes:
            return b"x" * 20_000

        stage.api.node.metrics = metrics  # pyright: ignore[reportAttributeAccessIssue]
        before_mb = memory_mb()

        def flood() -> tuple[socket.socket, int]:
            wire = socket.create_connection(("127.0.0.1", stage.port), timeout=0.5)
            sent = 0
            try:
                for _ in range(2_000):
                    sent += wire.send(METRICS * 1_000)
            except TimeoutError:
                pass
            return wire, sent

        wires = [await asyncio.to_thread(flood) for _ in range(3)]
        assert all(sent < 2_000 * 1_000 * len(METRICS) for _, sent in wires), "never held back"
        assert memory_mb() - before_mb < 30
        assert (await ask(stage.server.url, "GET", "/v2/health")).status == 200
        for wire, _ in wires:
            wire.close()

    with_limits(story)


def test_a_client_that_reads_nothing_is_closed_and_frees_what_it_held() -> None:
    async def story(stage: Stage) -> None:
        async def metrics() -> bytes:
            return b"x" * 30_000_000

        stage.api.node.metrics = metrics  # pyright: ignore[reportAttributeAccessIssue]
        _, writer = await stage.connect()
        writer.transport.pause_reading()  # pyright: ignore[reportAttributeAccessIssue]
        writer.write(METRICS)
        await until(lambda: stage.metrics.connections() == 1)
        await until(lambda: not stage.metrics.connections())
        assert stage.refused() == {"slow_reader": 1}
        assert (await ask(stage.server.url, "GET", "/v2/health")).status == 200

    with_limits(story, drain_ms_max=SHORT_MS)


def test_when_slow_clients_hold_too_much_others_are_asked_to_come_back() -> None:
    async def story(stage: Stage) -> None:
        async def metrics() -> bytes:
            return b"x" * 30_000_000

        stage.api.node.metrics = metrics  # pyright: ignore[reportAttributeAccessIssue]
        _, writer = await stage.connect()
        writer.transport.pause_reading()  # pyright: ignore[reportAttributeAccessIssue]
        writer.write(METRICS)
        async with asyncio.timeout(20):
            while (reply := await ask(stage.server.url, "GET", "/v2/health")).status == 200:
                pass
        assert reply.status == 503 and reply.headers["retry-after"] == "1"
        writer.transport.abort()
        async with asyncio.timeout(20):
            while (await ask(stage.server.url, "GET", "/v2/health")).status != 200:
                pass

    with_limits(story, slow_bytes_max=1_000_000)
