"""At its limits a node refuses with a hint, keeps answering, and recovers on its own."""

import asyncio
from collections.abc import Awaitable, Sequence
from typing import NoReturn

import msgspec
import pytest

from holdfast.config import Config
from holdfast.engine.due.dates import DueKind
from holdfast.engine.jobs.values import JobBatchIntent, JobIntent, JobState, NewJob, Purge
from holdfast.engine.kernel import Command
from holdfast.engine.kernel.runner import TOPIC
from holdfast.errors import HoldfastError, InvalidArgument, ResourceExhausted, Unavailable
from holdfast.gateway.tasks.shapes import (
    ActivationRequest,
    JobCompletion,
    NewTask,
    TaskQuery,
)
from holdfast.journal import Append
from holdfast.limits import ENTRY_BYTES_MAX, PAYLOAD_BYTES_MAX
from holdfast.records import ValueType, key_of
from holdfast.testing import MemoryNode, SimulatedDisk, VirtualClock, run


async def refusals(*asked: Awaitable[object]) -> list[object]:
    """What became of requests that were made at the same time."""
    return list(await asyncio.gather(*asked, return_exceptions=True))


def hold_appends(node: MemoryNode) -> asyncio.Event:
    """Keeps steps waiting for the disk until the event is set."""
    go_on, append_many = asyncio.Event(), node.journal.append_many

    async def held(appends: Sequence[Append]) -> list[int]:
        await go_on.wait()
        return await append_many(appends)

    node.journal.append_many = held  # type: ignore[method-assign]
    return go_on


# --- too much at once -------------------------------------------------------------------------


def test_beyond_the_commands_in_flight_a_submit_is_refused_with_a_hint() -> None:
    async def story() -> None:
        node = await MemoryNode(config=Config(commands_in_flight_max=10)).start()
        answers = await refusals(*(node.gateway.tasks.submit([NewTask("t")]) for _ in range(25)))
        refused = [answer for answer in answers if isinstance(answer, ResourceExhausted)]
        assert len(refused) == 15
        assert all(error.retry_after_ms >= 1 for error in refused)
        assert "at most 10 commands in flight" in refused[0].message
        assert len((await node.gateway.tasks.page(TaskQuery())).items) == 10
        assert (await node.gateway.tasks.submit([NewTask("t")]))[0].created, (
            "it recovers on its own"
        )
        assert b"holdfast_refused_commands_total 15.0" in await node.gateway.node.metrics()
        await node.close()

    run(story())


def test_one_submit_larger_than_the_limit_is_taken_when_nothing_else_waits() -> None:
    async def story() -> None:
        node = await MemoryNode(config=Config(commands_in_flight_max=10)).start()
        assert len(await node.gateway.tasks.submit([NewTask("t")] * 50)) == 50
        await node.close()

    run(story())


def test_workers_that_wait_are_refused_and_the_node_lives_on() -> None:
    """Jobs of three types come while their workers arrive; there is room for one activation."""

    async def story() -> None:
        node = await MemoryNode(config=Config(commands_in_flight_max=1)).start()
        go_on = hold_appends(node)
        submitting = asyncio.ensure_future(
            node.gateway.tasks.submit([NewTask("a"), NewTask("b"), NewTask("c")])
        )
        await asyncio.sleep(0.1)  # the step waits for the disk
        workers = [
            asyncio.ensure_future(
                node.gateway.jobs.activate(ActivationRequest([each], wait_ms=1_000))
            )
            for each in "abc"
        ]
        await asyncio.sleep(0.1)
        go_on.set()
        answers = await refusals(*workers)
        assert len(await submitting) == 3
        assert node.node.runner.failure is None
        served = [answer for answer in answers if isinstance(answer, list)]
        assert served and len(served[0]) == 1
        assert sum(isinstance(each, ResourceExhausted) for each in answers) == 2
        await node.close()

    run(story())


