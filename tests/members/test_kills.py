"""kill -9 of random members under load: nothing lost, nothing doubled, the others go on."""

import asyncio
import os
import signal
from collections import Counter
from pathlib import Path
from random import Random
from statistics import quantiles
from typing import Any

import msgspec
import pytest

from holdfast.cli.journal.files import open_reader, partitions_of, read_records
from holdfast.client.remote import RemoteApi
from holdfast.engine.jobs.values import JobIntent
from holdfast.errors import HoldfastError
from holdfast.gateway.tasks.shapes import ActivationRequest, JobCompletion, NewTask
from holdfast.layout import layout_of
from holdfast.records import RecordKind, ValueType, partition_for

from .node_process import Node, started

PROCESSES, PARTITIONS = 3, 6
PROBE_PAUSE_SECONDS = 0.02


class Load:
    """Clients and workers that do not give up, and what they were told."""

    def __init__(self, node: Node, random: Random) -> None:
        self.node = node
        self.random = random
        self.acknowledged: dict[str, str] = {}
        self.completed: set[str] = set()
        self.probes: list[tuple[float, float, int]] = []  # began, took, partition
        self.is_over = False

    async def persistently(self, ask: Any) -> Any:
        """An answer, over a new connection whenever one breaks."""
        while True:
            api = RemoteApi(self.node.url)
            try:
                return await ask(api)
            except HoldfastError:
                await asyncio.sleep(0.02)
            finally:
                await api.close()

    async def submit(self, name: str) -> None:
        for number in range(1_000_000):
            if self.is_over:
                return
            keys = [f"{name}-{number}-{each}" for each in range(5)]
            tasks = [NewTask("work", msgspec.Raw(b"1"), key=each) for each in keys]
            receipts = await self.persistently(lambda api, tasks=tasks: api.tasks.submit(tasks))
            self.acknowledged |= {
                key: receipt.task_key for key, receipt in zip(keys, receipts, strict=True)
            }
            await asyncio.sleep(0.01)

    async def work(self) -> None:
        request = ActivationRequest(["work"], "worker", 20, 5_000, 500)
        while not self.is_over or len(self.completed) < len(self.acknowledged):
            jobs = await self.persistently(lambda api: api.jobs.activate(request))
            done = [JobCompletion(job.job_key, job.lease) for job in jobs]
            if not done:
                continue
            answers = await self.persistently(lambda api, done=done: api.jobs.complete(done))
            self.completed.update(each.key for each in answers if each.code is None)
            # An attempt that nobody was told of: the job is not there any more.
            gone = [each.key for each in answers if each.code is not None]
            if gone:
                states = await self.persistently(lambda api, gone=gone: api.tasks.results(gone, 0))
                self.completed.update(each.task_key for each in states if each.state == "COMPLETED")

    async def probe(self) -> None:
        """Lone submissions, each to a partition that is known, timed where they went well."""
        api, loop = RemoteApi(self.node.url), asyncio.get_running_loop()
        for number in range(1_000_000):
            if self.is_over:
                break
            key = f"probe-{number}"
            task = NewTask("probe", msgspec.Raw(b"1"), key=key)
            began = loop.time()
            try:
                await api.tasks.submit([task])
                took = loop.time() - began
                self.probes.append((began, took, partition_for(key, PARTITIONS)))
            except HoldfastError:
                await api.close()
                api = RemoteApi(self.node.url)
            await asyncio.sleep(PROBE_PAUSE_SECONDS)
        await api.close()


async def kill_members(node: Node, load: Load, kills: int) -> list[tuple[float, float, int]]:
    """Kills one after the other; when each was away, and which."""
    away: list[tuple[float, float, int]] = []
    loop = asyncio.get_running_loop()
    for _ in range(kills):
        members = await asyncio.to_thread(node.members)
        victim = load.random.choice(sorted(members))
        began = loop.time()
        os.kill(members[victim], signal.SIGKILL)
        await asyncio.to_thread(node.until, "UP")
        away.append((began, loop.time(), victim))
        await asyncio.sleep(load.random.uniform(0.2, 1.0))
    return away


def p99(values: list[float]) -> float:
    return quantiles(values, n=100)[-1] if len(values) > 1 else float("nan")


async def story(node: Node, kills: int) -> tuple[Load, list[tuple[float, float, int]]]:
    load = Load(node, Random(int(os.environ.get("HOLDFAST_SEED", "13"))))
    clients = [asyncio.create_task(load.submit(name)) for name in ("a", "b")]
    workers = [asyncio.create_task(load.work()) for _ in range(2)]
    probing = asyncio.create_task(load.probe())
    away = await kill_members(node, load, kills)
    load.is_over = True
    await asyncio.gather(*clients, probing)
    async with asyncio.timeout(120):
        await asyncio.gather(*workers)
    return load, away


def check_log(folder: Path, load: Load) -> None:
    """Every key that was acknowledged is one task, done once."""
    reader = open_reader(folder)
    created: Counter[str] = Counter()
    completed: Counter[int] = Counter()
    for _, record in read_records(reader, partitions_of(reader, None), 0):
        if record.kind is RecordKind.EVENT and record.value_type == ValueType.JOB:
            if record.intent == JobIntent.CREATED:
                created[record.value.idempotency_key] += 1
            elif record.intent == JobIntent.COMPLETED:
                completed[record.key] += 1
    assert max(created.values()) == 1 and max(completed.values()) == 1, "nothing is doubled"
    assert load.acknowledged.keys() <= created.keys(), "nothing is lost"
    assert {int(key) for key in load.acknowledged.values()} <= completed.keys()


def kill(tmp_path: Path, kills: int) -> tuple[float, float]:
    """So many kills under load; p99 of lone submissions to others' partitions, without and with."""
    folder = tmp_path / "data"
    arguments = ("--processes", str(PROCESSES), "--partitions", str(PARTITIONS))
    with started(folder, *arguments) as node:
        node.until("UP")
        load, away = asyncio.run(story(node, kills))
        assert node.end()[0] == 0
    check_log(folder, load)
    layout = layout_of(folder)
    quiet: list[float] = []
    beside: list[float] = []
    for began, took, partition in load.probes:
        during = [victim for start, end, victim in away if start <= began + took and began <= end]
        if not during:
            quiet.append(took)
        elif layout.owner(partition) not in during:
            beside.append(took)
    print(
        f"{kills} kills, {len(load.acknowledged)} tasks, away for"
        f" {sum(end - start for start, end, _ in away) / kills:.2f} s each; p99"
        f" {p99(quiet) * 1e3:.1f} ms ({len(quiet)}), beside a member that is away"
        f" {p99(beside) * 1e3:.1f} ms ({len(beside)})"
    )
    return p99(quiet), p99(beside)


def test_members_that_are_killed_lose_and_double_nothing(tmp_path: Path) -> None:
    kill(tmp_path, 2)


@pytest.mark.soak
@pytest.mark.timeout(3_600)
def test_a_hundred_kills_lose_and_double_nothing_and_slow_nobody_down(tmp_path: Path) -> None:
    quiet, beside = kill(tmp_path, 100)
    assert beside <= 2 * quiet
