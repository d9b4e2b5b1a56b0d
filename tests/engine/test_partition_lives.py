"""One partition, one life: it opens, closes, moves, fails and begins again by itself."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from holdfast.engine.jobs.values import JobIntent, JobRef, NewJob
from holdfast.engine.kernel import Command, Reply
from holdfast.engine.kernel.runner import TOPIC, Runner
from holdfast.engine.partition import DISPATCH, open_partition
from holdfast.engine.state import EngineState
from holdfast.errors import InvalidState, Moved, Unavailable, Unknown
from holdfast.gateway.tasks.shapes import ActivationRequest, NewTask
from holdfast.journal import Append
from holdfast.journal.memory import Fate, MemoryJournal
from holdfast.records import Record, RecordKind, ValueType, partition_of
from holdfast.state.memory import MemoryStore
from holdfast.testing import MemoryNode, VirtualClock, run

PARTITIONS = 3


class Fates:
    """What becomes of the next appends of partitions; everything else is durable."""

    def __init__(self) -> None:
        self.next: dict[int, list[Fate]] = {}

    def __call__(self, append: Append) -> Fate:
        fates = self.next.get(append.partition)
        return fates.pop(0) if fates else Fate.DURABLE


def create(content: str = "1") -> Command:
    return Command(ValueType.JOB, JobIntent.CREATE, 0, NewJob("mail", content.encode()))


def ask(node: MemoryNode, partition: int) -> "asyncio.Future[list[Reply]]":
    return node.node.runner.submit(partition, [create()])


async def told(answer: "asyncio.Future[list[Reply]]") -> Reply | Exception:
    (found,) = await asyncio.gather(answer, return_exceptions=True)
    return found if isinstance(found, Exception) else found[0]


async def jobs_on_the_log(node: MemoryNode, partition: int) -> int:
    """How many jobs the log of a partition says were created."""
    found, offset = 0, 0
    while entries := await node.journal.read(TOPIC, partition, offset):
        for entry in entries:
            record = DISPATCH.codec.decode(entry.payload)
            found += record.kind == RecordKind.EVENT and record.intent == JobIntent.CREATED
        offset = entries[-1].offset + 1
    return found


async def check_state_is_the_log(node: MemoryNode, partition: int) -> None:
    fresh = open_partition(MemoryStore(), partition, PARTITIONS)
    offset = 0
    while entries := await node.journal.read(TOPIC, partition, offset):
        fresh.replay(entries)
        offset = entries[-1].offset + 1
    assert node.dump(partition) == fresh.state.dump()


Story = Callable[[MemoryNode, Fates], Awaitable[None]]


def play(story: Story, gap: int = 2) -> None:
    fates = Fates()

    async def whole() -> None:
        journal = MemoryJournal(fate=fates, gap=lambda: gap)
        node = await MemoryNode(partitions=PARTITIONS, journal=journal).start()
        await story(node, fates)
        await node.close()

    run(whole())


# --- refused ----------------------------------------------------------------------------------


def test_a_refused_append_moves_its_partition_and_no_other() -> None:
    async def story(node: MemoryNode, fates: Fates) -> None:
        runner = node.node.runner
        await asyncio.gather(*(ask(node, each) for each in (1, 2, 3)))
        fates.next[2] = [Fate.REFUSED]
        answers = [ask(node, each) for each in (1, 2, 2, 3)]
        one, two, again, three = [await told(answer) for answer in answers]
        assert isinstance(one, Reply)
        assert isinstance(three, Reply)
        assert isinstance(two, Moved)
        assert isinstance(again, Moved)
        assert await jobs_on_the_log(node, 2) == 1, "nothing of it reached the log"
        with pytest.raises(Moved, match="Partition 2"):
            ask(node, 2)
        with pytest.raises(Moved, match="Partition 2"):
            await runner.settled(2)
        assert 2 not in runner.processors and runner.epoch(2) is None
        for partition in (1, 3):
            assert isinstance(await told(ask(node, partition)), Reply)
            await check_state_is_the_log(node, partition)
        assert [node.node.metrics.partition(each).open for each in (1, 2, 3)] == [1, 0, 1]

        await runner.open(2)  # its next placement is here again
        assert (runner.epoch(1), runner.epoch(2)) == (1, 3)
        assert isinstance(await told(ask(node, 2)), Reply)
        await check_state_is_the_log(node, 2)

    play(story)


def test_what_waits_for_a_partition_that_moves_is_told_so_too() -> None:
    async def story(node: MemoryNode, fates: Fates) -> None:
        fates.next[1] = [Fate.REFUSED]
        first = ask(node, 1)
        await asyncio.sleep(0)
        later = [ask(node, 1) for _ in range(5)]
        assert {type(await told(each)) for each in (first, *later)} == {Moved}
        await asyncio.sleep(0.1)
        assert node.node.runner.failure is None, "the others go on"

    play(story)


# --- unknown ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fate", "kept"), [(Fate.KEPT, True), (Fate.LATE, True), (Fate.LOST, False)]
)
def test_after_an_unknown_outcome_a_partition_goes_on_from_its_log(fate: Fate, kept: bool) -> None:
    async def story(node: MemoryNode, fates: Fates) -> None:
        runner = node.node.runner
        before = await asyncio.gather(*(ask(node, each) for each in (1, 2, 3)))
        former, neighbours = runner.processors[2], [runner.processors[each] for each in (1, 3)]
        fates.next[2] = [fate]
        one, two, three = [await told(ask(node, each)) for each in (1, 2, 3)]
        assert isinstance(one, Reply)
        assert isinstance(three, Reply)
        assert isinstance(two, Unknown)
        assert "request id" in two.message

        (after,) = await ask(node, 2)
        assert runner.processors[2] is not former, "its memory was dropped"
        assert [runner.processors[each] for each in (1, 3)] == neighbours
        assert (runner.epoch(1), runner.epoch(2)) == (1, 2)
        assert await jobs_on_the_log(node, 2) == (3 if kept else 2)
        assert after.key - before[1][0].key == (2 if kept else 1), "keys are not given out twice"
        for partition in (1, 2, 3):
            await check_state_is_the_log(node, partition)

    play(story)


def test_what_waits_behind_an_unknown_outcome_is_done_when_the_partition_is_open_again() -> None:
    async def story(node: MemoryNode, fates: Fates) -> None:
        fates.next[1] = [Fate.LOST]
        first = ask(node, 1)
        await asyncio.sleep(0)
        later = [ask(node, 1) for _ in range(5)]
        assert isinstance(await told(first), Unknown)
        assert {type(await told(each)) for each in later} == {Reply}
        await node.node.runner.settled(1)
        await check_state_is_the_log(node, 1)

    play(story)


def test_to_open_a_partition_that_is_being_opened_again_waits_for_that() -> None:
    async def story(node: MemoryNode, fates: Fates) -> None:
        runner, take = node.node.runner, node.journal.take
        going, taken = asyncio.Event(), 0

        async def take_slowly(topic: str, partition: int, epoch: int | None = None) -> object:
            nonlocal taken
            taken += 1
            await going.wait()
            return await take(topic, partition, epoch)

        node.journal.take = take_slowly  # pyright: ignore[reportAttributeAccessIssue]
        fates.next[2] = [Fate.KEPT]
        assert isinstance(await told(ask(node, 2)), Unknown)
        waiting = ask(node, 2)
        opened = asyncio.ensure_future(runner.open(2))
        await asyncio.sleep(1)
        assert not opened.done()
        going.set()
        await opened
        assert taken == 1
        assert isinstance(await told(waiting), Reply)
        assert isinstance(await told(ask(node, 2)), Reply)
        await check_state_is_the_log(node, 2)

    play(story)


def test_a_partition_is_opened_again_while_its_rows_are_on_their_way_to_the_store() -> None:
    async def story(node: MemoryNode, fates: Fates) -> None:
        runner = node.node.runner
        runner.behind.rows_max, runner.behind.slice_rows = 0, 1
        created = await runner.submit(2, [create() for _ in range(20)])
        assert runner._lives.writing is not None
        fates.next[2] = [Fate.LOST]
        assert isinstance(await told(ask(node, 2)), Unknown)
        cancel = [
            Command(ValueType.JOB, JobIntent.CANCEL, reply.key, JobRef()) for reply in created
        ]
        assert {reply.error() for reply in await runner.submit(2, cancel)} == {None}
        runner.write_state()
        await check_state_is_the_log(node, 2)
        assert runner._lives.writing is None

    play(story)


def test_the_node_closes_and_starts_again_while_a_partition_is_opened_again() -> None:
    async def story(node: MemoryNode, fates: Fates) -> None:
        fates.next[1] = [Fate.KEPT]
        assert isinstance(await told(ask(node, 1)), Unknown)
        await node.crash()
        await node.restart()
        assert await jobs_on_the_log(node, 1) == 1
        await check_state_is_the_log(node, 1)

    play(story)


# --- late -------------------------------------------------------------------------------------


def test_a_slow_append_holds_up_its_own_partition_alone() -> None:
    async def story(node: MemoryNode, fates: Fates) -> None:
        runner = node.node.runner
        fates.next[1] = [Fate.SLOW]
        slow = ask(node, 1)
        for _ in range(20):
            assert isinstance(await told(ask(node, 2)), Reply)
        assert not slow.done()
        behind = ask(node, 1)
        await runner.settled(2)
        waiting = asyncio.ensure_future(runner.settled(1))
        await asyncio.sleep(0)
        assert not waiting.done()
        runner.write_state()  # of the others: what is under way is not written
        assert isinstance(await told(slow), Reply)
        assert isinstance(await told(behind), Reply)
        await waiting
        await check_state_is_the_log(node, 1)

    play(story)


def test_a_node_that_closes_waits_for_what_is_late() -> None:
    async def story(node: MemoryNode, fates: Fates) -> None:
        fates.next[1] = [Fate.SLOW]
        slow = ask(node, 1)
        await asyncio.sleep(0)
        await node.close()
        assert isinstance(await told(slow), Reply)

    fates = Fates()

    async def whole() -> None:
        journal = MemoryJournal(fate=fates)
        await story(await MemoryNode(journal=journal).start(), fates)

    run(whole())


# --- opening and closing ----------------------------------------------------------------------


def test_a_partition_closes_in_order_and_opens_in_a_given_epoch() -> None:
    async def story(node: MemoryNode, fates: Fates) -> None:
        runner = node.node.runner
        answers = [ask(node, 2) for _ in range(10)]
        closing = asyncio.ensure_future(runner.close_partition(2))
        await asyncio.sleep(0)
        with pytest.raises(Moved):
            ask(node, 2)
        await closing
        assert {type(await told(each)) for each in answers} == {Reply}, "accepted is answered"
        assert 2 not in runner.processors
        with pytest.raises(Moved):
            await runner.close_partition(2)
        assert isinstance(await told(ask(node, 1)), Reply)
        await runner.open(2, 7)
        assert runner.epoch(2) == 7
        with pytest.raises(InvalidState, match="is open here in epoch 7"):
            await runner.open(2)
        assert isinstance(await told(ask(node, 2)), Reply)
        await check_state_is_the_log(node, 2)
        await runner.close_partition(2)
        with pytest.raises(Moved, match="an epoch above 7"):
            await runner.open(2, 7)

    play(story)


def test_nobody_is_sent_to_a_partition_that_is_closed() -> None:
    async def story(node: MemoryNode, fates: Fates) -> None:
        for partition in (1, 2, 3):
            await ask(node, partition)
        await node.node.runner.close_partition(2)
        jobs = await node.gateway.jobs.activate(ActivationRequest(["mail"], jobs_max=10, wait_ms=0))
        assert len(jobs) == 1
        assert await node.gateway.jobs.activate(ActivationRequest(["mail"], jobs_max=10, wait_ms=0))
        assert not await node.gateway.jobs.activate(
            ActivationRequest(["mail"], jobs_max=10, wait_ms=0)
        )

    play(story)


# --- failing ----------------------------------------------------------------------------------


def test_a_partition_whose_events_cannot_be_applied_stops_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def story(node: MemoryNode, fates: Fates) -> None:
        for partition in (1, 2, 3):
            await ask(node, partition)
        before = await jobs_on_the_log(node, 2)
        await node.crash()
        created = DISPATCH.appliers[ValueType.JOB, JobIntent.CREATED]

        def broken(state: EngineState, record: Record) -> None:
            if partition_of(record.key) == 2:
                raise ZeroDivisionError("a bug of this version")
            created(state, record)

        monkeypatch.setitem(DISPATCH.appliers, (ValueType.JOB, JobIntent.CREATED), broken)
        await node.restart()
        runner = node.node.runner
        with pytest.raises(Unavailable, match=r"Partition 2 has stopped.*a bug of this version"):
            ask(node, 2)
        assert list(runner.stopped) == [2]
        for partition in (1, 3):
            assert isinstance(await told(ask(node, partition)), Reply)
        await node.close()
        monkeypatch.undo()
        await node.restart()
        assert isinstance(await told(ask(node, 2)), Reply), "its log is whole"
        assert await jobs_on_the_log(node, 2) == before + 1

    class Local(MemoryNode):
        async def close(self) -> None:
            await self.node.runner.close()
            self._node = None

    async def whole() -> None:
        fates = Fates()
        node = await Local(partitions=PARTITIONS, journal=MemoryJournal()).start()
        await story(node, fates)
        await node.close()

    run(whole())


def test_a_partition_that_cannot_finish_a_step_stops_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(node: MemoryNode, fates: Fates) -> None:
        runner = node.node.runner
        await asyncio.gather(*(ask(node, each) for each in (1, 2, 3)))

        def broken(*_: object) -> None:
            raise ZeroDivisionError("a bug of the kernel")

        monkeypatch.setattr(runner.processors[2], "commit", broken)
        answers = [ask(node, each) for each in (1, 2, 3)]
        one, two, three = [await told(each) for each in answers]
        assert isinstance(one, Reply)
        assert isinstance(two, Unknown), "it is on the log, and nobody could say so"
        assert isinstance(three, Reply)
        with pytest.raises(Unavailable, match="a bug of the kernel"):
            ask(node, 2)
        await runner.open(2)
        assert isinstance(await told(ask(node, 2)), Reply)
        await check_state_is_the_log(node, 2)
        assert runner.stopped == {}

    play(story)


# --- time -------------------------------------------------------------------------------------


def test_time_in_a_partition_never_goes_back() -> None:
    """A partition that comes from a machine whose clock is ahead goes on from its last record."""

    async def story() -> None:
        ahead = VirtualClock(start_ms=2_000_000)
        node = MemoryNode(clock=ahead, journal=MemoryJournal())
        await node.start()
        await ask(node, 1)
        await node.node.runner.close()
        behind = MemoryNode(clock=VirtualClock(start_ms=1_000_000), journal=node.journal)
        await behind.start()
        await ask(behind, 1)
        entries = await behind.journal.read(TOPIC, 1, 0)
        times = [DISPATCH.codec.decode(entry.payload).timestamp_ms for entry in entries]
        assert times == sorted(times)
        assert set(times) == {2_000_000}
        behind.node.runner.write_state()
        assert behind.node.runner.processors[1].progress.last_ms == 2_000_000
        await behind.node.runner.close()

    run(story())


def test_many_rounds_over_a_log_with_gaps_survive_crashes() -> None:
    async def story(node: MemoryNode, fates: Fates) -> None:
        total = 0
        for start in range(5):
            for _ in range(20):
                total += len(await node.gateway.tasks.submit([NewTask("mail")] * 3))
            if start % 2:
                node.node.runner.write_state()
                node.store.flush()
            await node.crash()
            await node.restart()
            for partition in (1, 2, 3):
                await check_state_is_the_log(node, partition)
        assert sum([await jobs_on_the_log(node, each) for each in (1, 2, 3)]) == total

    for gap in (0, 1, 5):
        play(story, gap)


def test_a_runner_says_in_which_epoch_its_partitions_are() -> None:
    async def story(node: MemoryNode, fates: Fates) -> None:
        runner: Runner[EngineState] = node.node.runner
        assert [runner.epoch(each) for each in (1, 2, 3, 4)] == [1, 1, 1, None]
        await node.crash()
        await node.restart()
        assert node.node.runner.epoch(1) == 2, "a start takes a new epoch"

    play(story)
