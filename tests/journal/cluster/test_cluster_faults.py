"""What happens to members, disks and the wire, and what becomes of the log."""

import asyncio
from typing import Any

import pytest
from tests.journal.cluster.trio import (
    NAMES,
    Trio,
    append,
    everything,
    play,
    settled,
    take,
    until,
)

from holdfast.errors import NotFound, Unknown
from holdfast.journal import Append, Refused, Start
from holdfast.journal.cluster.journal import ClusterJournal
from holdfast.journal.cluster.messages import Survey
from holdfast.limits import CLUSTER_MARKS_MS
from holdfast.sequence.api import LiveMember
from holdfast.testing.disk import DiskOutcome as Loss
from holdfast.testing.disk import SimulatedDisk


async def begun(trio: Trio) -> tuple[ClusterJournal, ClusterJournal, ClusterJournal]:
    a, b, c = await trio.start_all()
    await take(a)
    return a, b, c


async def caught_up(*journals: ClusterJournal, following: int) -> None:
    for each in journals:
        await until(
            lambda each=each: each.is_caught_up(1) and each.bounds("t", 1).next == following
        )


def numbered(first: int, end: int) -> list[bytes]:
    return [b"%d" % number for number in range(first, end)]


# --- replicas ---------------------------------------------------------------------------------


def test_an_append_waits_for_a_quorum_and_is_never_undone() -> None:
    async def story(trio: Trio) -> None:
        a, b, _ = await begun(trio)
        trio.isolate("a")
        (answer,) = await a.append_many([Append("t", 1, [b"1"])])
        assert isinstance(answer, asyncio.Future)
        await asyncio.sleep(10)
        assert not answer.done()
        assert a.bounds("t", 1).next == 0, "what has no quorum is not read"
        assert await a.read("t", 1, 0) == []
        trio.heal()
        assert (await answer).next == 1
        await caught_up(a, b, following=1)

    play(story)


def test_a_replica_that_was_away_fetches_what_it_missed_while_appends_go_on() -> None:
    async def story(trio: Trio) -> None:
        a, _, c = await begun(trio)
        await append(a, *numbered(0, 3))
        await trio.kill("c")
        for number in range(3, 200):
            await append(a, b"%d" % number)
        c = await trio.start("c")
        for number in range(200, 230):
            await append(a, b"%d" % number)
        await caught_up(c, following=230)
        assert await everything(c) == numbered(0, 230)
        assert a.lags()["c", 1] == 0
        assert c.disk.counts(1) == {1: {"t": 230}}

    play(story)


def test_a_slow_replica_is_left_out_and_catches_up_by_itself() -> None:
    async def story(trio: Trio) -> None:
        a, _, c = await begun(trio)
        trio.wire.room_bytes = 2_000
        trio.wire.hold("a", "c")
        for number in range(100):
            await append(a, b"%d" % number, bytes(200))
        waiting = trio.wire.waiting_bytes("a", "c")
        assert waiting < 4_000, "what is sent to a slow replica is bounded"
        assert a.lags()["c", 1] == 200
        trio.wire.go_on("a", "c")
        await caught_up(c, following=200)
        await until(lambda: a.lags()["c", 1] == 0)

    play(story)


def test_a_replica_whose_reports_were_lost_reports_again() -> None:
    async def story(trio: Trio) -> None:
        a, b, _ = await begun(trio)
        await trio.kill("c")
        trio.wire.hold("b", "a")  # it stores, and is not heard
        (answer,) = await a.append_many([Append("t", 1, [b"1"])])
        await until(lambda: b._receiving.rules(1).counts(1) == {"t": 1})
        assert isinstance(answer, asyncio.Future) and not answer.done()
        trio.cut("a", "b")
        trio.heal()
        assert (await asyncio.wait_for(answer, 5)).next == 1

    play(story)


