"""The metrics that page somebody: right at any time, also after a restart, and cheap to ask for."""

import asyncio
from collections.abc import Iterator

import pytest

from holdfast.config import Config
from holdfast.gateway.tasks.shapes import (
    ActivationRequest,
    JobCompletion,
    JobFailure,
    NewTask,
)
from holdfast.metrics import merged
from holdfast.metrics import work as work_module
from holdfast.metrics.histogram import Doubling
from holdfast.state import Store
from holdfast.testing import MemoryNode, run

PARTITIONS = 2


async def scraped(node: MemoryNode) -> dict[str, float]:
    """All samples of a node; those of partitions are added up."""
    found: dict[str, float] = {}
    for line in (await node.gateway.node.metrics()).decode().splitlines():
        if not line.startswith("#"):
            sample, _, value = line.rpartition(" ")
            for partition in range(1, PARTITIONS + 1):
                sample = sample.replace(f'partition="{partition}",', "")
            found[sample] = found.get(sample, 0.0) + float(value)
    return found


def test_jobs_workers_and_incidents_are_measured_and_a_restart_changes_no_gauge() -> None:
    async def story() -> None:
        node = await MemoryNode(partitions=PARTITIONS).start()
        await node.gateway.tasks.submit([NewTask("mail", retries=0) for _ in range(5)])
        await node.gateway.tasks.submit([NewTask("bill") for _ in range(3)])
        await asyncio.sleep(4)
        jobs = await node.gateway.jobs.activate(ActivationRequest(["mail"], "ann", 3))
        await asyncio.sleep(2)
        await node.gateway.jobs.complete([JobCompletion(jobs[0].job_key, jobs[0].lease)])
        await node.gateway.jobs.fail([JobFailure(jobs[1].job_key, jobs[1].lease, "no answer")])
        found = await scraped(node)
        gauges = {
            'holdfast_jobs_waiting{type="mail"}': 2.0,
            'holdfast_jobs_waiting{type="bill"}': 3.0,
            'holdfast_jobs_running{type="mail"}': 1.0,
            'holdfast_jobs_oldest_waiting_seconds{type="bill"}': 6.0,
            'holdfast_incidents_open{reason="NO_RETRIES_LEFT",type="mail"}': 1.0,
        }
        assert {name: found[name] for name in gauges} == gauges
        assert found['holdfast_workers{type="mail"}'] == 1.0
        assert found['holdfast_job_attempts_total{outcome="completed",type="mail"}'] == 1.0
        assert found['holdfast_job_attempts_total{outcome="failed",type="mail"}'] == 1.0
        assert found['holdfast_job_run_seconds_sum{type="mail"}'] == 4.0, "twice two seconds"
        assert found['holdfast_job_wait_seconds_sum{type="mail"}'] == 8.0
        assert found['holdfast_job_wait_seconds_bucket{le="4.096",type="mail"}'] == 2.0
        assert found['holdfast_job_wait_seconds_bucket{le="2.048",type="mail"}'] == 0.0
        assert found["holdfast_command_seconds_count"] >= 11.0
        await node.crash()
        await node.restart()
        again = await scraped(node)
        assert {name: again[name] for name in gauges} == gauges
        await node.close()

    run(story())


def test_workers_are_counted_while_they_wait_and_a_minute_after_they_asked() -> None:
    async def story() -> None:
        node = await MemoryNode().start()
        jobs = node.gateway.jobs
        asked = [ActivationRequest(["mail", "bill"], each, wait_ms=10_000) for each in "ab"]
        waiting = asyncio.gather(*map(jobs.activate, asked))
        await asyncio.sleep(5)
        found = await scraped(node)
        assert found['holdfast_workers{type="bill"}'] == 2.0
        assert found['holdfast_workers_idle{type="mail"}'] == 2.0
        await waiting
        await asyncio.sleep(30)
        found = await scraped(node)
        assert found['holdfast_workers{type="mail"}'] == 2.0
        assert found['holdfast_workers_idle{type="mail"}'] == 0.0
        await asyncio.sleep(60)
        assert 'holdfast_workers{type="mail"}' not in await scraped(node)
        await node.close()

    run(story())


