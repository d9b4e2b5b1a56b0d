"""What a message between members costs, against a bare socket that sends the same bytes back."""

import asyncio
import os
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import uvloop

from bench.harness import Figure, Run, benchmark, remove
from bench.ours.members import (
    BARE_COST,
    BUFFER_BYTES,
    COST,
    COUNT,
    ECHO,
    HOST,
    NAMES,
    NUMBER_BYTES,
    Echo,
    address_of,
    identity,
    tls_of,
)
from bench.ours.partitions import TwoMembers
from holdfast.transport import Connection
from holdfast.transport.sockets import SocketTransport

WAYS = {"unix": "Unix socket", "tcp": "TCP", "tls": "TLS 1.3"}
COMMAND_BYTES = 154  # a CREATE of a small task, encoded
WINDOW = 64
COMMANDS = 200_000
ROUND_TRIPS = 5_000
FRAME_BYTES = 64 * 1024
FRAMES = {"unix": 30_000, "tcp": 30_000, "tls": 8_000}
FRAMES_A_TURN = 4
GIGABYTE = 1e9
TASKS = 32_000
TASK_BATCHES = (16, 100)
LONE = 32_000
LONE_MORE_US = 12  # what a lone command of another member's partition may cost more
# What a command may cost, as a multiple of its bare bytes. A bare socket writes each lone one by
# itself, where a turn's messages share a frame. In batches it has a copy less on both sides.
GOALS = {1: "<= 1.2", 16: "<= 2.5", 256: "<= 2.5"}