def test_closing_with_workers_waiting_ends_well() -> None:
    async def story() -> None:
        node = await MemoryNode().start()
        go_on = hold_appends(node)
        submitting = asyncio.ensure_future(node.gateway.tasks.submit([NewTask("a")]))
        await asyncio.sleep(0.1)
        worker = asyncio.ensure_future(
            node.gateway.jobs.activate(ActivationRequest(["a"], wait_ms=500))
        )
        await asyncio.sleep(0.1)
        runner = node.node.runner
        closing = asyncio.ensure_future(runner.close())
        await asyncio.sleep(0.1)
        go_on.set()
        await closing
        assert runner.failure is None
        assert len(await submitting) == 1
        (answer,) = await refusals(worker)
        assert isinstance(answer, Unavailable)
        with pytest.raises(Unavailable, match="closing"):
            await node.gateway.tasks.submit([NewTask("a")])

    run(story())


BIG = msgspec.Raw(b'"%s"' % (b"x" * (PAYLOAD_BYTES_MAX - 2)))


def test_requests_with_more_content_than_one_append_holds_are_refused() -> None:
    async def story() -> None:
        node = await MemoryNode().start()
        with pytest.raises(InvalidArgument, match="bytes of payload in one request"):
            await node.gateway.tasks.submit([NewTask("t", BIG)] * 5)
        (receipt,) = await node.gateway.tasks.submit([NewTask("t", BIG)])
        (job,) = await node.gateway.jobs.activate(ActivationRequest(["t"]))
        larger = msgspec.Raw(b'"%s"' % (b"x" * PAYLOAD_BYTES_MAX))
        with pytest.raises(InvalidArgument, match="bytes of a result"):
            await node.gateway.jobs.complete([JobCompletion(job.job_key, job.lease, larger)])
        await node.gateway.jobs.complete([JobCompletion(job.job_key, job.lease, BIG)])
        assert (await node.gateway.tasks.get(receipt.task_key)).result == BIG
        await node.close()

    run(story())


def test_large_requests_that_come_together_are_spread_over_steps() -> None:
    async def story() -> None:
        node = await MemoryNode(partitions=3, disk=SimulatedDisk()).start()
        receipts = await asyncio.gather(
            *(node.gateway.tasks.submit([NewTask("t", BIG)] * 4) for _ in range(9))
        )
        assert all(receipt.created for group in receipts for receipt in group)
        assert node.node.runner.failure is None
        await node.close()

    run(story())


def test_what_the_log_refuses_is_refused_and_its_neighbours_are_not() -> None:
    """One step of two partitions; the journal refuses it as a whole."""

    async def story() -> None:
        node = await MemoryNode(partitions=2, disk=SimulatedDisk()).start()
        runner = node.node.runner

        def create(size_bytes: int) -> Command:
            return Command(ValueType.JOB, JobIntent.CREATE, 0, NewJob("t", bytes(size_bytes)))

        tickets = [
            runner.submit(1, [create(1)]),
            runner.submit(1, [create(ENTRY_BYTES_MAX)]),
            runner.submit(1, [create(2)]),
            runner.submit(2, [create(3)]),
        ]
        replies = [reply for ticket in tickets for reply in await ticket]
        codes = [reply.rejection and reply.rejection.code for reply in replies]
        assert codes == [None, "INVALID_ARGUMENT", None, None]
        assert len((await node.gateway.tasks.page(TaskQuery())).items) == 3
        assert (await node.gateway.tasks.submit([NewTask("t")]))[0].created
        assert runner.load()[1] == 0, "nothing is in flight any more"
        before = node.dump()
        await node.crash()
        await node.restart()
        assert node.dump() == before
        await node.close()

    run(story())


# --- a full disk ------------------------------------------------------------------------------


async def submit_until_full(node: MemoryNode, keys: list[str]) -> ResourceExhausted:
    for _ in range(10_000):
        try:
            (receipt,) = await node.gateway.tasks.submit([NewTask("t")])
        except ResourceExhausted as error:
            return error
        keys.append(receipt.task_key)
    raise AssertionError("the disk was never full")


