"""Who subscribes, what is distributed, and how publishing waits for those that are behind."""

import asyncio

import pytest
from publishing import Setting, discovery, package, setting, status

from holdfast.content.messages import NOWHERE, PackageDistributed, decode_event
from holdfast.content.publisher.offset_map import OffsetMap
from holdfast.content.publisher.pressure import delay_ms
from holdfast.content.publisher.views import QueueState
from holdfast.content.topics import ContentTopic
from holdfast.errors import InvalidState
from holdfast.limits import (
    CONTENT_DELAY_MS_MAX,
    CONTENT_REMEMBER_MS,
    CONTENT_SUBSCRIBER_KEPT_MS,
)
from holdfast.testing import run


async def distributed(there: Setting) -> list[tuple[str, int]]:
    """All events on the log, in order."""
    found: list[tuple[str, int]] = []
    offset = 0
    while True:
        some = await there.service.read(ContentTopic.EVENTS, 1, offset, bytes_max=10**6, wait_ms=0)
        for entry in some.entries:
            event = decode_event(entry.payload)
            if isinstance(event, PackageDistributed):
                found.append((event.publisher, event.offset))
        offset = some.next
        if offset >= some.end:
            return found


def test_a_silent_subscriber_is_dead_after_three_intervals_and_forgotten_after_its_time() -> None:
    async def story() -> None:
        there = setting()
        await there.publish(1)
        await there.service.announce(discovery("a"))
        await asyncio.sleep(29)
        assert (await there.service.subscribers("site"))[0].state is QueueState.RUNNING
        await asyncio.sleep(2)
        assert (await there.service.farm("site")).dead == ["a"]
        await asyncio.sleep(CONTENT_SUBSCRIBER_KEPT_MS / 1_000)
        assert await there.service.subscribers("site") == []
        assert await (await there.restart()).subscribers("site") == []
        await there.service.stop()

    run(story())


def test_a_publisher_is_forgotten_with_its_last_package_and_its_last_subscriber() -> None:
    async def story() -> None:
        there = setting()
        await there.publish(3, "gone")
        await there.publish(3, "awaited")
        await there.service.announce(discovery("a", publisher="awaited"))
        offsets = await there.publish(1)
        there.journal.discard(ContentTopic.PACKAGES.topic, 1, offsets[0])
        await asyncio.sleep(120)
        assert await there.service.publishers() == ["awaited", "site"]
        assert await (await there.restart(killed=True)).publishers() == ["awaited", "site"]
        assert (await there.service.publish(package(9, "awaited"))).number == 4
        await there.service.stop()

    run(story())


def test_queues_can_be_looked_at_while_subscribers_come() -> None:
    async def story() -> None:
        there = setting()
        service = there.service
        await there.publish(200)
        running = await service.running()
        running.state.publishers["site"].map = OffsetMap(running.packages.end)  # all is dropped
        for number in range(5):
            await service.announce(discovery(f"a-{number}", number))
        looking = asyncio.create_task(service.queues("site"))
        for number in range(20):
            await asyncio.sleep(0)
            await service.announce(discovery(f"b-{number}"))
        assert len(await looking) >= 5
        await service.stop()

    run(story())


def test_who_was_known_before_a_restart_has_three_intervals_to_say_something() -> None:
    async def story() -> None:
        there = setting()
        await there.publish(1)
        await there.service.announce(discovery("a"))
        await there.service.stop()
        await asyncio.sleep(3_600)
        service = await there.restart(killed=True)
        assert (await service.subscribers("site"))[0].state is QueueState.RUNNING
        await asyncio.sleep(31)
        assert (await service.subscribers("site"))[0].state is QueueState.DEAD
        await service.stop()

    run(story())


