"""The log of packages: numbers, ids, readers that wait, and a node that never uses it."""

import asyncio
from pathlib import Path
from random import Random

import msgspec
import pytest
from publishing import discovery, package, setting, status

from holdfast.blobs.memory import MemoryBlobs
from holdfast.clock import SystemClock
from holdfast.content.messages import PackageAction, SnapshotTaken, decode_event, decode_package
from holdfast.content.publisher import ContentService
from holdfast.content.topics import ContentTopic
from holdfast.errors import (
    DataLoss,
    InvalidArgument,
    InvalidState,
    NotFound,
    ResourceExhausted,
    Unavailable,
    Unknown,
)
from holdfast.journal.local import LocalJournal
from holdfast.testing import run

PACKAGES = ContentTopic.PACKAGES


async def read_all(service: ContentService, topic: ContentTopic, bytes_max: int = 1_000):
    """All messages of a topic, read as a subscriber does."""
    offset, found = 0, []
    while True:
        some = await service.read(topic, 1, offset, bytes_max=bytes_max, wait_ms=0)
        found += some.entries
        offset = some.next
        if offset >= some.end:
            return found


def test_packages_are_numbered_by_publisher_and_a_test_is_not_counted() -> None:
    async def story() -> None:
        there = setting(gap=Random(3).choice([lambda: 0, lambda: 2]))
        site, shop = package(1), package(1, "shop")
        assert (await there.service.publish(site)).number == 1
        assert (await there.service.publish(shop)).number == 1
        tested = await there.service.publish(package(7, action=PackageAction.TEST))
        assert tested.number == 1
        many = await asyncio.gather(*(there.service.publish(package(10 + n)) for n in range(50)))
        assert [each.number for each in many] == list(range(2, 52))
        read = await read_all(there.service, PACKAGES)
        assert [decode_package(entry.payload).number for entry in read][:3] == [1, 1, 1]
        assert [entry.offset for entry in read][3:] == [each.offset for each in many]
        await there.service.stop()

    run(story())


def test_the_same_package_is_published_once_at_the_same_time_later_and_after_a_restart() -> None:
    async def story() -> None:
        there = setting()
        both = await asyncio.gather(*(there.service.publish(package(1)) for _ in range(5)))
        assert len(set(both)) == 1
        assert await there.service.publish(package(1)) == both[0]
        for killed in (True, False):
            service = await there.restart(killed=killed)
            assert await service.publish(package(1)) == both[0]
        assert len(await read_all(there.service, PACKAGES)) == 1
        await there.service.stop()

    run(story())


def test_a_package_whose_append_fails_takes_no_number_and_one_that_is_there_is_known() -> None:
    async def story() -> None:
        there = setting()
        await there.publish(3)
        there.journal.failure = ResourceExhausted("no room on the disk", retry_after_ms=1)
        with pytest.raises(ResourceExhausted, match="no room"):
            await there.service.publish(package(4))
        there.journal.failure, there.journal.is_kept = Unknown("there was no answer"), True
        with pytest.raises(Unknown):
            await there.service.publish(package(5))
        there.journal.failure = None
        assert (await there.service.publish(package(5))).number == 4, "it was on the log"
        assert (await there.service.publish(package(6))).number == 5
        assert len(await read_all(there.service, PACKAGES)) == 5
        await there.service.stop()

    run(story())


def test_who_publishes_and_goes_away_harms_nobody() -> None:
    async def story() -> None:
        there = setting()
        await there.publish(1)
        going = [asyncio.create_task(there.service.publish(package(n))) for n in range(2, 40)]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        for each in going[::2]:
            each.cancel()
        await asyncio.gather(*going, return_exceptions=True)
        done = await there.service.publish(package(100))
        numbers = [
            decode_package(entry.payload).number
            for entry in await read_all(there.service, PACKAGES)
        ]
        assert numbers == list(range(1, done.number + 1))
        await there.service.stop()

    run(story())


def test_a_package_that_is_sent_again_while_it_is_written_is_there_once() -> None:
    async def story() -> None:
        there = setting()
        await there.publish(1)
        running = await there.service.running()
        for turns in range(6):
            first = asyncio.create_task(there.service.publish(package(10 + turns)))
            for _ in range(turns):
                await asyncio.sleep(0)
            first.cancel()
            await asyncio.gather(first, return_exceptions=True)
            assert (await there.service.publish(package(10 + turns))).number == 2 + turns
        assert len(await read_all(there.service, PACKAGES)) == 7
        assert not running._publishing
        await there.service.stop()

    run(story())


