"""Standbys: what they apply is what the owner has, and nothing leaves them."""

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from random import Random
from typing import Any

import msgspec
import pytest
from fellows import Fellows

from holdfast.engine.jobs.values import JobIntent, NewJob
from holdfast.engine.kernel import Command
from holdfast.engine.kernel.others import others
from holdfast.engine.kernel.runner import TOPIC, Runner
from holdfast.errors import InvalidState, Moved, Unavailable, Unknown
from holdfast.gateway.tasks.shapes import ActivationRequest, JobCompletion, NewTask
from holdfast.journal import Append
from holdfast.journal.memory import Fate, MemoryJournal
from holdfast.limits import STANDBY_ENTRIES
from holdfast.records import ValueType
from holdfast.testing import run

PARTITIONS = 2


def create(content: str = "1", due_ms: int = 0) -> Command:
    new = NewJob("mail", content.encode(), due_ms=due_ms)
    return Command(ValueType.JOB, JobIntent.CREATE, 0, new)


def play(story: Callable[[Fellows], Awaitable[None]], **options: Any) -> None:
    async def whole() -> None:
        fellows = await Fellows(("a", "b"), PARTITIONS, **options).start()
        await story(fellows)
        await fellows.close()

    run(whole())


def runners(fellows: Fellows) -> "tuple[Runner[Any], Runner[Any]]":
    return fellows.nodes["a"].runner, fellows.nodes["b"].runner


def test_a_standby_has_the_owners_rows_byte_for_byte() -> None:
    async def story(fellows: Fellows) -> None:
        a, b = runners(fellows)
        for partition in (1, 2):
            await a.open(partition)
        random, gateway = Random(7), fellows.nodes["a"].gateway
        request = ActivationRequest(["mail"], "worker", 3, 60_000, 0)
        for number in range(60):
            tasks = [
                NewTask("mail", msgspec.Raw(b"%d" % number), delay_ms=random.choice((0, 0, 500)))
                for _ in range(random.randrange(1, 4))
            ]
            await gateway.tasks.submit(tasks)
            for job in await gateway.jobs.activate(request):
                if random.random() < 0.7:
                    done = JobCompletion(job.job_key, job.lease, msgspec.Raw(b"1"))
                    await gateway.jobs.complete([done])
            await asyncio.sleep(random.uniform(0, 0.1))
            for partition in (1, 2):  # at whatever position it stands
                standing = b._lives.standing[partition]
                fresh = await fellows.replayed(partition, standing.next_offset)
                assert standing.state.dump() == fresh.state.dump()
                assert standing.next_position == fresh.next_position
        await fellows.caught_up("b")
        for partition in (1, 2):
            owner, standing = a.processor(partition), b._lives.standing[partition]
            assert standing.next_position == owner.next_position > 100
            assert standing.state.dump() == owner.state.dump()
            assert standing.progress == owner.progress
        b.write_state()
        for partition in (1, 2):
            assert b.stored_offsets()[partition] == a.processor(partition).next_offset

    play(story)


def test_nothing_leaves_a_standby_and_nothing_can_be_asked_of_it() -> None:
    async def story(fellows: Fellows) -> None:
        a, b = runners(fellows)
        told: list[Any] = []
        b.outside.deliver = told.append  # type: ignore[union-attr,method-assign]
        await a.open(1)
        await a.submit(1, [create(due_ms=a._clock.now_ms() + 1_000)])
        await fellows.caught_up("b")
        await a.close_partition(1)
        before = fellows.journal.bounds(TOPIC, 1).next
        await asyncio.sleep(10)
        assert fellows.journal.bounds(TOPIC, 1).next == before, "the due date waits for an owner"
        assert told == [] and 1 not in b.processors and b.open_partitions() == []
        with pytest.raises(Moved):
            b.submit(1, [create()])
        with pytest.raises(Moved):
            b.processor(1)
        await b.open(1)
        await asyncio.sleep(0.1)
        assert fellows.journal.bounds(TOPIC, 1).next > before, "now it fires"

    play(story)