def test_two_stores_under_one_name_are_seen() -> None:
    async def story() -> None:
        there = setting()
        await there.service.announce(discovery("a", store="one"))
        await there.service.announce(discovery("a", store="two"))
        assert not (await there.service.subscribers("site"))[0].is_doubled, "it was replaced"
        await there.service.announce(discovery("a", store="one"))
        assert (await there.service.subscribers("site"))[0].is_doubled
        (warning,) = there.service.warnings()
        assert "another name" in warning
        await asyncio.sleep(31)
        assert not (await there.service.subscribers("site"))[0].is_doubled
        await there.service.stop()

    run(story())


def test_a_subscriber_that_is_gone_for_good_can_be_forgotten() -> None:
    async def story() -> None:
        there = setting()
        offsets = await there.publish(2)
        await there.service.announce(discovery("gone"))
        await there.service.announce(discovery("here", offsets[-1], 2))
        with pytest.raises(InvalidState, match="stop it first"):
            await there.service.forget("gone")
        await asyncio.sleep(31)
        assert await distributed(there) == []
        await there.service.forget("gone")
        await asyncio.sleep(1)
        assert await distributed(there) == [("site", each) for each in offsets]
        service = await there.restart(killed=True)
        assert [each.name for each in await service.subscribers("site")] == ["here"]
        await service.stop()

    run(story())


def test_a_package_is_distributed_when_every_subscriber_has_it_and_said_once() -> None:
    async def story() -> None:
        there = setting()
        offsets = await there.publish(6)
        await there.service.announce(discovery("a", offsets[4], 5))
        await there.service.announce(discovery("b", offsets[1], 2))
        await asyncio.sleep(1)
        assert await distributed(there) == [("site", each) for each in offsets[:2]]
        await there.service.announce(discovery("late"))  # what was said stays said
        await there.service.announce(discovery("b", offsets[5], 6))
        await asyncio.sleep(1)
        assert len(await distributed(there)) == 2
        await there.service.announce(discovery("late", offsets[5], 6))
        await asyncio.sleep(1)
        assert await distributed(there) == [("site", each) for each in offsets[:5]]
        events, after = await there.service.events("site", limit=2)
        assert [each.offset for each in events] == offsets[:2]
        assert events[1].paths == ["/pages/2"]
        more, after = await there.service.events("site", after)
        assert [each.offset for each in more] == offsets[2:5]
        waiting = asyncio.create_task(there.service.events("site", after, wait_ms=60_000))
        await there.service.announce(discovery("a", offsets[5], 6))
        ((last,), _) = await waiting
        assert last.offset == offsets[5]
        await there.service.stop()

    run(story())


@pytest.mark.parametrize("killed_every", [1, 3])
def test_events_survive_restarts_each_one_once(killed_every: int) -> None:
    async def story() -> None:
        there = setting()
        offsets: list[int] = []
        shops: list[int] = []
        for round_ in range(8):
            offsets += await there.publish(20, first=100 * round_)
            shops += await there.publish(3, "shop", first=100 * round_)
            await there.service.announce(
                discovery("a", offsets[-1 - round_ % 5], len(offsets) - round_ % 5)
            )
            await there.service.announce(discovery("s", shops[-1], len(shops), publisher="shop"))
            await asyncio.sleep([0, 0.0001, 0.3][round_ % 3])  # events are written, or not yet
            await there.restart(killed=round_ % killed_every == 0)
        await there.service.announce(discovery("a", offsets[-1], len(offsets)))
        await there.service.announce(discovery("s", shops[-1], len(shops), publisher="shop"))
        await asyncio.sleep(1)
        found = await distributed(there)
        assert [at for name, at in found if name == "site"] == offsets
        assert [at for name, at in found if name == "shop"] == shops
        await there.service.stop()

    run(story())


def test_the_delay_rises_from_a_backlog_of_1000_to_20_seconds_at_2000() -> None:
    assert [delay_ms(each) for each in (0, 999, 1_000)] == [0, 0, 0]
    delays = [delay_ms(each) for each in range(1_000, 2_001)]
    assert delays == [20 * each for each in range(1_001)]
    assert delay_ms(1_000_000) == CONTENT_DELAY_MS_MAX