def test_one_append_wakes_all_readers_and_is_read_from_the_journal_once() -> None:
    async def story() -> None:
        there = setting()
        await there.publish(1)
        reading = [
            asyncio.create_task(
                there.service.read(PACKAGES, 1, 1, bytes_max=10_000, wait_ms=60_000)
            )
            for _ in range(100)
        ]
        await asyncio.sleep(1)
        assert not any(each.done() for each in reading)
        before = there.journal.reads[PACKAGES.topic]
        began = there.clock.monotonic()
        await there.publish(1, first=2)
        found = await asyncio.gather(*reading)
        assert there.clock.monotonic() == began, "nobody waits for a timer"
        assert {entries.entries[0].offset for entries in found} == {1}
        assert there.journal.reads[PACKAGES.topic] - before == 1
        empty = await there.service.read(PACKAGES, 1, 2, bytes_max=10, wait_ms=5_000)
        assert empty == ([], 2, 0, 2)
        assert there.clock.monotonic() == began + 5
        await there.service.stop()

    run(story())


def test_many_readers_of_old_packages_share_the_reading_of_them() -> None:
    async def story() -> None:
        there = setting()
        for first in range(0, 400, 100):
            await asyncio.gather(
                *(there.service.publish(package(first + n, size_bytes=9_000)) for n in range(100))
            )
        service = await there.restart()
        before = there.journal.reads[PACKAGES.topic]

        async def reader() -> int:
            found = await read_all(service, PACKAGES, bytes_max=70_000)
            return sum(len(each.payload) for each in found)

        sums = await asyncio.gather(*(reader() for _ in range(50)))
        assert len(set(sums)) == 1 and sums[0] > 400 * 9_000
        assert there.journal.reads[PACKAGES.topic] - before <= 16, "3.6 MB in pieces of 256 KiB"
        await service.stop()

    run(story())


def test_a_reader_below_what_is_kept_reads_on_at_the_earliest() -> None:
    async def story() -> None:
        there = setting()
        offsets = await there.publish(20)
        there.journal.discard(PACKAGES.topic, 1, offsets[10])
        found = await there.service.read(PACKAGES, 1, 3, bytes_max=10**6, wait_ms=0)
        assert (found.entries[0].offset, found.earliest) == (offsets[10], offsets[10])
        ahead = await there.service.read(PACKAGES, 1, 10**6, bytes_max=10, wait_ms=10)
        assert ahead == ([], ahead.end, offsets[10], ahead.end)
        with pytest.raises(NotFound, match="found 2"):
            await there.service.read(PACKAGES, 2, 0, bytes_max=10, wait_ms=0)
        await there.service.stop()

    run(story())


def test_what_subscribers_say_together_is_one_append() -> None:
    async def story() -> None:
        there = setting()
        await there.publish(1)
        await there.service.announce(discovery("a"))
        await asyncio.sleep(0.1)
        first = await read_all(there.service, ContentTopic.DISCOVERIES)
        assert len(first) == 1, "the first word is written at once"
        for offset in range(50):
            for name in "abc":
                await there.service.announce(discovery(name, offset, offset + 1))
        await asyncio.sleep(1)
        later = await read_all(there.service, ContentTopic.DISCOVERIES)
        assert len(later) == 4, "only the last word of each is written"
        await there.service.stop()

    run(story())


def test_a_status_that_is_sent_again_is_on_the_log_once() -> None:
    async def story() -> None:
        there = setting()
        await there.service.report([status("a", 0), status("a", 1)])
        await there.service.report([status("a", 1), status("a", 2)])
        await there.service.report([status("a", 1, at_ms=9)])  # it failed again
        assert len(await read_all(there.service, ContentTopic.STATUSES)) == 4
        await there.service.snapshot_taken(SnapshotTaken("a", "c-1", "content/snapshots/a", []))
        (event,) = await read_all(there.service, ContentTopic.EVENTS)
        assert decode_event(event.payload).command_id == "c-1"  # type: ignore[union-attr]
        await there.service.stop()

    run(story())


