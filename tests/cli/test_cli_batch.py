"""Batch operations from the command line, against a node whose tables are a list of keys."""

import asyncio
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from tests.gateway.fake_tables import FakeTables

from holdfast.cli.batch.bar import Bar
from holdfast.client.portal import Portal
from holdfast.clock import SystemClock
from holdfast.engine.batch.values import BatchOperationState, BatchOperationType
from holdfast.gateway.batch.shapes import BatchOperationView
from holdfast.gateway.http import HttpServer
from holdfast.gateway.tasks.shapes import ActivationRequest, JobFailure, NewTask
from holdfast.testing import MemoryNode

from .shell import Shell

WHERE = ("--where", '{"type": "send"}')
UNKNOWN = "2251799813999999"


class Served:
    """A node in memory with some dead letters."""

    def __init__(self, count: int) -> None:
        self.tables = FakeTables()
        self.portal = Portal("node")
        self.portal.call(self._open(count))

    async def _open(self, count: int) -> None:
        self.node = await MemoryNode(
            partitions=2, clock=SystemClock(), open_tables=self.tables.open
        ).start()
        gateway = self.node.gateway
        await asyncio.gather(
            *(gateway.tasks.submit([NewTask("send", retries=0)]) for _ in range(count))
        )
        while len(self.tables.keys) < count:
            jobs = await gateway.jobs.activate(ActivationRequest(["send"], "worker", 100, 60_000))
            await gateway.jobs.fail([JobFailure(job.job_key, job.lease, "broken") for job in jobs])
            self.tables.keys += [int(job.job_key) for job in jobs]
        self.server = HttpServer(gateway)
        await self.server.start()

    def close(self) -> None:
        self.portal.call(self.server.close())
        self.portal.call(self.node.close())
        self.portal.close()


@pytest.fixture
def served(shell: Shell) -> Iterator[Served]:
    served = Served(20)
    shell.url = served.server.url
    yield served
    served.close()


def test_a_dry_run_says_how_many_and_which(shell: Shell, served: Served) -> None:
    lines = shell.run("batch", "retry-tasks", *WHERE, "--dry-run").out.splitlines()
    first, second = served.tables.keys[:2]
    assert lines[0] == "20 would be chosen; nothing was done"
    assert lines[-1] == f"such as {first}, {second}"
    found = shell.run("batch", "retry-tasks", *WHERE, "--dry-run", "--json").json
    assert found["preview"]["items"] == 20
    assert shell.run("batch", "list").out == "no batch operations\n"


def test_one_is_watched_to_its_end(shell: Shell, served: Served) -> None:
    done = shell.run("batch", "retry-tasks", *WHERE)
    assert done.code == 0
    key, _, said = done.out.partition("  ")
    assert said == "COMPLETED: 20 completed\n"
    shown = shell.run("batch", "show", key).out
    assert "RETRY_TASK" in shown and "20 completed" in shown and '{"type": "send"}' in shown
    again = shell.run("batch", "discard-tasks", *WHERE)
    assert again.code == 7, "no dead letters are left"
    assert "PARTIALLY_COMPLETED: 20 failed" in again.out and "--state FAILED" in again.err


def test_one_is_steered_while_it_runs(shell: Shell, served: Served) -> None:
    options = ("--throttle", "2", "--no-wait", "--json")
    key = shell.run("batch", "retry-tasks", *WHERE, *options).json["batchOperationKey"]
    assert shell.run("batch", "suspend", key).out == f"{key}  suspended\n"
    assert shell.run("batch", "suspend", key).code == 5
    (listed,) = shell.run("batch", "list", "--state", "suspended", "--json").json["items"]
    assert (listed["batchOperationKey"], listed["throttle"]) == (key, 2)
    assert shell.run("batch", "change", key, "--throttle", "3").out == f"{key}  changed\n"
    assert shell.run("batch", "resume", key, "--json").json["done"] == "RESUMED"
    assert json.loads(shell.run("batch", "show", key, "--json").out)["throttle"] == 3
    assert shell.run("batch", "abort", key).out == f"{key}  canceled\n"
    assert shell.run("batch", "abort", key).code == 3


@pytest.mark.parametrize(
    ("left", "said"),
    [(0.2, "0 s"), (37, "37 s"), (99, "99 s"), (130, "2 min"), (5_900, "98 min"), (7_300, "2 h")],
)
def test_the_bar_says_what_is_left_in_few_letters(
    capfd: pytest.CaptureFixture[str], left: float, said: str
) -> None:
    view = BatchOperationView(
        batch_operation_key="7",
        batch_operation_type=BatchOperationType.RETRY_TASK,
        state=BatchOperationState.ACTIVE,
        filter=msgspec.Raw(b"{}"),
        operations_total_count=1_000_000,
        operations_completed_count=430_000,
        operations_failed_count=12,
        is_selected=True,
        items_per_second=15_333.3,
        estimated_end=datetime.now(UTC) + timedelta(seconds=left + 0.3),
    )
    with Bar() as bar:
        bar(view)
    line = capfd.readouterr().err
    assert "ACTIVE" in line and "430,012 of 1,000,000, 12 failed" in line
    assert f"15,333/s, {said} left" in line and len(line.splitlines()[-1]) <= 80


def test_what_is_wrong_is_said_in_one_line(shell: Shell, served: Served) -> None:
    for arguments, code, found in (
        (("cancel", "--where", "{"), 2, "expected a filter as a JSON object, but --where is not"),
        (("cancel", "--where", "[]"), 2, "expected a filter as a JSON object, but --where is a"),
        (("cancel", "--where", '{"nonsense": 1}'), 2, "expected a field, but found nonsense"),
        (("modify", *WHERE), 2, "expected --activate, --terminate or --move"),
        (("migrate", *WHERE, "--to", "order"), 2, "expected the key of a definition or ID:VERSION"),
        (("show", UNKNOWN), 3, f"there is no batch operation with key {UNKNOWN}"),
        (("change", UNKNOWN), 2, "expected --throttle or --priority"),
        (("list", "--state", "LOST"), 2, "expected one of CREATED, ACTIVE"),
        (("retry", UNKNOWN), 3, f"there is no batch operation with key {UNKNOWN}"),
    ):
        done = shell.run("batch", *arguments)
        assert done.code == code, done.err
        assert done.err.startswith(f"error: {found}") and done.err.count("\n") == 1, done.err
