"""Queues, error queues and commands: what the node shows of subscribers, and asks of them."""

import asyncio

import pytest
from publishing import Setting, discovery, package, setting, status

from holdfast.content.messages import (
    ClearQueue,
    ImportOutcome,
    PackageAction,
    RemovePackage,
    RetryPackage,
    SnapshotTaken,
    SubscriberProgress,
    TakeSnapshot,
    decode_command,
)
from holdfast.content.publisher.views import QueueState
from holdfast.content.topics import ContentTopic
from holdfast.errors import InvalidState, NotFound
from holdfast.testing import run


async def commands(there: Setting) -> list[object]:
    found = await there.service.read(ContentTopic.COMMANDS, 1, 0, bytes_max=10**6, wait_ms=0)
    return [decode_command(each.payload) for each in found.entries]


def test_a_queue_is_what_stands_behind_the_subscribers_offset() -> None:
    async def story() -> None:
        there = setting()
        offsets = await there.publish(10)
        await there.publish(5, "shop")
        await there.service.publish(package(90, action=PackageAction.TEST))
        offsets += await there.publish(2, first=50)
        await there.service.announce(discovery("a", offsets[3], 4, retries=1, reason="full"))
        queue = await there.service.queue("site", "a", limit=3)
        assert (queue.length, queue.state) == (8, QueueState.RUNNING)
        assert [each.offset for each in queue.items] == offsets[4:7]
        assert queue.head == queue.items[0]
        assert (queue.head.attempts, queue.head.reason) == (1, "full")
        assert queue.items[0].paths == ["/pages/5"] and queue.items[0].package_id == "site-5"
        rest = await there.service.queue("site", "a", queue.after, limit=100)
        assert [each.offset for each in rest.items] == offsets[7:], "a TEST is in no queue"
        assert rest.after is None
        await there.service.announce(discovery("a", offsets[-1], 12))
        idle = await there.service.queue("site", "a")
        assert (idle.length, idle.head, idle.state) == (0, None, QueueState.IDLE)
        await there.service.stop()

    run(story())


def test_a_queue_whose_head_failed_three_times_is_blocked() -> None:
    async def story() -> None:
        there = setting()
        await there.publish(2)
        for retries, state in ((2, QueueState.RUNNING), (3, QueueState.BLOCKED)):
            await there.service.announce(discovery("a", retries=retries, reason="no room"))
            (queue,) = await there.service.queues("site")
            assert queue.state is state
        farm = await there.service.farm("site")
        assert (farm.states["BLOCKED"], farm.failing[0].reason) == (1, "no room")
        assert "blocked behind offset -1 after 3 attempts" in there.service.warnings()[0]
        await there.service.stop()

    run(story())


def test_old_packages_are_fetched_once_for_all_that_ask_at_the_same_time() -> None:
    async def story() -> None:
        there = setting()
        for first in range(1, 20_001, 1_000):
            await there.publish(1_000, first=first)
        service = await there.restart()
        for name in "abcdefgh":
            await service.announce(discovery(name, 10, 11))
        running = await service.running()
        await asyncio.sleep(1)  # events were written
        await service.queues("site")
        before = running.queues.fetches
        views = await asyncio.gather(
            *(service.queue("site", name, after=8_000, limit=5) for name in "abcdefgh")
        )
        assert {view.items[0].offset for view in views} == {8_001}
        assert running.queues.fetches - before == 1
        await service.queue("site", "a", after=8_000, limit=5)
        await service.queues("site")
        assert running.queues.fetches - before == 1, "it is kept"
        await service.stop()

    run(story())


def test_what_retention_dropped_is_in_no_queue() -> None:
    async def story() -> None:
        there = setting()
        offsets = await there.publish(300)
        await there.service.announce(discovery("a"))
        there.journal.discard(ContentTopic.PACKAGES.topic, 1, offsets[100])
        queue = await there.service.queue("site", "a", limit=1)
        assert (queue.length, queue.head.offset) == (200, offsets[100])  # type: ignore[union-attr]
        (summary,) = await there.service.subscribers("site")
        assert (summary.lag, summary.misses) == (200, 100)
        await there.service.stop()

    run(story())