def test_many_rounds_are_in_flight_at_once_and_keep_their_order() -> None:
    async def story(trio: Trio) -> None:
        a, _, c = await begun(trio)
        await take(a, 2)
        trio.wire.delay_ms = 5
        answers: list[Any] = []
        for number in range(50):
            answers += await a.append_many(
                [
                    Append("t", 1, [b"%d" % number], 1, number),
                    Append("t", 2, [b"x%d" % number], 1, number),
                ]
            )
        assert not any(each.done() for each in answers)
        assert [each.first for each in await asyncio.gather(*answers)] == [
            number // 2 for number in range(100)
        ]
        await caught_up(c, following=50)
        assert await everything(c, 2) == [b"x%d" % number for number in range(50)]

    play(story)


def test_a_large_round_goes_in_several_messages() -> None:
    async def story(trio: Trio) -> None:
        a, _, c = await begun(trio)
        trio.segment_bytes = 1 << 24
        appends = [Append("t", 1, [bytes(1 << 20)] * 2) for _ in range(8)]
        outcomes = await a.append_many(appends)
        assert [(await each).next for each in outcomes] == list(range(2, 18, 2))  # pyright: ignore
        sizes = [
            sum(len(entry) for one in message.stretches for entry in one.entries)
            for sender, target, message in trio.wire.told
            if target == "c" and hasattr(message, "stretches")
        ]
        assert max(sizes) <= 6 << 20
        assert sum(sizes) == 16 << 20
        await caught_up(c, following=16)

    play(story)


# --- owners -----------------------------------------------------------------------------------


def test_an_owner_that_restarts_takes_a_new_epoch_and_keeps_what_may_be_acknowledged() -> None:
    async def story(trio: Trio) -> None:
        a, b, _ = await begun(trio)
        await append(a, b"1")
        trio.wire.hold("b", "a")
        trio.wire.hold("c", "a")
        (answer,) = await a.append_many([Append("t", 1, [b"2"])])
        await until(lambda: b._receiving.rules(1).counts(1) == {"t": 2})
        await trio.kill("a")
        assert isinstance(answer, asyncio.Future)
        with pytest.raises(Unknown):
            await answer
        a = await trio.start("a")
        assert await take(a) == (2, 2), "it is on a quorum, so it stays"
        await append(a, b"3")
        assert await everything(a) == [b"1", b"2", b"3"]

    play(story)


def test_a_fenced_owner_takes_nothing_and_its_void_tail_is_skipped() -> None:
    async def story(trio: Trio) -> None:
        a, b, c = await begun(trio)
        await append(a, b"1")
        await caught_up(a, b, c, following=1)
        trio.isolate("a")
        (lost,) = await a.append_many([Append("t", 1, [b"lost"])])
        assert isinstance(lost, asyncio.Future)
        fenced: list[int] = []
        a.on_fenced.append(fenced.append)
        assert await take(b) == (2, 1)
        await append(b, b"2")
        trio.heal()
        with pytest.raises(Unknown):
            await asyncio.wait_for(lost, 10)
        assert fenced == [1]
        assert isinstance(await settled(a, Append("t", 1, [b"late"])), Refused)
        await caught_up(a, following=2)
        assert a.disk.counts(1)[1] == {"t": 2}, "the tail is still on the disk"
        for each in (a, b, c):
            await caught_up(each, following=2)
            assert await everything(each) == [b"1", b"2"]
        assert isinstance(await a.take("t", 1), Refused)

    play(story)


def test_a_partition_is_handed_over_without_a_take_over() -> None:
    async def story(trio: Trio) -> None:
        a, b, c = await begun(trio)
        await append(a, b"1")
        to = LiveMember("b", b.replica.disk, b.nonce, "", "", "")
        chain = await a.hand_over(1, to)
        assert not isinstance(chain, Refused)
        assert (chain.epoch, chain.last and chain.last.owner) == (2, "b")
        assert await take(b) == (2, 1), "the range that was opened is used as it is"
        await append(b, b"2")
        assert await take(b) == (3, 2), "a second time it is a take-over"
        await caught_up(a, b, c, following=2)
        assert await everything(a) == [b"1", b"2"]

    play(story)