def test_publishing_waits_for_a_subscriber_that_falls_behind_and_no_longer_when_it_catches_up() -> (
    None
):
    async def story() -> None:
        there = setting()
        offsets = await there.publish(1_000)
        await there.service.announce(discovery("a", offsets[0], 1))
        assert (await there.service.publish(package(5_000))).waited_ms == 0
        await there.publish(500, first=6_000)
        await asyncio.sleep(1)
        assert (await there.service.farm("site")).delay_ms == 10_000
        published = await there.service.publish(package(7_000))
        assert published.waited_ms == 10_000
        again = asyncio.create_task(there.service.publish(package(7_001)))
        await asyncio.sleep(2)
        assert not again.done()
        await there.service.announce(discovery("a", offsets[900], 901))
        assert (await again).waited_ms <= 2_200, "it does not wait longer than it must"
        await there.service.stop()

    run(story())


def test_a_stalled_blocked_or_far_subscriber_slows_nobody_down() -> None:
    async def story() -> None:
        there = setting()
        offsets = await there.publish(3_000)
        last = offsets[-1]
        await there.service.announce(discovery("far", offsets[5], 6))
        await there.service.announce(discovery("blocked", last, 3_000))
        await there.service.announce(discovery("stalled", last, 3_000))
        await there.publish(990, first=10_000)
        await there.service.announce(discovery("blocked", last, 3_000, retries=3))
        for number in range(100):
            assert (await there.service.publish(package(20_000 + number))).waited_ms == 0
        await there.service.stop()

    run(story())


def test_a_slow_subscriber_that_stops_to_move_slows_publishing_for_half_a_minute_at_most() -> None:
    async def story() -> None:
        there = setting()
        offsets = await there.publish(1_000)
        await there.service.announce(discovery("slow", offsets[0], 1))
        await there.publish(300, first=10_000)
        await there.service.announce(discovery("slow", offsets[1], 2))
        await asyncio.sleep(1)
        assert (await there.service.farm("site")).delay_ms == 20 * 298
        for _ in range(4):  # it is there, and does nothing
            await asyncio.sleep(8)
            await there.service.announce(discovery("slow", offsets[1], 2))
        assert (await there.service.publish(package(9_001))).waited_ms == 0
        await there.service.stop()

    run(story())


def test_everything_known_is_rebuilt_after_a_kill_and_across_retention() -> None:
    async def seen(there: Setting) -> list[object]:
        service = there.service
        return [
            await service.publishers(),
            [await service.subscribers(name) for name in ("site", "shop")],
            [await service.farm(name) for name in ("site", "shop")],
            [await service.queues(name) for name in ("site", "shop")],
            await service.errors("site", "a"),
            await service.snapshots(),
            await distributed(there),
            (await service.running()).state.last_numbers(),
        ]

    async def story() -> None:
        there = setting()
        offsets = await there.publish(40)
        shops = await there.publish(30, "shop")
        await there.service.announce(discovery("a", offsets[30], 31, retries=2, reason="full"))
        await there.service.announce(discovery("b", offsets[20], 21, editable=True))
        await there.service.announce(discovery("silent", NOWHERE, 0, publisher="shop"))
        await there.service.report([status("a", offsets[3])])
        await there.service.clear("site", "b", offsets[25])
        await asyncio.sleep(1)
        for hours in (0, 2, 100):
            await asyncio.sleep(3_600 * hours + CONTENT_REMEMBER_MS / 1_000)
            await there.service.announce(discovery("a", offsets[30], 31, retries=2, reason="full"))
            await asyncio.sleep(1)
            await there.retain()
            before = await seen(there)
            service = await there.restart(killed=True)
            running = await service.running()
            for name in ("a", "b", "silent"):  # the node has listened anew
                running.state.topology.known[name].noticed_ms = 0
            assert await seen(there) == before
        assert len(shops) == 30
        await there.service.stop()

    run(story())