def test_a_partition_that_cannot_be_opened_again_now_is_a_standby_until_it_can() -> None:
    fates: list[Fate] = []
    journal = MemoryJournal(fate=lambda append: fates.pop() if fates else Fate.DURABLE)
    take, is_away = journal.take, True

    async def take_if_there(topic: str, partition: int, epoch: int | None = None) -> object:
        if is_away:
            raise Unavailable("the store of the cluster is away")
        return await take(topic, partition, epoch)

    async def story(fellows: Fellows) -> None:
        nonlocal is_away
        a, b = runners(fellows)
        await a.open(1)
        journal.take = take_if_there  # pyright: ignore[reportAttributeAccessIssue]
        fates.append(Fate.LOST)
        with pytest.raises(Unknown):
            await a.submit(1, [create()])
        await asyncio.sleep(1)
        assert a.open_partitions() == [] and a.stopped == {}
        with pytest.raises(Moved, match="could not be opened again"):
            a.submit(1, [create()])
        is_away = False
        await b.open(1)
        await b.submit(1, [create()])
        await fellows.caught_up("a")
        assert a._lives.standing[1].state.dump() == b.processor(1).state.dump()

    play(story, journal=journal)


def test_a_take_over_reads_only_what_the_standby_has_not_applied() -> None:
    async def story(fellows: Fellows) -> None:
        a, b = runners(fellows)
        await a.open(1)
        for number in range(300):
            await a.submit(1, [create(str(number))])
        await fellows.caught_up("b")
        standing = b._lives.standing[1]
        ahead = standing.next_offset
        await asyncio.gather(*(a.submit(1, [create("late")]) for _ in range(5)))
        reads: list[int] = []
        read = fellows.journal.read

        async def watched(topic: str, partition: int, offset: int, *rest: int) -> Any:
            reads.append(offset)
            return await read(topic, partition, offset, *rest)

        fellows.journal.read = watched  # type: ignore[method-assign]
        await b.open(1)
        assert reads and min(reads) == ahead, "it goes on from the standby"
        assert b.processor(1) is standing
        with pytest.raises(Moved):
            await a.submit(1, [create()])
        await b.submit(1, [create("after")])
        await fellows.caught_up("a")
        assert a._lives.standing[1].state.dump() == b.processor(1).state.dump()
        fresh = await fellows.replayed(1)
        assert fresh.state.dump() == b.processor(1).state.dump()

    play(story)


def test_a_former_owner_stands_by_with_what_was_acknowledged() -> None:
    """Its own last step was refused, and another's records stand in its place."""

    async def story(fellows: Fellows) -> None:
        a, b = runners(fellows)
        await a.open(1)
        await a.submit(1, [create("1")])
        a.write_state()
        await a.submit(1, [create("2")])
        await b.open(1)
        await b.submit(1, [create("3")])
        with pytest.raises(Moved):
            await a.submit(1, [create("lost")])
        await fellows.caught_up("a")
        assert a._lives.standing[1].state.dump() == b.processor(1).state.dump()
        await a.open(1)  # and back
        await a.submit(1, [create("4")])
        assert a.processor(1).state.dump() == (await fellows.replayed(1)).state.dump()

    play(story)


def test_a_refused_opening_leaves_the_standby_as_it_is() -> None:
    async def story(fellows: Fellows) -> None:
        a, b = runners(fellows)
        await a.open(1, 5)
        await a.submit(1, [create()])
        await fellows.caught_up("b")
        standing = b._lives.standing[1]
        with pytest.raises(Moved):
            await b.open(1, 5)
        await a.submit(1, [create()])
        await fellows.caught_up("b")
        assert b._lives.standing[1] is standing
        assert standing.state.dump() == a.processor(1).state.dump()
        opening = asyncio.ensure_future(b.open(1))
        await asyncio.sleep(0)
        with pytest.raises(InvalidState):
            await b.open(1)
        await opening

    play(story)