def test_readers_never_see_beyond_the_mark() -> None:
    async def story(trio: Trio) -> None:
        a, b, _ = await begun(trio)
        seen: dict[str, list[bytes]] = {name: [] for name in NAMES}

        async def follow(name: str) -> None:
            async for entries in trio[name].stream("t", 1, Start.EARLIEST):
                seen[name] += [each.payload for each in entries]

        following = [asyncio.create_task(follow(name)) for name in NAMES]
        for number in range(20):
            await append(a, b"%d" % number)
        trio.isolate("a")
        await a.append_many([Append("t", 1, [b"never"])])
        await asyncio.sleep(1)
        assert seen["a"] == numbered(0, 20)
        await take(b)
        await append(b, b"20")
        await asyncio.sleep(CLUSTER_MARKS_MS * 2 / 1000)
        assert seen["b"] == seen["c"] == numbered(0, 21)
        trio.heal()
        await asyncio.sleep(2)
        assert seen["a"] == numbered(0, 21)
        for task in following:
            task.cancel()
        await asyncio.gather(*following, return_exceptions=True)

    play(story)


def test_a_read_ends_at_the_mark_where_the_disk_has_more() -> None:
    async def story(trio: Trio) -> None:
        a, b, _ = await begun(trio)
        await append(a, b"1")
        await caught_up(b, following=1)
        await trio.kill("c")
        trio.wire.hold("b", "a")
        await a.append_many([Append("t", 1, [b"2"])])
        await until(lambda: b._receiving.rules(1).counts(1) == {"t": 2})
        for each in (a, b):
            assert await everything(each) == [b"1"]
            assert each.offset_at("t", 1, 1 << 50) == 1
        trio.wire.go_on("b", "a")
        await caught_up(a, b, following=2)

    play(story)


def test_the_entry_that_begins_a_range_has_an_offset_and_is_not_read() -> None:
    async def story(trio: Trio) -> None:
        trio.topics["records"] = (3, None)
        a, b, c = await trio.start_all()
        assert await take(a, topic="records") == (1, 1)
        await append(a, b"1", topic="records")
        await append(a, b"x")
        await trio.kill("a")
        assert await take(c, topic="records") == (2, 3)
        outcome = await settled(c, Append("records", 1, [b"2"], 2, 3))
        assert (outcome.next, c.bounds("records", 1).next) == (4, 4)
        await until(lambda: b.bounds("records", 1).next == 4)
        for each in (b, c):
            assert await everything(each, topic="records") == [b"1", b"2"]
            assert await everything(each) == [b"x"]
        entries = await b.read("records", 1, 2)
        assert [each.offset for each in entries] == [3]

    play(story)


def test_queries_are_confirmed_by_a_quorum() -> None:
    async def story(trio: Trio) -> None:
        a, b, _ = await begun(trio)
        assert not await b.confirm(1)
        before = len(trio.wire.told)
        assert await asyncio.gather(*(a.confirm(1) for _ in range(10))) == [True] * 10
        assert len(trio.wire.told) == before, "calls, not tells"
        await append(a, b"1")
        trio.cut("a", "b")
        assert await a.confirm(1)
        trio.cut("a", "c")
        assert not await a.confirm(1), "nobody answers"
        await take(b)
        trio.heal()
        assert not await a.confirm(1)
        assert await b.confirm(1)

    play(story)


# --- disks ------------------------------------------------------------------------------------


def test_a_wiped_disk_is_another_replica_and_gets_everything_anew() -> None:
    async def story(trio: Trio) -> None:
        a, b, c = await begun(trio)
        for number in range(30):
            await append(a, b"%d" % number)
        former = c.replica
        await trio.kill("c")
        trio.wipe("c")
        c = await trio.start("c")
        assert c.replica != former
        assert not isinstance(await a.take_over(1), Refused), "the set changes by closing"
        assert c.replica in (a.chain(1).last or pytest.fail()).replicas
        await caught_up(c, following=30)
        assert await everything(c) == numbered(0, 30)
        await append(a, b"30")
        await caught_up(a, b, c, following=31)

    play(story)


