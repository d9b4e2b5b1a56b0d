"""The node's side of content against simple models: what is packed, kept and dropped is the log."""

import asyncio
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st
from publishing import discovery, package, setting, status

from holdfast.content.messages import ImportOutcome, PackageAction, decode_package
from holdfast.content.ports import TopicEntry
from holdfast.content.publisher.errors import ErrorQueues
from holdfast.content.publisher.offset_map import END, OffsetMap, QueueEntry
from holdfast.content.publisher.recent import RecentEntries
from holdfast.content.publisher.retention import first_needed
from holdfast.content.publisher.topology import SubscriberTopology
from holdfast.content.topics import ContentTopic
from holdfast.limits import CONTENT_QUEUE_BLOCK_ENTRIES
from holdfast.testing import run

IDS = st.one_of(
    st.text(min_size=1, max_size=40).filter(lambda text: text.isprintable()),
    st.binary(min_size=16, max_size=16).map(bytes.hex),
    st.sampled_from(["A" * 32, "0123456789abcdef", "\0" * 16, "f" * 31 + "g", "é" * 8]),
)


def entry(offset: int, number: int, package_id: str = "") -> QueueEntry:
    return QueueEntry(
        offset, number, package_id or f"id-{offset}", PackageAction.ADD, [f"/{offset}"], offset % 7,
        1_000_000 + offset // 3,
    )  # fmt: skip


@given(st.lists(IDS, min_size=1, max_size=300))
def test_packages_come_out_of_the_map_as_they_went_in(ids: list[str]) -> None:
    packed = OffsetMap()
    given_in = [entry(2 * at, at + 1, each) for at, each in enumerate(ids)]
    for each in given_in:
        packed.append(each)
    found: list[QueueEntry] = []
    at = 0
    while at != END:
        part = packed.read(at, 50)
        assert part is not None
        found += part.entries
        at = part.next
    assert found == given_in


@settings(max_examples=60)
@given(st.data())
def test_the_map_is_the_log_whatever_is_dropped_and_fetched_and_is_bounded(
    data: st.DataObject,
) -> None:
    gaps = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=900))
    offsets = [sum(gaps[: at + 1]) for at in range(len(gaps))]
    log = [entry(offset, at + 1) for at, offset in enumerate(offsets)]
    known_from = data.draw(st.integers(0, len(log)))
    start = log[known_from].offset if known_from < len(log) else offsets[-1] + 1
    packed = OffsetMap(start, entries_max=3 * CONTENT_QUEUE_BLOCK_ENTRIES)
    for each in log[known_from:]:
        packed.append(each)
    for _ in range(20):
        after = data.draw(st.integers(-1, offsets[-1] + 2))
        limit = data.draw(st.integers(1, 300))
        found: list[QueueEntry] = []
        at = after + 1
        while len(found) < limit and at != END:
            part = packed.read(at, limit - len(found))
            if part is None:  # read from the log, a part at a time
                some = [each for each in log if each.offset >= at][:200]
                packed.fill(at, some[-1].offset + 1 if some else offsets[-1] + 1, some)
            else:
                found += part.entries
                at = part.next
        assert found == [each for each in log if each.offset > after][:limit]
        assert len(packed) <= 5 * CONTENT_QUEUE_BLOCK_ENTRIES


@settings(max_examples=60)
@given(st.data())
def test_recent_entries_are_those_of_the_log_and_are_bounded(data: st.DataObject) -> None:
    offsets = sorted(data.draw(st.sets(st.integers(0, 400), min_size=1, max_size=200)))
    log = [TopicEntry(at, 7, bytes(1 + at % 90)) for at in offsets]
    recent = RecentEntries(bytes_max=20_000, block_bytes=1_000)
    for _ in range(60):
        start, size = data.draw(st.integers(0, 400)), data.draw(st.integers(1, 80))
        if data.draw(st.booleans()):
            recent.add(start, start + size, [e for e in log if start <= e.offset < start + size])
            continue
        kept = recent.read(start, bytes_max := size * 20)
        if kept is None:
            continue
        entries, following = kept
        expected = [each for each in log if start <= each.offset < following]
        assert entries == expected
        assert following > start
        assert len(entries) <= 1 or sum(len(each.payload) for each in entries) <= bytes_max
    assert recent.size_bytes <= 20_000 + 100 * 300


@given(
    st.lists(
        st.tuples(st.sampled_from("ab"), st.integers(0, 5), st.sampled_from(ImportOutcome)),
        max_size=60,
    ),
    st.integers(0, 60),
)
def test_an_error_queue_is_what_failed_last(
    said: list[tuple[str, int, ImportOutcome]], dropped: int
) -> None:
    queues = ErrorQueues()
    model: dict[tuple[str, int], int] = {}
    for at, (name, offset, outcome) in enumerate(said):
        queues.apply_status(status(name, offset, outcome, at_ms=at), at, at)
        model.pop((name, offset), None)
        if outcome is ImportOutcome.REMOVED_FAILED:
            model[name, offset] = at
    assert queues.first_status() == min(model.values(), default=None)
    queues.drop_before(dropped)
    for name in "ab":
        expected = {offset for (who, offset), at in model.items() if who == name and at >= dropped}
        assert queues.of(name, "site").keys() == expected


