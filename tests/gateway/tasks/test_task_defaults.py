"""What a worker says about its tasks holds for submissions that do not say it."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from holdfast import Holdfast
from holdfast.engine.identity.values import Permission
from holdfast.engine.jobs.values import BackoffKind, JobIntent, NewJob, TaskDefaults
from holdfast.engine.kernel import Command
from holdfast.engine.partition import JOB
from holdfast.errors import InvalidArgument
from holdfast.gateway.tasks.shapes import (
    ActivationRequest,
    NewSchedule,
    NewTask,
    RetryBackoff,
    TaskOptions,
)
from holdfast.records import ValueType, partition_of
from holdfast.testing.loop import run
from holdfast.testing.node import MemoryNode

OPTIONS = TaskOptions(7, 9, RetryBackoff(BackoffKind.FIXED, 250), 5_000, 60_000, 120_000)


async def told(node: MemoryNode, **options: TaskOptions) -> None:
    await node.gateway.jobs.activate(ActivationRequest(list(options), options=options))


async def submitted(node: MemoryNode, task: NewTask) -> NewJob:
    (receipt,) = await node.gateway.tasks.submit([task])
    key = int(receipt.task_key)
    job = node.node.runner.processors[partition_of(key)].view.jobs.jobs.get(key)
    assert job is not None
    return job.submitted


def options_of(job: NewJob) -> tuple[Any, ...]:
    return (
        job.priority, job.retries, job.backoff.kind, job.backoff.base_ms, job.timeout_ms,
        job.keep_ms,
    )  # fmt: skip


TOLD = (7, 9, BackoffKind.FIXED, 250, 5_000, 120_000)


def test_a_submission_that_names_no_options_gets_those_of_the_worker() -> None:
    async def story() -> None:
        node = await MemoryNode(partitions=3).start()
        before = options_of(await submitted(node, NewTask("mail")))
        assert before[:3] == (0, 3, BackoffKind.EXPONENTIAL)
        await told(node, mail=OPTIONS, load=TaskOptions(retries=0))
        assert options_of(await submitted(node, NewTask("mail"))) == TOLD
        keyed = await submitted(node, NewTask("mail", key="one"))
        assert (keyed.window_ms, keyed.keep_ms) == (60_000, 120_000)
        assert (await submitted(node, NewTask("load"))).retries == 0
        assert options_of(await submitted(node, NewTask("other"))) == before
        await node.gateway.schedules.put("often", NewSchedule(NewTask("mail"), interval_ms=1_000))
        [schedule] = [
            each.schedule.job
            for processor in node.node.runner.processors.values()
            for _, each in processor.view.schedules.schedules.scan()
        ]
        assert options_of(schedule) == TOLD
        await node.crash()
        await node.restart()
        assert options_of(await submitted(node, NewTask("mail"))) == TOLD, "it is on the log"
        await told(node, mail=TaskOptions())
        assert options_of(await submitted(node, NewTask("mail"))) == before, "the last word counts"
        await node.close()

    run(story())


@pytest.mark.parametrize(
    ("named", "place"),
    [
        ({"priority": 0}, 0),
        ({"retries": 3}, 1),
        ({"backoff": RetryBackoff()}, 2),
        ({"timeout_ms": 0}, 4),
        ({"keep_ms": 1}, 5),
    ],
)
def test_what_a_submission_names_wins(named: dict[str, Any], place: int) -> None:
    async def story() -> None:
        node = await MemoryNode(partitions=1).start()
        await told(node, mail=OPTIONS)
        found = options_of(await submitted(node, NewTask("mail", **named)))
        assert found[place] != TOLD[place]
        wins = {place, 3} if place == 2 else {place}
        assert [found[at] for at in range(6) if at not in wins] == [
            TOLD[at] for at in range(6) if at not in wins
        ]
        await node.close()

    run(story())


def test_what_is_said_again_writes_nothing() -> None:
    async def story() -> None:
        node = await MemoryNode(partitions=2).start()
        await told(node, plain=TaskOptions())
        positions = [each.next_position for each in node.node.runner.processors.values()]
        assert set(positions) == {positions[0]}, "what everybody has need not be kept"
        await told(node, mail=OPTIONS)
        after = [each.next_position for each in node.node.runner.processors.values()]
        assert sum(after) - sum(positions) == 2, "a command and its event"
        await told(node, mail=OPTIONS)
        assert [each.next_position for each in node.node.runner.processors.values()] == after
        await node.close()

    run(story())


def test_what_makes_no_sense_is_refused_and_the_worker_hears_it() -> None:
    async def story() -> None:
        node = await MemoryNode(partitions=1).start()
        for options, said in (
            ({"other": TaskOptions()}, "types that are asked for"),
            ({"mail": TaskOptions(retries=-1)}, "retries"),
            ({"mail": TaskOptions(window_ms=0)}, "windowMs"),
            ({"mail": TaskOptions(backoff=RetryBackoff(base_ms=0))}, "backoff.baseMs"),
        ):
            with pytest.raises(InvalidArgument, match=said):
                await node.gateway.jobs.activate(ActivationRequest(["mail"], options=options))
        await node.close()

    run(story())


def test_a_name_that_is_none_is_not_remembered() -> None:
    async def story() -> None:
        node = await MemoryNode(partitions=1).start()
        with pytest.raises(InvalidArgument, match="a type of 1 to"):
            await node.gateway.tasks.submit([NewTask("x" * 100_000)])
        assert "x" * 100_000 not in node.gateway.tasks._defaults._known
        await node.close()

    run(story())


def test_to_say_it_one_must_be_permitted_to_work() -> None:
    need = JOB.needs[JobIntent.DEFINE_TASK]
    command: Any = Command(ValueType.JOB, JobIntent.DEFINE_TASK, 0, TaskDefaults("mail"))
    nobody: Any = None
    (required,) = need(nobody, command)
    assert (required.permissions, required.ids) == ((Permission.WORK,), ("mail",))


def test_the_options_of_a_function_hold_for_tasks_from_elsewhere(tmp_path: Path) -> None:
    """As the command line and HTTP submit: a type and a payload, nothing else."""
    with Holdfast.open(tmp_path / "data", workers=1) as app:

        @app.task(retries=0)
        def fragile() -> None:
            raise ValueError("no")

        fragile.submit()  # from here on there is a worker
        elsewhere = NewTask("fragile", msgspec.Raw(b"{}"))
        until(lambda: len(app.incidents()) == 1)
        app.portal.call(app.api.tasks.submit([elsewhere]))
        until(lambda: len(app.incidents()) == 2)
        assert all("ValueError" in each.error for each in app.incidents())


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)