def test_packages_that_a_subscriber_gave_up_on_are_in_its_error_queue_until_one_succeeds() -> None:
    async def story() -> None:
        there = setting()
        offsets = await there.publish(5)
        await there.service.announce(discovery("a", offsets[-1], 5))
        await there.service.report([status("a", offsets[1]), status("a", offsets[3])])
        failed = await there.service.errors("site", "a")
        assert [(each.offset, each.reason) for each in failed] == [
            (offsets[1], "no room"), (offsets[3], "no room"),
        ]  # fmt: skip
        assert failed[0].paths == ["/pages/2"]
        first = await there.service.retry("site", "a", offsets[1])
        again = await there.service.retry("site", "a", offsets[1])
        assert first.command_id == again.command_id, "one retry at a time"
        (command,) = await commands(there)
        assert isinstance(command, RetryPackage) and command.offset == offsets[1]
        assert (await there.service.errors("site", "a"))[0].is_retrying
        for killed in (False, True):
            assert (await (await there.restart(killed=killed)).errors("site", "a"))[0].is_retrying
        await asyncio.sleep(1)
        await there.service.report([status("a", offsets[1], at_ms=5, reason="still none")])
        failed = await there.service.errors("site", "a")
        assert (failed[0].is_retrying, failed[0].reason) == (False, "still none")
        assert not (await (await there.restart()).errors("site", "a"))[0].is_retrying
        await there.service.report([status("a", offsets[1], ImportOutcome.IMPORTED, at_ms=9)])
        await there.service.remove("site", "a", offsets[3])
        assert await there.service.errors("site", "a") == []
        assert await (await there.restart(killed=True)).errors("site", "a") == []
        with pytest.raises(NotFound, match="error queue"):
            await there.service.retry("site", "a", offsets[3])
        await there.service.stop()

    run(story())


def test_only_editable_subscribers_are_cleared_and_the_offset_only_moves_up() -> None:
    async def story() -> None:
        there = setting()
        offsets = await there.publish(6)
        await there.service.announce(discovery("fixed"))
        await there.service.announce(discovery("free", editable=True))
        for ask in (there.service.clear, there.service.remove):
            with pytest.raises(InvalidState, match="editable"):
                await ask("site", "fixed", offsets[2])
        cleared = await there.service.clear("site", "free", offsets[3])
        lower = await there.service.clear("site", "free", offsets[1])
        assert lower == cleared, "it does not go back"
        service = await there.restart(killed=True)
        assert await service.clear("site", "free", offsets[2]) == cleared
        higher = await service.clear("site", "free", offsets[4])
        assert higher.offset == offsets[4]
        (free,) = [each for each in await service.subscribers("site") if each.name == "free"]
        assert free.cleared == offsets[4]
        await service.remove("site", "free", offsets[5])
        found = await commands(there)
        assert [(type(each), each.offset) for each in found] == [  # type: ignore[attr-defined]
            (ClearQueue, offsets[3]), (ClearQueue, offsets[4]), (RemovePackage, offsets[5]),
        ]  # fmt: skip
        with pytest.raises(NotFound, match="last one"):
            await service.clear("site", "free", offsets[5] + 1)
        with pytest.raises(NotFound, match="in the queue"):
            await service.remove("site", "free", offsets[5] + 7)
        await service.stop()

    run(story())


def test_a_snapshot_is_asked_for_and_found_again() -> None:
    async def story() -> None:
        there = setting()
        await there.publish(1)
        await there.service.announce(discovery("a"))
        sent = await there.service.take_snapshot("a")
        (command,) = await commands(there)
        assert command == TakeSnapshot(sent.command_id, "a", sent.blob)
        taken = SnapshotTaken("a", sent.command_id, sent.blob, [SubscriberProgress("site", 0, 1)])
        await there.service.snapshot_taken(taken)
        for killed in (False, True, False):
            service = await there.restart(killed=killed)
            (snapshot,) = await service.snapshots()
            assert (snapshot.blob, snapshot.publishers) == (sent.blob, ["site"])
        with pytest.raises(NotFound, match="named nobody"):
            await service.take_snapshot("nobody")
        await service.stop()

    run(story())


def test_names_that_nobody_uses_are_not_found_and_make_no_topics() -> None:
    async def story() -> None:
        there = setting()
        assert await there.service.publishers() == [] == await there.service.snapshots()
        with pytest.raises(NotFound, match="no publisher and no subscriber yet"):
            await there.service.farm("site")
        assert there.journal.topics() == {}
        await there.service.announce(discovery("a", publisher="shop"))
        assert (await there.service.farm("shop")).states["IDLE"] == 1, "it published nothing yet"
        await there.publish(1)
        with pytest.raises(NotFound, match="subscribes to shop"):
            await there.service.queue("site", "a")
        with pytest.raises(NotFound, match="known are shop, site"):
            await there.service.queues("nobody")
        await there.service.stop()

    run(story())