def test_what_cannot_be_kept_is_refused() -> None:
    async def story() -> None:
        there = setting()
        with pytest.raises(InvalidArgument, match="put its content into a blob"):
            await there.service.publish(package(1, size_bytes=4_000_000))
        with pytest.raises(InvalidArgument, match="name of a publisher"):
            await there.service.publish(package(1, publisher=""))
        with pytest.raises(InvalidArgument, match="announce itself"):
            await there.service.announce(discovery("a", interval_ms=0))
        for number in range(100):
            await there.service.publish(package(1, f"site-{number}"))
        with pytest.raises(ResourceExhausted, match="publishers"):
            await there.service.publish(package(1, "one-more"))
        await there.service.stop()

    run(story())


def test_waiting_callers_are_told_when_the_node_closes() -> None:
    async def story() -> None:
        there = setting()
        await there.publish(1)
        waiting = asyncio.create_task(
            there.service.read(PACKAGES, 1, 1, bytes_max=10, wait_ms=60_000)
        )
        await asyncio.sleep(1)
        await there.service.stop()
        with pytest.raises(Unavailable):
            await waiting
        with pytest.raises(Unavailable):
            await there.service.publish(package(2))

    run(story())


def test_blobs_that_are_missing_are_named() -> None:
    async def story() -> None:
        there = setting()
        there.blobs.content["content/binaries/aa"] = b"1"
        asked = ["content/binaries/aa", "content/binaries/bb"]
        assert await there.service.missing(asked) == ["content/binaries/bb"]
        await there.service.stop()

    run(story())


def test_a_node_that_never_uses_content_has_no_files_for_it(tmp_path: Path) -> None:
    async def story() -> None:
        journal = LocalJournal.open(tmp_path / "journal")
        opened: list[MemoryBlobs] = []

        def open_blobs() -> MemoryBlobs:
            opened.append(MemoryBlobs())
            return opened[-1]

        service = ContentService(journal, open_blobs, SystemClock())
        await service.start()
        assert journal.topics() == {} and opened == []
        assert len(asyncio.all_tasks()) == 1
        await service.stop()
        await journal.close()

    asyncio.run(story())


def test_the_log_is_read_back_from_files(tmp_path: Path) -> None:
    async def story() -> None:
        for round_ in range(3):
            journal = LocalJournal.open(tmp_path / "journal")
            service = ContentService(journal, MemoryBlobs, SystemClock())
            await service.start()
            published = await asyncio.gather(
                *(service.publish(package(100 * round_ + n)) for n in range(20))
            )
            assert [each.number for each in published] == list(
                range(20 * round_ + 1, 20 * round_ + 21)
            )
            assert len(await read_all(service, PACKAGES)) == 20 * round_ + 20
            await service.stop()
            await journal.close()

    asyncio.run(story())


def test_a_package_whose_blob_is_missing_is_refused_and_blobs_are_cleaned_up_in_their_time() -> (
    None
):
    async def story() -> None:
        there = setting()
        blob, other = f"content/packages/{'a' * 64}", f"content/packages/{'b' * 64}"
        large = msgspec.structs.replace(package(1), content=None, blob=blob)
        with pytest.raises(InvalidState, match="upload it"):
            await there.service.publish(large)
        there.blobs.content[blob] = there.blobs.content[other] = b"..."
        await there.service.publish(large)
        await asyncio.sleep(120)  # marked
        await there.publish(1, first=2)
        there.journal.discard(PACKAGES.topic, 1, 1)
        await asyncio.sleep(11 * 3_600)
        assert there.blobs.content.keys() >= {blob, other}
        await asyncio.sleep(2 * 3_600)
        assert not there.blobs.content.keys() & {blob, other}, "the log no longer has the package"
        assert (await there.service.clean_up()).removed == 0
        await there.service.stop()

    run(story())


def test_a_topic_that_cannot_be_read_is_told_and_nothing_of_it_is_dropped() -> None:
    async def story() -> None:
        there = setting()
        await there.publish(2)
        await there.service.stop()
        await there.journal.append(ContentTopic.STATUSES.topic, 1, [b"?"])
        there.service = there._new()
        await there.service.start()
        with pytest.raises(DataLoss, match="offset 0 of the topic content-statuses"):
            await there.service.publish(package(3))
        assert not there.service.is_ready
        assert "not distributed" in there.service.warnings()[0]
        assert (await there.service.needs()).recovery[PACKAGES.topic] == 0
        there.journal.discard(ContentTopic.STATUSES.topic, 1, 1)
        assert (await there.service.publish(package(3))).number == 3, "it is tried again"
        assert there.service.is_ready and there.service.warnings() == []
        await there.service.stop()

    run(story())