def test_a_full_disk_refuses_writes_and_not_reads_until_there_is_room() -> None:
    async def story() -> None:
        disk = SimulatedDisk()
        node = await MemoryNode(disk=disk).start()
        keys = [receipt.task_key for receipt in await node.gateway.tasks.submit([NewTask("t")] * 3)]
        disk.capacity_bytes -= disk.free_bytes("")
        error = await submit_until_full(node, keys)
        assert error.retry_after_ms > 0
        before = node.dump()
        for _ in range(3):
            with pytest.raises(ResourceExhausted):
                await node.gateway.tasks.submit([NewTask("t", key="again")])
            assert node.dump() == before, "what was refused has not happened"
        for key in keys:
            assert (await node.gateway.tasks.get(key)).state == JobState.WAITING
        disk.capacity_bytes += 1 << 30
        (receipt,) = await node.gateway.tasks.submit([NewTask("t", key="again")])
        assert receipt.created, "it was not stored before"
        keys.append(receipt.task_key)
        after = node.dump()
        await node.crash()
        await node.restart()
        assert node.dump() == after
        for key in keys:
            assert (await node.gateway.tasks.get(key)).state == JobState.WAITING
        await node.close()

    run(story())


def test_what_becomes_due_while_the_disk_is_full_happens_when_there_is_room() -> None:
    async def story() -> None:
        disk = SimulatedDisk()
        node = await MemoryNode(disk=disk).start()
        # So many that waking them needs more room than the last refused submit.
        delayed, *_ = await node.gateway.tasks.submit([NewTask("t", delay_ms=5_000)] * 200)
        disk.capacity_bytes -= disk.free_bytes("")
        await submit_until_full(node, [])
        await asyncio.sleep(60)
        assert (await node.gateway.tasks.get(delayed.task_key)).state == JobState.SCHEDULED
        disk.capacity_bytes += 1 << 30
        await asyncio.sleep(60)
        assert (await node.gateway.tasks.get(delayed.task_key)).state == JobState.WAITING
        await node.close()

    run(story())


def test_a_failed_sync_stops_the_node_with_a_reason() -> None:
    async def story() -> None:
        disk = SimulatedDisk()
        node = await MemoryNode(disk=disk).start()
        (receipt,) = await node.gateway.tasks.submit([NewTask("t")])
        disk.fail_sync_at = disk.syncs + 1
        with pytest.raises(HoldfastError):
            await node.gateway.tasks.submit([NewTask("t")])
        with pytest.raises(Unavailable, match="The node stopped"):
            await node.gateway.tasks.submit([NewTask("t")])
        disk.fail_sync_at = None
        await node.crash()
        await node.restart()
        assert (await node.gateway.tasks.get(receipt.task_key)).state == JobState.WAITING
        await node.close()

    run(story())


# --- bugs -------------------------------------------------------------------------------------


def add_poison(node: MemoryNode) -> None:
    """A job becomes due that is not there: the command that wakes it is refused each time."""
    processor = node.node.runner.processors[1]
    processor.view.due.add(node.clock.now_ms(), DueKind.JOB, key_of(1, 999))
    processor.state.commit()


def test_a_due_command_that_is_refused_is_tried_after_pauses_that_double() -> None:
    async def story() -> None:
        node = await MemoryNode().start()
        add_poison(node)
        await node.gateway.tasks.submit([NewTask("t")])
        await asyncio.sleep(10)  # tries after 0, 1, 3 and 7 s: a command and a rejection each
        assert node.journal.bounds(TOPIC, 1).next == 2 + 4 * 2
        await asyncio.sleep(3_600)
        assert 100 < node.journal.bounds(TOPIC, 1).next < 140, "once a minute in the end"
        assert node.node.runner.failure is None
        await node.close()

    run(story())