def test_types_beyond_the_limit_are_added_up_as_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work_module, "METRIC_TYPES_MAX", 3)

    async def story() -> None:
        node = await MemoryNode().start()
        for n in range(10):
            await node.gateway.tasks.submit([NewTask(f"t{n}")] * (n + 1))
        found = await scraped(node)
        waiting = {name: value for name, value in found.items() if "jobs_waiting{" in name}
        assert len(waiting) == 4 and sum(waiting.values()) == 55.0
        assert waiting['holdfast_jobs_waiting{type="other"}'] == 55.0 - 1 - 2 - 3
        await node.close()

    run(story())


class Counting:
    """Counts the rows that are read from a store."""

    def __init__(self, store: Store) -> None:
        self.rows = 0
        self._scan, self._get_many, self._first = store.scan, store.get_many, store.first_keys
        store.scan, store.get_many, store.first_keys = self.scan, self.get_many, self.first_keys

    def scan(self, start: bytes, end: bytes) -> Iterator[tuple[bytes, bytes]]:
        for row in self._scan(start, end):
            self.rows += 1
            yield row

    def first_keys(self, start: bytes, end: bytes, limit: int) -> list[bytes]:
        found = self._first(start, end, limit)
        self.rows += len(found)
        return found

    def get_many(self, keys: list[bytes]) -> list[bytes | None]:
        self.rows += len(keys)
        return self._get_many(keys)


def test_a_scrape_reads_as_little_of_many_waiting_jobs_as_of_few() -> None:
    async def read(tasks: int) -> int:
        node = await MemoryNode(config=Config(commands_in_flight_max=100_000)).start()
        for _ in range(tasks // 1_000):
            await node.gateway.tasks.submit([NewTask(f"t{n % 4}") for n in range(1_000)])
        node.node.runner.write_state()
        node.store.flush()
        await node.crash()
        await node.restart()
        counting = Counting(node.store)
        found = await scraped(node)
        assert sum(value for name, value in found.items() if "_waiting{" in name) == tasks
        await node.close()
        return counting.rows

    few, many = run(read(1_000)), run(read(20_000))
    assert 0 < many <= few < 100


def test_the_numbers_of_members_are_added_up_and_of_a_shared_disk_the_worst_counts() -> None:
    one = (
        b'# HELP a_total text\n# TYPE a_total counter\na_total{type="x y"} 1.0\n'
        b"# HELP holdfast_disk_free_bytes text\n# TYPE holdfast_disk_free_bytes gauge\n"
        b"holdfast_disk_free_bytes 5.0\n"
        b"# HELP holdfast_clock_ahead_seconds text\n# TYPE holdfast_clock_ahead_seconds gauge\n"
        b"holdfast_clock_ahead_seconds 0.5\n"
    )
    other = one.replace(b"x y", b"z").replace(b"5.0", b"4.0").replace(b"0.5", b"0.25")
    assert merged([one]) == one
    both = merged([one, other, one]).decode().splitlines()
    assert 'a_total{type="x y"} 2.0' in both and 'a_total{type="z"} 1.0' in both
    assert "holdfast_disk_free_bytes 4.0" in both
    assert "holdfast_clock_ahead_seconds 0.5" in both
    assert len([line for line in both if line.startswith("#")]) == 6


def test_a_histogram_counts_each_value_up_to_its_bound() -> None:
    histogram = Doubling(1_000, 1, 3)
    for value in (0, 1, 2, 3, 4, 7, 8, 1_000_000):
        histogram.add(value)
    histogram.add(5, 10)
    assert histogram.buckets() == [("0.002", 2), ("0.004", 4), ("0.008", 16), ("+Inf", 18)]
    assert histogram.sum_seconds == 1_000.075