def test_a_rolled_back_disk_does_not_answer_for_what_it_forgot() -> None:
    async def story(trio: Trio) -> None:
        a, _, c = await begun(trio)
        await append(a, b"0")
        await caught_up(c, following=1)
        former = c.replica
        await trio.kill("c")
        older = trio.copy_disk("c")
        c = await trio.start("c")
        await append(a, b"1")
        await trio.kill("c")
        trio.disks["c"] = older
        c = await trio.start("c")
        assert c.replica != former
        assert "journal.rolled-back-3" in trio.disks["c"].list("/m")
        assert c.disk.counts(1) == {}
        assert not isinstance(await a.take_over(1), Refused)
        await caught_up(c, following=2)
        assert await everything(c) == numbered(0, 2)

    play(story)


def test_a_full_disk_of_a_replica_holds_nobody_up() -> None:
    async def story(trio: Trio) -> None:
        a, _, c = await begun(trio)
        await append(a, b"0")
        disk: SimulatedDisk = trio.disks["c"]
        room, disk.capacity_bytes = disk.capacity_bytes, disk.capacity_bytes - disk.free_bytes("")
        for number in range(1, 60):
            await append(a, b"%d" % number, bytes(4096))
        assert a.lags()["c", 1] > 0
        calls = trio.wire.calls
        for number in range(20):
            await append(a, b"%d" % number)
            await asyncio.sleep(1)
        assert trio.wire.calls < calls + 60, "it asks from time to time"
        disk.capacity_bytes = room
        await caught_up(c, following=139)
        await until(lambda: a.lags()["c", 1] == 0)
        assert (await everything(c))[::2][:3] == [b"0", bytes(4096), bytes(4096)]

    play(story)


def test_a_replica_takes_what_its_full_disk_refused_once_there_is_room() -> None:
    async def story(trio: Trio) -> None:
        a, _, _ = await begun(trio)
        await append(a, b"0")
        await trio.kill("b")
        disk: SimulatedDisk = trio.disks["c"]
        disk.fail_write_at = disk.operations + 1
        outcome = await asyncio.wait_for(settled(a, Append("t", 1, [b"1"])), 10)
        assert outcome.next == 2, "nobody said anything more to it"

    play(story)


def test_a_full_disk_of_the_owner_is_filled_from_the_replicas_when_there_is_room() -> None:
    async def story(trio: Trio) -> None:
        a, _, c = await begun(trio)
        await append(a, b"0")
        disk: SimulatedDisk = trio.disks["a"]
        room, disk.capacity_bytes = disk.capacity_bytes, disk.capacity_bytes - disk.free_bytes("")
        for number in range(1, 60):
            await append(a, b"%d" % number, bytes(4096))  # the two replicas are a quorum
        assert a.lags()["a", 1] > 0
        assert len(await everything(a)) == 119, "what is not here is read from another member"
        disk.capacity_bytes = room
        await until(lambda: a.lags()["a", 1] == 0)
        assert a.is_caught_up(1)
        await trio.kill("a")
        await take(c)
        a = await trio.start("a")
        await caught_up(a, following=119)

    play(story)


def test_a_disk_that_fails_takes_no_part_any_more() -> None:
    async def story(trio: Trio) -> None:
        a, b, c = await begun(trio)
        await append(a, b"0")
        disk: SimulatedDisk = trio.disks["c"]
        disk.fail_sync_at = disk.syncs + 1
        await append(a, b"1")
        await until(lambda: c.disk.failed is not None)
        await append(a, b"2")
        await trio.kill("a")
        taken = await b.take("t", 1)
        assert isinstance(taken, Refused), "one disk is not a quorum"

    play(story)


# --- snapshots --------------------------------------------------------------------------------


