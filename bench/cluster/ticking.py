"""Cuts written to a real etcd at the pace of a cluster, in turn with bare guarded writes."""

import asyncio
import random
import time
from collections.abc import Coroutine, Mapping
from typing import Any

import grpc.aio

from bench.peers.etcd import EtcdServer
from holdfast.errors import Unknown
from holdfast.sequence import etcd_messages as messages
from holdfast.sequence.api import Cut, LogKey
from holdfast.sequence.cut_codec import encode_cut
from holdfast.sequence.cuts import START, follow, make_cut
from holdfast.sequence.etcd import EtcdCoordination
from holdfast.sequence.keys import Put, Unchanged, Write, WriteAnswer
from holdfast.sequence.opening import open_coordination

TICK_S = 1 / 16
GROWN_MAX = 1_000  # entries of a log in a tick: 16,000/s
TOPIC_LOGS = 2_048  # partitions of a topic; it may have no more than 4,095


class Ticks:
    """What a stretch of time at 16 cuts a second was like."""

    def __init__(self) -> None:
        self.writes_s: list[float] = []  # each write to etcd that published a cut
        self.publications_s: list[float] = []  # with the encoding of the cut
        self.bare_s: list[float] = []  # each bare guarded write of as many bytes
        self.sizes: list[int] = []  # of cuts, in bytes
        self.late = 0  # cuts that were written more than a tick after their time
        self.bare_late = 0  # bare writes, by the same measure: what the machine alone makes late
        self.busy_s = 0.0  # processor time of all publications
        self.bare_busy_s = 0.0

    async def publish(self, coordination: EtcdCoordination, cut: Cut, due: float) -> None:
        """One of ours, whose time was `due`."""
        begun, worked = time.perf_counter(), time.process_time()
        await _published(coordination, cut)
        self.busy_s += time.process_time() - worked
        ended = time.perf_counter()
        self.publications_s.append(ended - begun)
        self.late += ended > due + TICK_S

    async def write_barely(self, bare: "BareWriter", cut: Cut, due: float) -> None:
        """One of theirs, after the same encoding: work lengthens waits on a busy machine."""
        value = encode_cut(cut)
        self.sizes.append(len(value))
        begun, worked = time.perf_counter(), time.process_time()
        await bare.write(value)
        self.bare_busy_s += time.process_time() - worked
        ended = time.perf_counter()
        self.bare_s.append(ended - begun)
        self.bare_late += ended > due + TICK_S


async def _published(coordination: EtcdCoordination, cut: Cut) -> None:
    """As a member does it: where no answer came, what is there is read before anything else."""
    while True:
        try:
            assert await coordination.publish(cut)
        except Unknown:
            latest = await coordination.latest()
            if latest is None or latest.number < cut.number:
                continue
            assert latest.nonce == cut.nonce
        return


def percentile(values: list[float], share: float) -> float:
    """The value that this share of all do not exceed."""
    ranked = sorted(values)
    return ranked[min(len(ranked) - 1, int(len(ranked) * share))]


class BareWriter:
    """One key, written again and again if it is as this writer left it: nothing else is done."""

    def __init__(self, endpoint: str, prefix: str) -> None:
        self._prefix = prefix
        self._channel = grpc.aio.insecure_channel(endpoint)
        path, _, answer = messages.TXN
        self._call = self._channel.unary_unary(path, messages.serialize, messages.parser(answer))
        self._revision = 0

    async def write(self, value: bytes) -> None:
        guarded = Write((Unchanged("/key", self._revision),), (Put("/key", value),))
        answer = await self._call(messages.write_request(guarded, self._prefix, 0), timeout=5)
        assert answer.succeeded
        self._revision = answer.header.revision

    async def close(self) -> None:
        await self._channel.close()


class CutWriter:
    """A member that writes cuts in which all of its logs have moved."""

    def __init__(self, coordination: EtcdCoordination, logs: int) -> None:
        self.coordination = coordination
        self._dice = random.Random(logs)
        self._marks = dict.fromkeys(_keys(logs), 0)
        self._at = START

    def next_cut(self) -> Cut:
        for key in self._marks:
            self._marks[key] += self._dice.randint(1, GROWN_MAX)
        number = self._at.number + 1
        cut = make_cut(self._at, self._marks, "bench", f"{number:016x}", time.time_ns() // 10**6)
        self._at = follow(self._at, cut)
        return cut


async def tick(server: EtcdServer, logs: int, seconds: float, cluster: str) -> Ticks:
    """Publishes at 16 Hz, and half a tick before or after, in turn, writes as many bytes barely."""
    coordination = open_coordination(f"{server.url}/{cluster}", "bench")
    writer, bare = CutWriter(coordination, logs), BareWriter(server.endpoint, f"/bare/{cluster}")
    await coordination.latest()
    await bare.write(b"")
    ticks = Ticks()
    _time_writes(coordination, ticks.writes_s)
    due = time.perf_counter() + TICK_S
    for number in range(max(16, round(seconds / TICK_S))):
        cut = writer.next_cut()
        moments = (due, due + TICK_S / 2)
        ours = ticks.publish(coordination, cut, moments[1 - number % 2])
        theirs = ticks.write_barely(bare, cut, moments[number % 2])
        for moment, write in zip(
            moments, (ours, theirs) if number % 2 else (theirs, ours), strict=True
        ):
            await _at(moment, write)
        due = max(due + TICK_S, time.perf_counter())
    await coordination.close()
    await bare.close()
    return ticks


async def _at(due: float, write: Coroutine[Any, Any, None]) -> None:
    await asyncio.sleep(max(0.0, due - time.perf_counter()))
    await write


def _time_writes(coordination: EtcdCoordination, spans: list[float]) -> None:
    """Notes how long each write of the store takes."""
    write_once = coordination.keys.write

    async def write(write: Write) -> WriteAnswer:
        begun = time.perf_counter()
        written = await write_once(write)
        spans.append(time.perf_counter() - begun)
        return written

    coordination.keys.write = write


async def database_bytes(server: EtcdServer, logs: int, cuts: int, cluster: str) -> int:
    """The largest that etcd's file is while cuts are written as fast as they go."""
    coordination = open_coordination(f"{server.url}/{cluster}", "bench")
    grown = _some_growths(logs)
    largest = 0
    for number in range(1, cuts + 1):
        cut = Cut(number, "bench", f"{number:016x}", 0, grown[number % len(grown)])
        assert await coordination.publish(cut)
        if number % 256 == 0:
            largest = max(largest, await coordination.keys.db_bytes())
    await coordination.close()
    return largest


def _some_growths(logs: int) -> list[Mapping[LogKey, int]]:
    """Made beforehand: what is measured is etcd."""
    dice = random.Random(logs)
    keys = _keys(logs)
    return [{key: dice.randint(1, GROWN_MAX) for key in keys} for _ in range(16)]


def _keys(logs: int) -> list[LogKey]:
    """So many logs, of as many topics as it takes."""
    return [
        LogKey(f"records-{number // TOPIC_LOGS}", number % TOPIC_LOGS + 1) for number in range(logs)
    ]