def test_a_standby_catches_up_in_pieces_between_which_others_have_a_turn() -> None:
    async def story(fellows: Fellows) -> None:
        a, b = runners(fellows)
        b.forget(1)
        await a.open(1)
        await a.submit(1, [create(str(number)) for number in range(20 * STANDBY_ENTRIES)])
        turns, longest = [0], 0
        replay = type(a.processor(1)).replay

        def counted(processor: Any, entries: Any) -> int:
            nonlocal longest
            turns.append(len(entries))
            longest = max(longest, len(entries))
            return replay(processor, entries)

        ticks: list[int] = []

        async def tick() -> None:
            while True:
                ticks.append(len(turns))
                await asyncio.sleep(0)

        ticking = asyncio.ensure_future(tick())
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(type(a.processor(1)), "replay", counted)
            b.stand_by(1)
            while b.standbys.lags()[1]:  # noqa: ASYNC110
                await asyncio.sleep(0)
        ticking.cancel()
        assert longest <= STANDBY_ENTRIES
        assert all(after - before <= 1 for before, after in itertools.pairwise(ticks))
        assert b._lives.standing[1].state.dump() == a.processor(1).state.dump()

    play(story)


def test_what_is_forgotten_is_not_followed_and_can_still_be_opened() -> None:
    async def story(fellows: Fellows) -> None:
        a, b = runners(fellows)
        await a.open(1)
        await a.submit(1, [create()])
        await fellows.caught_up("b")
        b.forget(1)
        await a.submit(1, [create()])
        await asyncio.sleep(1)
        assert 1 not in b._lives.standing and 1 not in b.stored_offsets()
        assert 1 not in b.standbys.lags()
        await a.close_partition(1)
        await b.open(1)
        assert b.processor(1).state.dump() == (await fellows.replayed(1)).state.dump()
        await b.close_partition(1)
        assert 1 not in b._lives.standing

    play(story)


def test_a_standby_whose_log_begins_too_late_says_so() -> None:
    async def story(fellows: Fellows) -> None:
        a, b = runners(fellows)
        b.forget(1)
        await a.open(1)
        await a.submit(1, [create()])
        fellows.journal.discard(TOPIC, 1, 1)
        told: list[int] = []
        b.standbys.on_missing.append(told.append)
        b.stand_by(1)
        await asyncio.sleep(0.1)
        assert told == [1] and b.standbys.missing == {1}
        assert b.standbys.stopped == {} and 1 not in b._lives.standing

    play(story)


def test_without_hot_standbys_the_log_is_applied_when_a_snapshot_is_due() -> None:
    async def story(fellows: Fellows) -> None:
        a, b = runners(fellows)
        b.standbys.pause()
        b.standbys.is_hot = False
        await a.open(1)
        for number in range(50):
            await a.submit(1, [create(str(number))])
        await asyncio.sleep(1)
        assert b._lives.standing == {} and b.standbys.lags()[1] > 0
        await b.standbys.catch_up()
        assert b._lives.standing == {}, "memory is dropped"
        assert b.standbys.lags()[1] == 0
        assert b.stored_offsets()[1] == a.processor(1).next_offset
        await a.submit(1, [create("more")])
        await b.open(1)
        assert b.processor(1).state.dump() == (await fellows.replayed(1)).state.dump()

    play(story)


def test_an_event_that_cannot_be_applied_stops_its_standby_alone() -> None:
    async def story(fellows: Fellows) -> None:
        a, b = runners(fellows)
        for partition in (1, 2):
            await a.open(partition)
            await a.submit(partition, [create()])
        await fellows.caught_up("b")
        with pytest.MonkeyPatch.context() as patch:
            jobs = b._lives.standing[1].view.jobs

            def broken(*_: Any) -> None:
                raise ValueError("a bug")

            patch.setattr(jobs, "create", broken)
            await a.submit(1, [create("bad")])
            await a.submit(2, [create("good")])
            await asyncio.sleep(1)
        assert "a bug" in b.standbys.stopped[1] and 1 not in b._lives.standing
        assert b._lives.standing[2].next_offset == a.processor(2).next_offset
        b.write_state()
        await b.open(1)  # what was applied in part is not in the store
        assert b.processor(1).state.dump() == (await fellows.replayed(1)).state.dump()

    play(story)