def test_live_commands_do_not_shorten_the_pause_of_one_that_is_refused() -> None:
    async def story() -> None:
        node = await MemoryNode().start()
        add_poison(node)
        for _ in range(100):
            await node.gateway.tasks.submit([NewTask("t")])
            await asyncio.sleep(0.1)
        assert node.journal.bounds(TOPIC, 1).next == 100 * 2 + 4 * 2
        await node.close()

    run(story())


def test_what_else_is_due_does_not_wait_for_one_that_is_refused() -> None:
    """The job sleeps until the same moment; it shares the refused command, and is soon awake."""

    async def story() -> None:
        node = await MemoryNode().start()
        add_poison(node)
        await node.gateway.tasks.submit([NewTask("t", delay_ms=60) for _ in range(3)])
        await node.gateway.tasks.submit([NewTask("t", delay_ms=20_000)])
        await asyncio.sleep(3)
        states = [task.state for task in (await node.gateway.tasks.page(TaskQuery())).items]
        assert states.count(JobState.WAITING) == 3
        await asyncio.sleep(17.1)
        states = [task.state for task in (await node.gateway.tasks.page(TaskQuery())).items]
        assert states.count(JobState.WAITING) == 4
        await node.close()

    run(story())


async def answers_of_a_step(node: MemoryNode) -> list[object]:
    """What three who ask in one step, with one command that throws, are told."""
    broken = Command(ValueType.JOB_BATCH, JobBatchIntent.PURGE, 0, Purge(-1))
    ticket = node.node.runner.submit(1, [broken])
    asked = [node.gateway.tasks.submit([NewTask(each)]) for each in ("a", "b", "c")]
    (reply,) = await asyncio.wait_for(ticket, 5)
    assert reply.rejection is not None and reply.rejection.code == "INTERNAL"
    return await refusals(*(asyncio.wait_for(each, 5) for each in asked))


@pytest.mark.parametrize("what", ["deliver", "demand", "take_back", "encode_many", "due"])
def test_an_exception_anywhere_in_a_step_is_answered_and_the_partition_runs_on(what: str) -> None:
    """Each once: after it, everything works as before."""

    def throw(*_: object) -> NoReturn:
        patch.undo()
        raise ZeroDivisionError(what)

    async def story() -> None:
        node = await MemoryNode().start()
        runner = node.node.runner
        processor = runner.processors[1]
        where = {
            "deliver": node.node.runtime, "demand": node.node.runtime, "take_back": processor._turn,
            "encode_many": processor._tables.codec, "due": processor._due.source,
        }  # fmt: skip
        patch.setattr(where[what], what, throw)
        answers = await answers_of_a_step(node)
        assert not [each for each in answers if isinstance(each, TimeoutError)]
        assert runner.failure is None
        answers = await answers_of_a_step(node)
        assert not [each for each in answers if isinstance(each, Exception)]
        assert runner.load()[1] == 0
        (job,) = await node.gateway.jobs.activate(ActivationRequest(["a"], jobs_max=1))
        await node.gateway.jobs.complete([JobCompletion(job.job_key, job.lease)])
        before = node.dump()
        await node.crash()
        await node.restart()
        assert node.dump() == before
        await node.close()

    with pytest.MonkeyPatch.context() as patch:
        run(story())


# --- virtual time -----------------------------------------------------------------------------


def test_a_lease_runs_out_and_the_job_goes_to_the_next_worker_in_virtual_time() -> None:
    clock = VirtualClock()

    async def story() -> None:
        node = await MemoryNode(clock=clock).start()
        await node.gateway.tasks.submit([NewTask("t")])
        (first,) = await node.gateway.jobs.activate(
            ActivationRequest(["t"], "one", lease_ms=30_000)
        )
        (second,) = await node.gateway.jobs.activate(
            ActivationRequest(["t"], "two", lease_ms=30_000, wait_ms=60_000)
        )
        assert second.job_key == first.job_key
        assert second.attempt == 2
        await node.close()

    started_ms = clock.now_ms()
    run(story(), clock)
    assert clock.now_ms() - started_ms == 30_000
