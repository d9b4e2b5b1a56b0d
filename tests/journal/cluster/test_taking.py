"""Take-overs, planned moves and changes of sets on virtual time; links and the store fail."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.journal.cluster.staged import TOPIC, Stage
from tests.journal.cluster.trio import Trio, append, play, take

from holdfast.errors import NotFound
from holdfast.journal.cluster.chain import pruned
from holdfast.journal.cluster.messages import Copy, Fence
from holdfast.journal.cluster.taking import NotTaken
from holdfast.limits import TAKE_OVER_HEAL_MS, TAKE_OVER_MS_MAX
from holdfast.sequence.api import Chain
from holdfast.sequence.memory import MemoryCoordination, WriteFate
from holdfast.testing.loop import VirtualClock, run

Story = Callable[[Stage], Awaitable[Any]]


def played(story: Story) -> Stage:
    clock = VirtualClock()
    stage = Stage(clock)
    run(story(stage), clock)  # type: ignore[arg-type]
    return stage


def taken(outcome: Chain | NotTaken) -> Chain:
    assert isinstance(outcome, Chain), outcome
    return outcome


def not_taken(outcome: Chain | NotTaken) -> str:
    assert isinstance(outcome, NotTaken), outcome
    return outcome.reason


def test_the_first_range_of_a_partition_needs_nobody() -> None:
    async def story(stage: Stage) -> None:
        stage.down = set("bc")
        chain = taken(await stage.taking("a").take_over(1))
        assert (chain.epoch, chain.ranges[0].nonce, chain.ranges[0].starts) == (1, "a-1", {})
        assert stage.chains[-1] == chain

    played(story)


def test_a_dead_owners_tail_is_copied_to_a_quorum_before_the_range_is_closed() -> None:
    async def story(stage: Stage) -> None:
        first = taken(await stage.taking("a").take_over(1))
        stage.appended(first, "abcde", on="ab")
        stage.appended(first, "abc", on="c")
        stage.down = {"a"}
        chain = taken(await stage.taking("c").take_over(1))
        assert chain.ranges[-1].starts == {TOPIC: 5}
        assert stage.log(chain, "b") == stage.log(chain, "c") == "abcde"
        assert [stage.disks[each].rules.promise for each in "abc"] == [1, 2, 2]

    played(story)


def test_a_taker_outside_of_the_old_set_carries_the_tail_from_one_disk_to_another() -> None:
    async def story(stage: Stage) -> None:
        first = taken(await stage.taking("a").take_over(1))
        stage.appended(first, "abcde", on="ab")
        stage.down, stage.set_of_next = {"a"}, stage.replicas("bcd")
        chain = taken(await stage.taking("d").take_over(1))
        assert stage.log(chain, "c") == "abcde"
        assert stage.disks["d"].logs == {}, "the set of the old range is fenced and copied to"
        assert chain.ranges[-1].replicas == stage.replicas("bcd")

    played(story)


def test_a_disk_that_lacks_what_is_only_in_snapshots_is_told_so_and_asked_again() -> None:
    async def story(stage: Stage) -> None:
        first = taken(await stage.taking("a").take_over(1))
        stage.appended(first, "abcde", on="ab")
        stage.disks["b"].cut(4)
        stage.down = {"a"}
        under_way = asyncio.ensure_future(stage.taking("b").take_over(1))
        await asyncio.sleep(1)
        assert not under_way.done()
        assert stage.disks["c"].told_of_cut == {TOPIC: 4}
        stage.disks["c"].rules.jump(1, TOPIC, 4)  # its snapshot has come
        stage.disks["c"].logs[1] = [b""] * 4
        assert taken(await under_way).ranges[-1].starts == {TOPIC: 5}
        assert stage.disks["c"].logs[1][4:] == [b"e"]

    played(story)


def test_answers_that_are_lost_are_asked_for_again() -> None:
    async def story(stage: Stage) -> None:
        first = taken(await stage.taking("a").take_over(1))
        stage.appended(first, "abcde", on="ab")
        stage.down = {"a"}
        lost: list[type] = []

        def loses(member: str, message: object) -> bool:
            lost.append(type(message))
            return lost.count(type(message)) <= 3

        stage.loses_answer = loses
        chain = taken(await stage.taking("b").take_over(1))
        assert stage.log(chain, "c") == "abcde"
        assert {Fence, Copy} <= set(lost)

    played(story)


def test_without_a_quorum_nothing_is_closed_and_it_can_be_asked_again() -> None:
    async def story(stage: Stage) -> None:
        taken(await stage.taking("a").take_over(1))
        stage.down = set("ac")
        taking, began = stage.taking("b"), stage.clock.monotonic()
        assert "0 of 3 disks have promised" in not_taken(await taking.take_over(1))
        assert stage.clock.monotonic() - began == pytest.approx(TAKE_OVER_MS_MAX / 1_000, rel=0.1)
        assert (await stage.chain()).epoch == 1
        stage.down = {"a"}
        assert taken(await taking.take_over(1)).epoch == 2

    played(story)


def test_a_disk_that_comes_back_during_a_take_over_makes_the_quorum() -> None:
    async def story(stage: Stage) -> None:
        first = taken(await stage.taking("a").take_over(1))
        stage.appended(first, "ab", on="ab")
        stage.down = set("ac")
        under_way = asyncio.ensure_future(stage.taking("b").take_over(1))
        await asyncio.sleep(1)
        stage.down = {"a"}
        chain = taken(await under_way)
        assert stage.log(chain, "c") == "ab"

    played(story)


def test_an_owner_that_is_heard_keeps_its_partition_unless_it_agrees() -> None:
    async def story(stage: Stage) -> None:
        taken(await stage.taking("a").take_over(1))
        stage.heard_by = set("abc")
        reason = not_taken(await stage.taking("b").take_over(1))
        assert reason == "; ".join(f"{each} still hears the owner" for each in "ac")
        assert {stage.disks[each].rules.promise for each in "abc"} == {0}
        assert taken(await stage.taking("b").take_over(1, is_drain=True)).epoch == 2

    played(story)


def test_a_range_that_is_opened_for_a_member_which_waits_for_promises_is_used_at_once() -> None:
    async def story(stage: Stage) -> None:
        owner, other = stage.taking("a"), stage.taking("b")
        ours = stage.appended(taken(await owner.take_over(1)), "x", on="abc")
        stage.heard_by = set("abc")
        waiting = asyncio.create_task(other.take_over(1))
        await asyncio.sleep(0.2)
        assert not waiting.done()  # the owner is heard
        began = stage.clock.monotonic()
        chain = taken(await owner.hand_over(1, ours, stage.live("b"), stage.replicas("abc")))
        other.heard(chain)
        assert await waiting == chain
        assert stage.clock.monotonic() - began < 0.1

    played(story)


def test_a_member_that_hears_nobody_does_not_even_promise_itself() -> None:
    async def story(stage: Stage) -> None:
        taken(await stage.taking("a").take_over(1))
        stage.heard_by = set("ac")  # b wakes up from a pause: its connections are gone
        not_taken(await stage.taking("b").take_over(1))
        assert stage.disks["b"].rules.promise == 0

    played(story)


def test_an_owner_that_was_started_again_takes_over_from_itself() -> None:
    async def story(stage: Stage) -> None:
        taken(await stage.taking("a", start=1).take_over(1))
        stage.heard_by = set("abc")
        chain = taken(await stage.taking("a", start=2).take_over(1))
        assert (chain.epoch, chain.ranges[-1].nonce) == (2, "a-2")

    played(story)


def test_an_open_range_of_this_start_is_used_if_it_was_not_used_before() -> None:
    async def story(stage: Stage) -> None:
        taking = stage.taking("a")
        first = taken(await taking.take_over(1))
        assert await taking.take_over(1) == first
        assert taken(await taking.take_over(1, used=1)).epoch == 2

    played(story)


def test_of_two_takers_one_wins_and_the_other_one_knows() -> None:
    async def story(stage: Stage) -> None:
        first = taken(await stage.taking("a").take_over(1))
        stage.appended(first, "abc", on="ab")
        stage.down = {"a"}
        takings = [stage.taking(each) for each in "bc"]
        outcomes = await asyncio.gather(*(each.take_over(1) for each in takings))
        won = [each for each in outcomes if isinstance(each, Chain)]
        beaten = [each for each in outcomes if isinstance(each, NotTaken)]
        assert (len(won), len(beaten)) == (1, 1)
        assert beaten[0].chain == won[0]
        assert (await stage.chain()).epoch == 2

    played(story)


@pytest.mark.parametrize("fate", [WriteFate.LOST, WriteFate.DROPPED, WriteFate.LATE])
def test_an_unknown_outcome_is_read_back_before_anything_else(fate: WriteFate) -> None:
    async def story(stage: Stage) -> None:
        fates = iter([fate, fate])
        stage.store.fate = lambda member, write: next(fates, WriteFate.ANSWERED)
        chain = taken(await stage.taking("a").take_over(1))
        assert chain == await stage.chain()
        while stage.store.late:
            assert not stage.store.deliver().is_done, "the guard holds once"
        assert chain == await stage.chain()

    played(story)


def test_a_late_write_of_a_taker_that_was_beaten_does_not_land() -> None:
    async def story(stage: Stage) -> None:
        taken(await stage.taking("a").take_over(1))
        stage.down = {"a"}
        stage.store.fate = lambda member, write: (
            WriteFate.LATE if member == "b" else WriteFate.ANSWERED
        )
        slow = asyncio.ensure_future(stage.taking("b").take_over(1))
        await asyncio.sleep(0.1)
        assert stage.store.late
        chain = taken(await stage.taking("c").take_over(1))
        while stage.store.late:
            stage.store.deliver()
        assert "Another member" in not_taken(await slow)
        assert await stage.chain() == chain

    played(story)


def test_while_the_store_is_away_nobody_fences() -> None:
    async def story(stage: Stage) -> None:
        taken(await stage.taking("a").take_over(1))
        stage.down = {"a"}
        taking = stage.taking("b")
        stage.store.cut_off()
        assert "not reached" in not_taken(await taking.take_over(1))
        assert sum(each.fences for each in stage.disks.values()) == 0
        stage.store.reconnect()
        assert taken(await taking.take_over(1)).epoch == 2

    played(story)


def test_a_store_that_goes_away_at_the_write_is_waited_for() -> None:
    async def story(stage: Stage) -> None:
        taken(await stage.taking("a").take_over(1))
        stage.down = {"a"}

        def lost(member: str, write: object) -> WriteFate:
            stage.store.cut_off()
            return WriteFate.LOST

        stage.store.fate = lost
        under_way = asyncio.ensure_future(stage.taking("b").take_over(1))
        await asyncio.sleep(30)
        assert not under_way.done(), "it may have been written"
        stage.store.fate = lambda member, write: WriteFate.ANSWERED
        stage.store.reconnect()
        chain = taken(await under_way)
        assert (chain.epoch, chain.ranges[-1].nonce) == (2, "b-1")

    played(story)


@pytest.mark.parametrize("epochs", [1, 2])
def test_a_store_that_was_put_back_to_an_older_copy_stops_take_overs(epochs: int) -> None:
    async def story(stage: Stage) -> None:
        first = taken(await stage.taking("a").take_over(1))
        stage.appended(first, "a", on="abc")
        backup = stage.store.save()
        for name in "bc"[:epochs]:
            chain = taken(await stage.taking(name).take_over(1))
            stage.appended(chain, "x", on="abc")
        stage.store.restore(backup)
        reason = not_taken(await stage.taking("a", start=2).take_over(1))
        assert "put back to an older copy" in reason
        assert stage.alarms == [reason]
        assert (await stage.chain()).epoch == 1

    played(story)


def test_a_store_that_was_emptied_is_noticed_by_what_disks_have() -> None:
    async def story(stage: Stage) -> None:
        empty = stage.store.save()
        first = taken(await stage.taking("a").take_over(1))
        stage.appended(first, "a", on="bc")
        stage.store.restore(empty)
        assert "put back" in not_taken(await stage.taking("d").take_over(1))
        assert stage.alarms

    played(story)


def test_a_fence_of_a_member_that_was_removed_is_an_error_that_ends_the_take_over() -> None:
    async def story(stage: Stage) -> None:
        taken(await stage.taking("a").take_over(1))
        stage.registered.discard("b")
        reason = not_taken(await stage.taking("b").take_over(1))
        assert "b was removed" in reason
        assert (await stage.chain()).epoch == 1

    played(story)


# --- healing ---


def test_an_owner_that_was_fenced_and_not_replaced_takes_over_itself_after_a_while() -> None:
    async def story(stage: Stage) -> None:
        taking = stage.taking("a")
        first = taken(await taking.take_over(1))
        stage.appended(first, "abc", on="abc")
        for name in "bc":  # a taker that died after its fences
            fence = Fence(f"disk of {name}", 1, 1, 2)
            await stage.disks[name].called("b", fence)
        stage.heard_by, began = set("abc"), stage.clock.monotonic()
        chain = taken(await taking.heal(1, epoch=1, promise=2))
        assert stage.clock.monotonic() - began >= TAKE_OVER_HEAL_MS / 1_000
        assert (chain.epoch, chain.ranges[-1].nonce) == (2, "a-1")
        assert chain.ranges[-1].starts == {TOPIC: 3}

    played(story)


def test_an_owner_that_was_fenced_leaves_its_partition_to_who_took_it() -> None:
    async def story(stage: Stage) -> None:
        taking = stage.taking("a")
        taken(await taking.take_over(1))
        healing = asyncio.ensure_future(taking.heal(1, epoch=1, promise=2))
        chain = taken(await stage.taking("b").take_over(1))
        outcome = await healing
        assert isinstance(outcome, NotTaken) and outcome.chain == chain

    played(story)


def test_an_owner_that_is_fenced_beyond_the_chain_raises_an_alarm() -> None:
    async def story(stage: Stage) -> None:
        taking = stage.taking("a")
        taken(await taking.take_over(1))
        assert "put back" in not_taken(await taking.heal(1, epoch=1, promise=3))
        assert stage.alarms

    played(story)


# --- planned moves and sets ---


def test_a_planned_move_fences_nobody() -> None:
    async def story(stage: Stage) -> None:
        taking, target = stage.taking("a"), stage.taking("b")
        first = taken(await taking.take_over(1))
        ours = stage.appended(first, "abc", on="abc")
        chain = taken(await taking.hand_over(1, ours, stage.live("b"), stage.replicas("abc")))
        assert (chain.epoch, chain.ranges[-1].owner) == (2, "b")
        assert ours.append(TOPIC, 1) is None
        assert await target.take_over(1) == chain, "it was opened for this start"
        assert sum(each.fences for each in stage.disks.values()) == 0

    played(story)


def test_a_move_of_an_owner_that_somebody_fences_meanwhile_is_given_up_at_once() -> None:
    async def story(stage: Stage) -> None:
        taking = stage.taking("a")
        ours = stage.appended(taken(await taking.take_over(1)), "abc", on="a")
        under_way = asyncio.ensure_future(
            taking.hand_over(1, ours, stage.live("b"), stage.replicas("abc"))
        )
        await asyncio.sleep(0.5)
        assert not under_way.done()
        began = stage.clock.monotonic()
        ours.fenced(2)
        not_taken(await under_way)
        assert stage.clock.monotonic() - began < 0.5

    played(story)


def test_what_is_not_on_a_quorum_is_not_handed_over() -> None:
    async def story(stage: Stage) -> None:
        taking = stage.taking("a")
        first = taken(await taking.take_over(1))
        ours = stage.appended(first, "abc", on="a")
        under_way = asyncio.ensure_future(
            taking.hand_over(1, ours, stage.live("b"), stage.replicas("abc"))
        )
        await asyncio.sleep(1)
        assert not under_way.done()
        ours.reported(stage.disks["b"].replica, TOPIC, 3)
        assert taken(await under_way).ranges[-1].starts == {TOPIC: 3}
        ours = stage.appended(await stage.chain(), "x", on="b")
        reason = not_taken(
            await stage.taking("b").hand_over(1, ours, stage.live("a"), stage.replicas("abc"))
        )
        assert "not all that was sent" in reason.lower()

    played(story)


def test_the_set_of_closed_ranges_follows_when_all_disks_of_the_new_set_have_them() -> None:
    async def story(stage: Stage) -> None:
        taking = stage.taking("a")
        first = taken(await taking.take_over(1))
        ours = stage.appended(first, "abc", on="abc")
        wanted = stage.replicas("abd")
        chain = taken(await taking.hand_over(1, ours, stage.live("a"), wanted))
        settling = stage.settling("a")
        assert await settling.resettle(1) == chain, "the new disk has nothing yet"
        stage.disks["d"].rules.fill(1, TOPIC, 0, 3, end=3)
        stage.disks["d"].rules.stored(1, TOPIC, 3)
        stage.down = {"b"}
        assert await settling.resettle(1) == chain, "not all of them answer"
        stage.down = set()
        settled = await settling.resettle(1)
        assert [each.replicas for each in settled.ranges] == [wanted, wanted]
        assert await settling.resettle(1) == settled == await stage.chain()

    played(story)


def test_ranges_behind_the_snapshots_of_a_quorum_leave_the_chain() -> None:
    async def story(stage: Stage) -> None:
        taking = stage.taking("a")
        chain = taken(await taking.take_over(1))
        for entries in ("abc", "de", "f"):
            ours = stage.appended(chain, entries, on="abc")
            chain = taken(await taking.hand_over(1, ours, stage.live("a"), stage.replicas("abc")))
        settling = stage.settling("a")
        assert (await settling.prune(1)).ranges == chain.ranges
        for name, needed in zip("abc", (6, 5, 5), strict=True):
            stage.disks[name].needed = needed
        pruned = await settling.prune(1)
        assert [each.epoch for each in pruned.ranges] == [3, 4]
        assert pruned == await stage.chain() == stage.chains[-1]

    played(story)


def test_a_move_goes_on_behind_a_chain_that_was_pruned_meanwhile() -> None:
    async def story(stage: Stage) -> None:
        taking = stage.taking("a")
        chain = taken(await taking.take_over(1))
        ours = stage.appended(chain, "abc", on="abc")
        chain = taken(await taking.hand_over(1, ours, stage.live("a"), stage.replicas("abc")))
        ours = stage.appended(chain, "de", on="abc")
        for disk in stage.disks.values():
            disk.needed = 3
        settling, read = stage.settling("b"), stage.coordinations["a"].chain

        async def chain_that_is_pruned_after(partition: int) -> Chain:
            found = await read(partition)
            await settling.prune(1)
            return found

        stage.coordinations["a"].chain = chain_that_is_pruned_after
        moved = taken(await taking.hand_over(1, ours, stage.live("b"), stage.replicas("abc")))
        assert [each.epoch for each in moved.ranges] == [2, 3]

    played(story)


# --- with whole journals ---


def test_two_takes_at_once_begin_two_ranges() -> None:
    async def story(trio: Trio) -> None:
        a, _, _ = await trio.start_all()
        both = await asyncio.gather(a.take("t", 1), a.take("t", 1))
        assert [each.epoch for each in both] == [1, 2], "one range is never numbered twice"

    play(story)


def test_what_left_the_chain_cannot_be_read_any_more() -> None:
    async def story(trio: Trio) -> None:
        a, _, _ = await trio.start_all()
        await take(a)
        await append(a, b"1", b"2", b"3")
        await take(a)
        shorter = pruned(a.chain(1), {"t": 3})
        assert [each.epoch for each in shorter.ranges] == [2]
        written = await MemoryCoordination(trio.store, "a").replace(shorter)
        assert isinstance(written, Chain)
        a.learned(written)
        assert a.bounds("t", 1) == (3, 3)
        with pytest.raises(NotFound):
            await a.read("t", 1, 0)

    play(story)
