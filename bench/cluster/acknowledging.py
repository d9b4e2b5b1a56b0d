"""An append that two of three members have, against a bare replication loop in the same run."""

import asyncio
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import uvloop

from bench.harness import Figure, Run, remove
from bench.ours.replicating import NAMES, PARTITIONS, TOPIC, BareOwner, Member
from bench.peers.etcd import EtcdServer
from holdfast.journal import Append, Taken
from holdfast.journal.local import LocalJournal

ENTRY_BYTES = 256
APPENDS = 500
ROUNDS = 200
_TICK_S = 1 / os.sysconf("SC_CLK_TCK")


@contextmanager
def _processes(kind: str, folder: Path, *more: str) -> Iterator[list[int]]:
    """The other two members; their process ids."""
    with ExitStack() as stack:
        found: list[int] = []
        for name in NAMES[1:]:
            command = [sys.executable, "-m", "bench.ours.replicating", kind, name, str(folder)]
            process = subprocess.Popen([*command, *more], stdout=subprocess.PIPE)
            stack.callback(process.wait)
            stack.callback(process.kill)
            found.append(process.pid)
            assert process.stdout is not None
            process.stdout.readline()
        yield found


def _busy_s(pids: list[int]) -> float:
    """The processor time of processes, and of this one."""
    busy = time.process_time()
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        busy += (int(fields[11]) + int(fields[12])) * _TICK_S
    return busy


class _Three:
    """The owner of all partitions, in this process; the replicas are elsewhere."""

    def __init__(self, loop: asyncio.Runner, folder: Path, url: str, pids: list[int]) -> None:
        self._loop = loop
        self._pids = pids
        self.member = Member("a", folder, url)
        loop.run(self._start())

    async def _start(self) -> None:
        await self.member.start()
        await self.member.reached()
        for partition in range(1, PARTITIONS + 1):
            taken = await self.member.journal.take(TOPIC, partition)
            assert isinstance(taken, Taken), taken

    def p50_ms(self, appends: int) -> float:
        """One append at a time."""
        return self._loop.run(self._one_by_one(appends))

    async def _one_by_one(self, appends: int) -> float:
        journal, taken_s, payload = self.member.journal, list[float](), os.urandom(ENTRY_BYTES)
        for _ in range(appends):
            begun = time.perf_counter()
            await journal.append(TOPIC, 1, [payload])
            taken_s.append(time.perf_counter() - begun)
        return statistics.median(taken_s) * 1e3

    def busy_us(self, rounds: int, *, everybody: bool) -> float:
        """Processor time of an append, in rounds over all partitions."""
        pids = self._pids if everybody else []
        before = _busy_s(pids)
        self._loop.run(self._rounds(rounds))
        return (_busy_s(pids) - before) / rounds / PARTITIONS * 1e6

    async def _rounds(self, rounds: int) -> None:
        payload = os.urandom(ENTRY_BYTES)
        appends = [Append(TOPIC, each, [payload] * 4) for each in range(1, PARTITIONS + 1)]
        for _ in range(rounds):
            outcomes = await self.member.journal.append_many(appends)
            await asyncio.gather(*(each for each in outcomes if isinstance(each, asyncio.Future)))

    def stop(self) -> None:
        self._loop.run(self.member.stop())


class _Local:
    """The local journal with the same appends."""

    def __init__(self, loop: asyncio.Runner, folder: Path) -> None:
        self._loop = loop
        self._journal = LocalJournal.open(folder / "local")
        self._journal.create_topic(TOPIC, PARTITIONS)

    def busy_us(self, rounds: int) -> float:
        before = _busy_s([])
        self._loop.run(self._rounds(rounds))
        return (_busy_s([]) - before) / rounds / PARTITIONS * 1e6

    async def _rounds(self, rounds: int) -> None:
        payload = os.urandom(ENTRY_BYTES)
        appends = [Append(TOPIC, each, [payload] * 4) for each in range(1, PARTITIONS + 1)]
        for _ in range(rounds):
            await self._journal.append_many(appends)

    def stop(self) -> None:
        self._loop.run(self._journal.close())


def _bare_p50_ms(loop: asyncio.Runner, owner: BareOwner, appends: int) -> float:
    async def one_by_one() -> float:
        taken_s, payload = list[float](), os.urandom(ENTRY_BYTES)
        for _ in range(appends):
            begun = time.perf_counter()
            await owner.append(payload)
            taken_s.append(time.perf_counter() - begun)
        return statistics.median(taken_s) * 1e3

    return loop.run(one_by_one())


def acknowledged_appends(run: Run) -> Iterator[Figure]:
    """What a durable acknowledgement takes, and what an append costs."""
    folder = run.folder("cluster")
    try:
        with ExitStack() as stack:
            server = EtcdServer()
            stack.callback(server.stop)
            server.start()
            loop = stack.enter_context(asyncio.Runner(loop_factory=uvloop.new_event_loop))
            pids = stack.enter_context(_processes("ours", folder, server.url))
            stack.enter_context(_processes("bare", folder))
            bare = BareOwner(folder)
            loop.run(bare.start())
            stack.callback(bare.stop)
            three = _Three(loop, folder, server.url, pids)
            stack.callback(three.stop)
            local = _Local(loop, folder)
            stack.callback(local.stop)
            appends, rounds = run.scaled(APPENDS), run.scaled(ROUNDS)
            yield Figure(
                "durable acknowledge p50, one append at a time",
                "a bare replication loop",
                "<= 2",
                "ms",
                lambda: three.p50_ms(appends),
                lambda: _bare_p50_ms(loop, bare, appends),
            )
            for everybody, name in ((False, "the owner"), (True, "all three members")):
                yield Figure(
                    f"processor time of {name}, an append of 4 entries in rounds of {PARTITIONS}",
                    "the local journal",
                    "<= 6" if everybody else "<= 3",
                    "us",
                    lambda everybody=everybody: three.busy_us(rounds, everybody=everybody),
                    lambda: local.busy_us(rounds),
                )
    finally:
        remove(folder)