def test_a_member_behind_a_cut_log_says_so_and_goes_on_behind_a_snapshot() -> None:
    async def story(trio: Trio) -> None:
        a, b, c = await begun(trio)
        await append(a, *numbered(0, 10))
        await caught_up(b, c, following=10)
        await trio.kill("c")
        await append(a, *numbered(10, 20))
        await caught_up(b, following=20)
        for each in (a, b):
            each.discard("t", 1, 15)
        c = await trio.start("c")
        cut: list[int] = []
        c.on_cut.append(cut.append)
        await until(lambda: cut == [1])
        with pytest.raises(NotFound):
            await c.read("t", 1, 12)
        await c.begin_at(1, {"t": 15})
        await caught_up(c, following=20)
        assert c.bounds("t", 1) == (15, 20)
        assert await everything(c) == numbered(15, 20)
        await append(a, b"20")
        await caught_up(c, following=21)
        await until(lambda: a.lags()["c", 1] == 0)
        await trio.kill("c")
        c = await trio.start("c")
        await caught_up(c, following=21)
        assert await everything(c) == numbered(15, 21)

    play(story)


def test_a_snapshot_that_comes_while_others_are_asked_for_the_log_is_enough() -> None:
    async def story(trio: Trio) -> None:
        a, b, c = await begun(trio)
        await append(a, *numbered(0, 10))
        await caught_up(b, c, following=10)
        trio.isolate("c")
        await append(a, *numbered(10, 20))
        await caught_up(b, following=20)
        for each in (a, b):
            each.discard("t", 1, 15)
        peers = c._fetching._peers
        call, asked = peers.call, list[str]()

        async def call_and_begin(member: str, message: Any) -> Any:
            answer = await call(member, message)
            if isinstance(message, Survey) and not asked:
                asked.append(member)
                await c.begin_at(1, {"t": 15})
            return answer

        peers.call = call_and_begin
        trio.heal()
        await caught_up(c, following=20)
        assert asked, "the snapshot came while others were asked"
        assert not c._fetching.cut, "a second snapshot would never come"
        await append(a, b"20")
        await caught_up(c, following=21)

    play(story)


# --- power ------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", Loss)
@pytest.mark.parametrize("name", ["a", "b"])
def test_power_loss_at_every_operation_of_a_disk_loses_nothing_acknowledged(
    name: str, loss: Loss
) -> None:
    """A small story with a take-over, cut short at each operation of one disk in turn."""

    async def story(trio: Trio, operations: int) -> bool:
        acknowledged: list[bytes] = []
        await trio.start_all()
        disk: SimulatedDisk = trio.disks[name]
        disk.crash_at = disk.operations + operations
        owner = "a"
        for number in range(12):
            if number in (0, 4, 8):
                owner = NAMES[number // 4]
                if name in trio.wire.members and _is_down(disk):
                    break
                if isinstance(await _moved(trio, owner), Refused):
                    break
            answer = asyncio.ensure_future(settled(trio[owner], Append("t", 1, [b"%d" % number])))
            try:
                outcome = await asyncio.wait_for(answer, 2)
            except (Unknown, TimeoutError):
                break
            except Exception:
                break
            if isinstance(outcome, Refused):
                break
            acknowledged.append(b"%d" % number)
        is_over = not _is_down(disk)
        if name in trio.wire.members:
            await trio.kill(name, loss, seed=operations)
        await trio.start(name)
        for other in NAMES:
            if other != name:
                await trio.kill(other)
        await trio.start("c")
        taken = await _moved(trio, "c")
        assert not isinstance(taken, Refused), taken
        found = await everything(trio["c"])
        assert found[: len(acknowledged)] == acknowledged
        assert found == numbered(0, len(found)), "in order, nothing twice"
        return is_over

    operations, finished = 0, list[bool]()

    async def one(trio: Trio) -> None:
        finished.append(await story(trio, operations))

    while not finished or not finished[-1]:
        operations += 3
        play(one)
    assert operations > 20


def _is_down(disk: SimulatedDisk) -> bool:
    return disk._crashed


async def _moved(trio: Trio, name: str) -> object:
    try:
        return await asyncio.wait_for(trio[name].take_over(1, is_drain=True), 30)
    except Exception as error:
        return Refused(1, 0, 0, str(error))
