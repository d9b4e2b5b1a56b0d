"""Cuts in etcd, sixteen times a second: what a write takes against a bare one of as many bytes.

HOLDFAST_BENCH_TICK_SECONDS says how long each stretch is, as 600 for ten minutes, and
HOLDFAST_BENCH_CUTS how many cuts are written for the size of the database, as 57600 for an hour's.
"""

import asyncio
import os
import statistics
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import NamedTuple

import uvloop

from bench.cluster.ticking import Ticks, database_bytes, percentile, tick
from bench.harness import Figure, Run, UnmeasurableError, fixed
from bench.peers.etcd import EtcdServer
from holdfast.limits import KIB, MIB

LOGS = (1, 64, 1_024, 4_096)
SECONDS = float(os.environ.get("HOLDFAST_BENCH_TICK_SECONDS", "8"))
CUTS = int(os.environ.get("HOLDFAST_BENCH_CUTS", "4096"))
ROUNDS_MAX = 3
CUT_BYTES_MAX = 12 * KIB
DATABASE_BYTES_MAX = 64 * MIB
LATE_SHARE_MAX = 0.005
MS, US = 1e3, 1e6


Measured = Callable[[Ticks], float]


def _p50(what: str) -> Measured:
    return lambda ticks: statistics.median(getattr(ticks, what)) * MS


def _p99(what: str) -> Measured:
    return lambda ticks: percentile(getattr(ticks, what), 0.99) * MS


def _busy(ticks: Ticks) -> float:
    return ticks.busy_s / len(ticks.writes_s) * US


def _bare_busy(ticks: Ticks) -> float:
    return ticks.bare_busy_s / len(ticks.bare_s) * US


class _Stretch:
    """The ticks of the last measurement; ours and the bare writes are of the same one."""

    def __init__(self, server: EtcdServer, loop: asyncio.Runner, seconds: float) -> None:
        self._server, self._loop, self._seconds = server, loop, seconds
        self._count = 0
        self.all: dict[int, list[Ticks]] = {}

    def measure(self, logs: int) -> Ticks:
        self._count += 1
        ticks = self._loop.run(tick(self._server, logs, self._seconds, f"c{self._count}"))
        self.all.setdefault(logs, []).append(ticks)
        return ticks

    def last(self, logs: int) -> Ticks:
        return self.all[logs][-1]


def cuts_in_etcd(run: Run) -> Iterator[Figure]:
    """A durable etcd on this machine."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as loop, ExitStack() as stack:
        server = EtcdServer(durable=True)
        stack.callback(server.stop)
        server.start()
        stretch = _Stretch(server, loop, run.scaled(round(SECONDS)) if run.quick else SECONDS)
        for logs in LOGS:
            yield from _of_ticks(stretch, logs)
        yield _late(stretch)
        yield _late_beside(stretch)
        yield Figure(
            name=f"a cut in which all of {LOGS[-1]:,} logs moved",
            against=f"{CUT_BYTES_MAX:,} bytes",
            goal="<= 1",
            unit="bytes",
            ours=lambda: statistics.median(stretch.last(LOGS[-1]).sizes),
            peer=fixed(CUT_BYTES_MAX),
            warm_up=False,
            rounds_max=1,
        )
        cuts = run.scaled(CUTS)
        yield Figure(
            name=f"etcd's database, largest while {cuts:,} such cuts are written",
            against="64 MiB",
            goal="<= 1",
            unit="bytes",
            ours=lambda: loop.run(database_bytes(server, LOGS[-1], cuts, "size")),
            peer=fixed(DATABASE_BYTES_MAX),
            warm_up=False,
            rounds_max=1,
        )


def _of_ticks(stretch: _Stretch, logs: int) -> Iterator[Figure]:
    """The first figure measures; the others are about the same stretches."""
    p50 = _Part("write of a cut, p50", "<= 1.3", "ms", _p50("writes_s"), _p50("bare_s"))
    yield p50.figure(logs, lambda: stretch.measure(logs), ROUNDS_MAX)
    done = stretch.all.get(logs, [])
    for part in PARTS if done else ():  # none if the first was left out by its name
        yield part.figure(logs, iter(done).__next__, len(done))


class _Part(NamedTuple):
    """One figure of a stretch."""

    what: str
    goal: str
    unit: str
    ours: Measured
    bare: Measured

    def figure(self, logs: int, stretch: Callable[[], Ticks], rounds_max: int) -> Figure:
        now: list[Ticks] = []

        def ours() -> float:
            now[:] = [stretch()]
            return self.ours(now[0])

        return Figure(
            name=f"{self.what}, {logs:,} logs moving",
            against="a bare guarded write of as many bytes",
            goal=self.goal,
            unit=self.unit,
            ours=ours,
            peer=lambda: self.bare(now[0]),
            warm_up=False,
            rounds_max=rounds_max,
        )


def _late(stretch: _Stretch) -> Figure:
    def share() -> float:
        every = _every(stretch)
        return sum(ticks.late for ticks in every) / sum(len(ticks.writes_s) for ticks in every)

    return Figure(
        name="late ticks, of all",
        against="one in 200",
        goal="<= 1",
        unit="share",
        ours=share,
        peer=fixed(LATE_SHARE_MAX),
        warm_up=False,
        rounds_max=1,
    )


def _late_beside(stretch: _Stretch) -> Figure:
    """What the machine alone makes late is late in bare writes, too; one more: it may be none."""
    return Figure(
        name="late ticks and one more",
        against="late bare writes and one more",
        goal="<= 2",
        unit="ticks",
        ours=lambda: 1 + sum(ticks.late for ticks in _every(stretch)),
        peer=lambda: 1 + sum(ticks.bare_late for ticks in _every(stretch)),
        warm_up=False,
        rounds_max=1,
    )


def _every(stretch: _Stretch) -> list[Ticks]:
    found = [ticks for each in stretch.all.values() for ticks in each]
    if not found:
        raise UnmeasurableError("no cut was written: the figures of the writes were left out")
    return found


PARTS = (
    _Part("write of a cut, p99", "<= 2", "ms", _p99("writes_s"), _p99("bare_s")),
    _Part("cut encoded and written, p50", "<= 4", "ms", _p50("publications_s"), _p50("bare_s")),
    _Part("processor time of a publication", "<= 6", "µs", _busy, _bare_busy),
)