@pytest.mark.parametrize("seed", range(8))
def test_state_is_the_log_through_random_moves_crash_free(seed: int) -> None:
    random = Random(seed)

    def fate(append: Append) -> Fate:
        if random.random() > 0.1:
            return Fate.DURABLE
        return random.choice((Fate.SLOW, Fate.REFUSED, Fate.KEPT, Fate.LATE, Fate.LOST))

    async def story(fellows: Fellows) -> None:
        both = runners(fellows)
        for runner in both:
            runner.behind.rows_max, runner.behind.slice_rows = 40, 3
        for _ in range(150):
            runner, partition = random.choice(both), random.randrange(1, PARTITIONS + 1)
            what = random.random()
            try:
                if what < 0.15:
                    await runner.open(partition)
                elif what < 0.25:
                    await runner.close_partition(partition)
                else:
                    runner.submit(partition, [create() for _ in range(random.randrange(1, 9))])
            except (Moved, InvalidState):
                pass
            await asyncio.sleep(random.choice((0, 0, 0.001, 0.03)))
        await asyncio.sleep(1)
        for partition in range(1, PARTITIONS + 1):
            fresh = await fellows.replayed(partition)
            for name, runner in zip("ab", both, strict=True):
                known = runner.processors.get(partition) or runner._lives.standing[partition]
                if known.next_position == fresh.next_position:  # a former owner may not know yet
                    assert known.state.dump() == fresh.state.dump(), (name, partition)
                else:
                    assert partition in runner.processors, (name, partition)

    play(story, journal=MemoryJournal(fate=fate, gap=lambda: random.choice((0, 0, 3))))


def test_a_stream_of_the_log_may_not_know_yet_what_the_state_knows() -> None:
    """A member that starts again hears later how far the log is acknowledged."""

    async def story(fellows: Fellows) -> None:
        a, b = runners(fellows)
        await a.open(1)
        await a.submit(1, [create()])
        await fellows.caught_up("b")
        b.write_state()
        stands = b.stored_offsets()[1]
        b.forget(1)
        bounds, known = fellows.journal.bounds, [1]
        b._journal.__dict__["bounds"] = lambda topic, partition: bounds(topic, partition)._replace(
            next=known[0]
        )
        b.stand_by(1)
        await asyncio.sleep(0.1)
        assert b._lives.standing[1].next_offset == stands and not b.standbys.missing
        known[0] = 1_000
        await a.submit(1, [create()])
        await asyncio.sleep(0.1)
        assert b._lives.standing[1].state.dump() == a.processor(1).state.dump()

    play(story)


def test_a_pause_that_is_cancelled_in_its_last_turn_ends_quietly() -> None:
    async def story() -> None:
        loop = asyncio.get_running_loop()
        told: list[Any] = []
        loop.set_exception_handler(lambda _, context: told.append(context))
        pausing = asyncio.ensure_future(others())
        loop.call_soon(lambda: loop.call_soon(pausing.cancel))
        await asyncio.gather(pausing, return_exceptions=True)
        await asyncio.sleep(0.01)
        assert told == [] and pausing.cancelled()

    run(story())


def test_an_owner_that_hears_of_another_lets_go_though_it_has_nothing_to_append() -> None:
    async def story(fellows: Fellows) -> None:
        a, b = runners(fellows)
        await a.open(1)
        await a.submit(1, [create("1")])
        await b.open(1)
        waiting = a.submit(1, [create("2")])
        a._alarms.stop()
        a.lose(1)
        with pytest.raises(Moved):
            await waiting
        assert a.epoch(1) is None and a.failure is None
        await b.submit(1, [create("3")])
        await fellows.caught_up("a")
        assert a._lives.standing[1].state.dump() == b.processor(1).state.dump()
        a.lose(1)  # nothing happens
        await a.open(1)
        await a.submit(1, [create("4")])
        assert a.processor(1).state.dump() == (await fellows.replayed(1)).state.dump()

    play(story)