class _Server:
    """The process that answers."""

    def __init__(self, what: str, way: str, folder: Path) -> None:
        self.place = str(folder / f"{what}.sock") if way == "unix" else str(_free_port())
        command = [sys.executable, "-m", "bench.ours.members", what, way, self.place, str(folder)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self._process.stdout is not None
        self._process.stdout.readline()

    def close(self) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(10)
        self._process.stdout.close()


def _free_port() -> int:
    with socket.socket() as free:
        free.bind((HOST, 0))
        return free.getsockname()[1]


class Members:
    """The transport, between this process and another."""

    def __init__(self, way: str, folder: Path, stack: ExitStack, loop: asyncio.Runner) -> None:
        self._loop = loop
        server = _Server("member", way, folder)
        stack.callback(server.close)
        tls = tls_of(NAMES[0], str(folder)) if way == "tls" else None
        transport = SocketTransport(identity(NAMES[0]), tls=tls)
        self._connection: Connection = loop.run(
            transport.connect(address_of(way, server.place), NAMES[1], Echo)
        )
        stack.callback(self._connection.close)

    def microseconds_per_command(self, commands: int, batch: int) -> float:
        """Processor time of both sides, with 64 commands under way, or two batches."""
        body = os.urandom(COMMAND_BYTES * batch)
        window = max(2, WINDOW // batch)
        calls = commands // batch
        cost = self._loop.run(self._costing(lambda: self._calls(body, calls, window)))
        return cost / (calls * batch)

    async def _calls(self, body: bytes, calls: int, window: int) -> None:
        async def caller(number: int) -> None:
            for _ in range(number, calls, window):
                await self._connection.call(ECHO, body)

        await asyncio.gather(*(caller(number) for number in range(window)))

    async def _costing(self, work: Callable[[], Awaitable[None]]) -> float:
        begun = time.process_time() + int.from_bytes(await self._connection.call(COST, b"")) / 1e6
        await work()
        ended = time.process_time() + int.from_bytes(await self._connection.call(COST, b"")) / 1e6
        return (ended - begun) * 1e6

    def round_trip_microseconds(self, count: int) -> float:
        return self._loop.run(self._round_trips(count))

    async def _round_trips(self, count: int) -> float:
        body, spans = os.urandom(COMMAND_BYTES), []
        for _ in range(count):
            begun = time.perf_counter()
            await self._connection.call(ECHO, body)
            spans.append(time.perf_counter() - begun)
        return statistics.median(spans) * 1e6

    def bytes_per_second(self, frames: int) -> float:
        return frames * FRAME_BYTES / self._loop.run(self._frames(frames))

    async def _frames(self, frames: int) -> float:
        body = os.urandom(FRAME_BYTES)
        wanted = await self._count() + frames * FRAME_BYTES
        begun = time.perf_counter()
        for number in range(frames):
            if number % FRAMES_A_TURN == 0:
                await asyncio.sleep(0)
            await self._connection.room()
            self._connection.tell(COUNT, body)
        while await self._count() < wanted:
            pass
        return time.perf_counter() - begun

    async def _count(self) -> int:
        return int.from_bytes(await self._connection.call(COUNT, b""))


class _BareCaller(asyncio.BufferedProtocol):
    """Writes a message for each one that came back, until all have."""

    def __init__(self) -> None:
        self._room = bytearray(BUFFER_BYTES)
        self._write: Callable[[bytes], None] = lambda _: None
        self._transport: Any = None
        self._free: asyncio.Future[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._write = self._transport.write

    def get_buffer(self, sizehint: int) -> bytearray:
        return self._room

    def begin(self, body: bytes, messages: int, window: int) -> asyncio.Future[bytes]:
        self._done: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._body, self._size, self._part = body, len(body), 0
        self._unsent, self._missing = messages, messages
        self._send(min(window, messages))
        return self._done

    def _send(self, messages: int) -> None:
        self._unsent -= messages
        for _ in range(messages):
            self._write(self._body)

    def buffer_updated(self, nbytes: int) -> None:
        whole, self._part = divmod(self._part + nbytes, self._size)
        self._missing -= whole
        self._send(min(whole, self._unsent))
        if self._missing <= 0 and not self._done.done():
            self._done.set_result(bytes(self._room[:nbytes]))

    def ask(self, question: bytes, answer_bytes: int) -> asyncio.Future[bytes]:
        done = self.begin(b"\0" * answer_bytes, 1, 0)
        self._unsent = 0
        self._write(question)
        return done

    def pause_writing(self) -> None:
        self._free = asyncio.get_running_loop().create_future()

    def resume_writing(self) -> None:
        if self._free is not None:
            self._free.set_result(None)
            self._free = None

    async def flood(self, body: bytes, count: int) -> None:
        done = self.ask((len(body) * count).to_bytes(NUMBER_BYTES), 1)
        for _ in range(count):
            if self._free is not None:
                await self._free
            self._write(body)
        await done


class Bare:
    """The same bytes over bare sockets of the same kind, with the same loop."""

    def __init__(self, way: str, folder: Path, stack: ExitStack, loop: asyncio.Runner) -> None:
        self._loop = loop
        self._way, self._folder = way, str(folder)
        self._echo = self._dial(_Server("echo", way, folder), stack)
        self._count = self._dial(_Server("count", way, folder), stack)

    def _dial(self, server: _Server, stack: ExitStack) -> _BareCaller:
        stack.callback(server.close)

        async def dial() -> _BareCaller:
            loop = asyncio.get_running_loop()
            if self._way == "unix":
                return (await loop.create_unix_connection(_BareCaller, server.place))[1]
            tls = tls_of(NAMES[0], self._folder).client if self._way == "tls" else None
            name = "" if tls is not None else None
            port = int(server.place)
            made = await loop.create_connection(
                _BareCaller, HOST, port, ssl=tls, server_hostname=name
            )
            return made[1]

        caller = self._loop.run(dial())
        stack.callback(lambda: caller._transport.close())
        return caller

    def microseconds_per_command(self, commands: int, batch: int) -> float:
        return self._loop.run(self._costing(commands // batch, batch)) / (commands // batch * batch)

    async def _costing(self, messages: int, batch: int) -> float:
        begun = time.process_time() + await self._cost()
        body = os.urandom(COMMAND_BYTES * batch)
        await self._echo.begin(body, messages, max(2, WINDOW // batch))
        return (time.process_time() + await self._cost() - begun) * 1e6

    async def _cost(self) -> float:
        return int.from_bytes(await self._echo.ask(BARE_COST, NUMBER_BYTES)) / 1e6

    def round_trip_microseconds(self, count: int) -> float:
        return self._loop.run(self._round_trips(count))

    async def _round_trips(self, count: int) -> float:
        body, spans = os.urandom(COMMAND_BYTES), []
        for _ in range(count):
            begun = time.perf_counter()
            await self._echo.begin(body, 1, 1)
            spans.append(time.perf_counter() - begun)
        return statistics.median(spans) * 1e6

    def bytes_per_second(self, frames: int) -> float:
        body = os.urandom(FRAME_BYTES)
        begun = time.perf_counter()
        self._loop.run(self._count.flood(body, frames))
        return frames * FRAME_BYTES / (time.perf_counter() - begun)


@benchmark("members")
def members(run: Run) -> Iterator[Figure]:
    for way, title in WAYS.items():
        folder = run.folder("members")
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as loop, ExitStack() as stack:
            stack.callback(remove, folder)
            for name in NAMES:
                tls_of(name, str(folder))
            ours, bare = Members(way, folder, stack, loop), Bare(way, folder, stack, loop)
            yield from _figures(run, way, title, ours, bare)
    folder = run.folder("members")
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as loop, ExitStack() as stack:
        stack.callback(remove, folder)
        two = TwoMembers(loop, folder)
        stack.callback(two.close)
        yield from _partitions(run, two)


def _partitions(run: Run, two: TwoMembers) -> Iterator[Figure]:
    """What a partition of another member costs more, each beside the same code twice."""
    for batch in TASK_BATCHES:
        tasks = partial(two.tasks, run.scaled(TASKS), batch)
        yield from _placed(f"tasks in batches of {batch}", "µs/task", tasks, "<= 1.35")
    lone = partial(two.lone, run.scaled(LONE), WINDOW)
    what = f"lone commands, {WINDOW} under way"
    yield from _placed(what, "µs/command", lone, "<= 1", LONE_MORE_US)


def _placed(
    what: str, unit: str, cost: Callable[..., float], goal: str, more_us: int = 0
) -> Iterator[Figure]:
    yield Figure(
        name=f"{what}, another member's partition",
        against="the member's own" + (f", and {more_us} µs" if more_us else ""),
        goal=goal,
        unit=unit,
        ours=lambda: cost(remote=True),
        peer=lambda: cost(remote=False) + more_us,
    )
    null = _Null(lambda: cost(remote=False))
    yield Figure(
        name=f"{what}, the same code twice",
        against="itself: beyond 1.03 the machine is too busy to tell",
        goal="<= 1.03",
        unit=unit,
        ours=null.larger,
        peer=null.smaller,
    )


class _Null:
    """Two measurements of the same thing: the larger by the smaller, whichever came first."""

    def __init__(self, cost: Callable[[], float]) -> None:
        self._cost = cost
        self._smaller = 0.0

    def larger(self) -> float:
        self._smaller, larger = sorted((self._cost(), self._cost()))
        return larger

    def smaller(self) -> float:
        return self._smaller


def _figures(run: Run, way: str, title: str, ours: Members, bare: Bare) -> Iterator[Figure]:
    against = "a bare socket that echoes the same bytes"
    for batch, goal in GOALS.items():
        commands = run.scaled(COMMANDS * (1 if batch == 1 else 4))
        how = f"one at a time, {WINDOW} under way" if batch == 1 else f"in batches of {batch}"
        yield Figure(
            name=f"{title}: {COMMAND_BYTES} B commands {how}",
            against=against,
            goal=goal,
            unit="µs/command, both sides",
            ours=lambda commands=commands, batch=batch: ours.microseconds_per_command(
                commands, batch
            ),
            peer=lambda commands=commands, batch=batch: bare.microseconds_per_command(
                commands, batch
            ),
        )
    yield Figure(
        name=f"{title}: round trip of one command (p50)",
        against=against,
        goal="<= 2",
        unit="µs",
        ours=lambda: ours.round_trip_microseconds(run.scaled(ROUND_TRIPS)),
        peer=lambda: bare.round_trip_microseconds(run.scaled(ROUND_TRIPS)),
    )
    yield Figure(
        name=f"{title}: messages of {FRAME_BYTES // 1024} KB, one way",
        against="a bare socket that takes the same bytes",
        goal=">= 0.7",
        unit="GB/s",
        ours=lambda: ours.bytes_per_second(run.scaled(FRAMES[way])) / GIGABYTE,
        peer=lambda: bare.bytes_per_second(run.scaled(FRAMES[way])) / GIGABYTE,
    )