@given(st.lists(st.integers(-1, 100), max_size=20), st.integers(0, 101), st.integers(0, 101))
def test_nothing_is_dropped_that_a_subscriber_within_its_limit_needs(
    behind: list[int], next_offset: int, too_old: int
) -> None:
    first = first_needed(behind, next_offset, too_old)
    assert 0 <= first <= next_offset
    assert all(first <= max(offset + 1, too_old) for offset in behind)
    if behind:
        assert first in {min(next_offset, max(each, too_old)) for each in (min(behind) + 1,)}


@given(
    st.lists(
        st.tuples(st.sampled_from("abc"), st.integers(0, 50), st.integers(0, 40_000)), max_size=40
    )
)
def test_the_slowest_subscriber_is_the_slowest_of_what_each_said_last(
    said: list[tuple[str, int, int]],
) -> None:
    topology = SubscriberTopology()
    now_ms, last = 0, {}
    heard: dict[str, int] = {}
    for name, offset, pause_ms in said:
        now_ms += pause_ms
        topology.hear(discovery(name, offset, offset + 1), now_ms, {"site": 100})
        last[name] = offset
        heard[name] = now_ms
    assert topology.slowest_offset("site") == min(last.values(), default=None)
    dead = {name for name, each in topology.known.items() if each.is_dead(now_ms)}
    assert dead == {name for name, at_ms in heard.items() if now_ms - at_ms > 30_000}
    again = SubscriberTopology()
    for each in topology.heard():
        again.hear(each.discovery, each.at_ms, {"site": 100})
    assert again.heard() == topology.heard()


OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("publish"), st.sampled_from(["site", "shop"]), st.integers(1, 60)),
        st.tuples(st.just("test"), st.just("site"), st.just(1)),
        st.tuples(st.just("announce"), st.sampled_from(["site", "shop"]), st.integers(0, 300)),
        st.tuples(st.just("drop"), st.just(""), st.integers(1, 40)),
        st.tuples(st.just("restart"), st.just(""), st.integers(0, 1)),
        st.tuples(st.just("look"), st.sampled_from(["site", "shop"]), st.integers(1, 200)),
    ),
    min_size=3,
    max_size=25,
)


@settings(max_examples=40, deadline=None)
@given(OPERATIONS, st.integers(0, 3))
def test_a_queue_is_the_naive_filter_of_the_log(
    operations: list[tuple[str, str, int]], gap: int
) -> None:
    async def story() -> None:
        there = setting(gap=lambda: gap)
        published = 0
        done: dict[str, tuple[int, int]] = {"site": (-1, 0), "shop": (-1, 0)}
        await there.service.announce(discovery("a-shop", publisher="shop"))
        await there.service.announce(discovery("a-site"))
        for what, name, count in operations:
            log = await naive(there)
            if what == "publish":
                await there.publish(count, name, first=published + 1)
                published += count
            elif what == "test":
                published += 1
                await there.service.publish(package(-published, action=PackageAction.TEST))
            elif what == "announce":
                mine = [each for each in log if each[1] == name]
                if mine:
                    offset, _, number = mine[count % len(mine)]
                    done[name] = offset, number
                    await there.service.announce(
                        discovery(f"a-{name}", offset, number, publisher=name)
                    )
            elif what == "drop" and len(log) > count:
                there.journal.discard(ContentTopic.PACKAGES.topic, 1, log[count][0])
            elif what == "restart":
                await asyncio.sleep(1)
                await there.restart(killed=bool(count))
            elif what == "look":
                expected = [each for each in log if each[1] == name and each[0] > done[name][0]]
                queue = await there.service.queue(name, f"a-{name}", limit=count)
                found = [(each.offset, name, each.number) for each in queue.items]
                assert found == expected[:count]
                assert queue.length == len(expected)
                assert (queue.head is None) == (not expected)
                rest = await there.service.queue(name, f"a-{name}", after=5, limit=10_000)
                assert [each.offset for each in rest.items] == [
                    each[0] for each in expected if each[0] > 5
                ]
        await there.service.stop()

    run(story())


async def naive(there) -> list[tuple[int, str, int]]:
    """Offset, publisher and number of all packages that are kept and queued."""
    topic = ContentTopic.PACKAGES.topic
    if topic not in there.journal.topics():
        return []
    entries = await there.journal.read(topic, 1, there.journal.bounds(topic, 1).earliest, 10**9)
    packages = [(each.offset, decode_package(each.payload)) for each in entries]
    found = [
        (offset, each.publisher, each.number)
        for offset, each in packages
        if each.action is not PackageAction.TEST
    ]
    for name in ("site", "shop"):
        numbers = [number for _, publisher, number in found if publisher == name]
        assert all(after == before + 1 for before, after in pairwise(numbers))
    return found
