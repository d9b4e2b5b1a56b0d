"""What every `Coordination` keeps: stories that are played on memory and on real servers."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from holdfast.errors import Forbidden, InvalidArgument, InvalidState, NotFound
from holdfast.limits import COORDINATION_CUTS_KEPT, CUT_SHARES
from holdfast.sequence.api import (
    Beaten,
    Chain,
    ClusterSettings,
    Coordination,
    Cut,
    LiveMember,
    LogKey,
    Range,
    Registered,
    Replica,
)
from holdfast.sequence.cuts import share_of

Join = Callable[[str], Awaitable[Coordination]]
"""A coordination for the member of that name, on the store of this story."""

Story = Callable[[Join], Awaitable[None]]
STORIES: list[Story] = []


def story(tell: Story) -> Story:
    STORIES.append(tell)
    return tell


def live(member: str, nonce: str = "n1") -> LiveMember:
    return LiveMember(
        member, f"disk-{member}", nonce, f"{member}:7000", f"http://{member}:8080", "1"
    )


def span(epoch: int, owner: str = "a", start: int = 0) -> Range:
    replicas = tuple(Replica(member, f"disk-{member}") for member in "abc")
    return Range(epoch, owner, f"nonce-{owner}", replicas, {"records": start})


def cut(number: int, writer: str = "a", **grew: int) -> Cut:
    grown = {LogKey("records", int(name[1:])): count for name, count in grew.items()}
    share = {key: count for key, count in grown.items() if share_of(key) == number % CUT_SHARES}
    return Cut(number, writer, f"nonce-{writer}-{number}", number, grown, share)


# --- the cluster and its members ---------------------------------------------------------------


@story
async def the_first_member_decides_the_settings_for_all(join: Join) -> None:
    a, b = await join("a"), await join("b")
    first, second = ClusterSettings("one", 16), ClusterSettings("two", 32, 5)
    answers = await asyncio.gather(a.settle(first), b.settle(second))
    assert answers[0] == answers[1]
    assert await b.settle(second) == await a.settle(first) == answers[0]


@story
async def members_that_register_at_once_are_all_registered(join: Join) -> None:
    members = {name: Registered(name, f"key-{name}") for name in "abcde"}
    joined = [await join(name) for name in members]
    await asyncio.gather(
        *(each.register(member) for each, member in zip(joined, members.values(), strict=True))
    )
    assert await joined[0].registered() == members
    await joined[1].register(members["b"])  # again: nothing happens
    assert await joined[2].registered() == members


@story
async def a_name_has_one_key_and_a_key_one_name(join: Join) -> None:
    a = await join("a")
    await a.register(Registered("a", "key-a"))
    with pytest.raises(InvalidState, match="member a is registered"):
        await a.register(Registered("a", "key-b"))
    with pytest.raises(InvalidState, match="member a is registered"):
        await a.register(Registered("b", "key-a"))
    with pytest.raises(InvalidArgument, match="without a slash"):
        await a.register(Registered("../a", "key-c"))


@story
async def a_removed_key_never_comes_back_but_its_name_may(join: Join) -> None:
    a, b = await join("a"), await join("b")
    await a.register(Registered("a", "key-a"))
    await b.register(Registered("b", "key-b"))
    await a.remove("b")
    assert set(await b.registered()) == {"a"}
    with pytest.raises(Forbidden, match="was removed"):
        await b.register(Registered("b", "key-b"))
    with pytest.raises(NotFound, match="no member b"):
        await a.remove("b")
    await b.register(Registered("b", "key-b2"))
    assert (await a.registered())["b"].key == "key-b2"


@story
async def a_disk_that_knows_fewer_starts_than_there_were_was_rolled_back(join: Join) -> None:
    a, b = await join("a"), await join("b")
    disk = Replica("a", "d1")
    assert await a.begin_disk(disk, 0)
    assert await a.begin_disk(disk, 0)  # the same start, noted again
    assert await b.begin_disk(disk, 1)
    assert not await a.begin_disk(disk, 0)
    assert await a.begin_disk(Replica("a", "d2"), 0)
    assert await a.begin_disk(disk, 3)  # it counted a start that nobody heard of
    assert not await b.begin_disk(disk, 3)


@story
async def everybody_has_a_place_in_the_order_and_keeps_it(join: Join) -> None:
    joined = {name: await join(name) for name in "abc"}
    numbers = await asyncio.gather(*(each.announce(live(name)) for name, each in joined.items()))
    assert sorted(numbers) == [1, 2, 3]
    again = await joined["b"].announce(live("b", nonce="n2"))
    assert again == numbers[1]
    places = await joined["a"].live()
    assert list(places) == [1, 2, 3]
    assert places[again] == live("b", nonce="n2")


@story
async def who_leaves_gives_up_its_place_and_comes_back_behind_the_last(join: Join) -> None:
    a, b = await join("a"), await join("b")
    assert await a.announce(live("a")) == 1
    assert await b.announce(live("b")) == 2
    await a.close()
    assert list(await b.live()) == [2]
    a = await join("a")
    assert await a.announce(live("a")) == 3
    assert [each.member for each in (await b.live()).values()] == ["b", "a"]


@story
async def a_member_that_is_started_again_finds_its_place(join: Join) -> None:
    former, b = await join("a"), await join("b")
    assert await former.announce(live("a")) == 1
    assert await b.announce(live("b")) == 2
    a = await join("a")  # the lease of the former is not over yet
    assert await a.announce(live("a", nonce="n2")) == 1
    assert (await b.live())[1].nonce == "n2"
    await former.close()
    assert (await b.live())[1].nonce == "n2"


# --- ranges ------------------------------------------------------------------------------------


@story
async def a_chain_is_replaced_only_in_the_place_of_what_was_read(join: Join) -> None:
    a, b = await join("a"), await join("b")
    empty = await a.chain(7)
    assert (empty, await a.chains()) == (Chain(7), {})
    first = await a.replace(Chain(7, (span(1),), empty.revision))
    assert isinstance(first, Chain)
    assert first.revision > 0
    assert await b.replace(Chain(7, (span(1, "b"),), empty.revision)) == Beaten()
    assert await b.chain(7) == first
    second = await b.replace(Chain(7, (span(1), span(2, "b", 55)), first.revision))
    assert isinstance(second, Chain)
    assert await a.replace(Chain(7, (span(1), span(2)), first.revision)) == Beaten()
    assert await a.chain(7) == second
    other = await a.replace(Chain(70, (span(1),)))
    assert await b.chains() == {7: second, 70: other}


@story
async def of_takers_at_once_one_wins(join: Join) -> None:
    joined = {name: await join(name) for name in "abcd"}
    for epoch in (1, 2, 3):
        chain = await joined["a"].chain(1)
        answers = await asyncio.gather(
            *(
                each.replace(Chain(1, (*chain.ranges, span(epoch, name)), chain.revision))
                for name, each in joined.items()
            )
        )
        won = [each for each in answers if isinstance(each, Chain)]
        assert won == [await joined["b"].chain(1)]
        assert answers.count(Beaten()) == 3


# --- cuts --------------------------------------------------------------------------------------


@story
async def cuts_are_numbered_without_gaps_and_the_first_writer_wins(join: Join) -> None:
    a, b = await join("a"), await join("b")
    assert await a.latest() is None
    assert not await a.publish(cut(2, p1=5))
    assert await a.publish(cut(1, p1=5, p2=3))
    assert not await b.publish(cut(1, "b", p1=6))
    assert await b.publish(cut(2, "b", p1=6))
    assert not await a.publish(cut(2, p1=7))
    assert not await a.publish(cut(4, p1=7))
    assert await a.latest() == cut(2, "b", p1=6)
    assert await a.publish(cut(3))
    assert await b.latest() == cut(3)
    assert list(await b.cuts(1, 3)) == [cut(1, p1=5, p2=3), cut(2, "b", p1=6), cut(3)]
    assert list(await b.cuts(2, 2)) == [cut(2, "b", p1=6)]
    assert list(await b.cuts(4, 9)) == list(await b.cuts(3, 2)) == []


@story
async def of_writers_of_one_cut_one_wins(join: Join) -> None:
    joined = {name: await join(name) for name in "abcd"}
    for number in range(1, 6):
        won = await asyncio.gather(
            *(each.publish(cut(number, name)) for name, each in joined.items())
        )
        assert won.count(True) == 1
        latest = await joined["a"].latest()
        assert latest == cut(number, "abcd"[won.index(True)])


@story
async def a_short_history_of_cuts_is_kept(join: Join) -> None:
    a = await join("a")
    last = COORDINATION_CUTS_KEPT + 40
    for number in range(1, last + 1):
        assert await a.publish(cut(number, p1=number))
    kept = await a.cuts(1, last)
    assert [each.number for each in kept] == list(range(41, last + 1))
    assert await a.latest() == cut(last, p1=last)


# --- the rest ----------------------------------------------------------------------------------


@story
async def a_topic_is_written_in_the_place_of_what_was_expected(join: Join) -> None:
    a, b = await join("a"), await join("b")
    assert await a.put_topic("records", b"4", None)
    assert not await b.put_topic("records", b"5", None)
    assert not await b.put_topic("records", b"5", b"3")
    assert await b.put_topic("records", b"\x00\xff", b"4")
    assert await b.put_topic("content.packages", b"", None)
    assert await a.topics() == {"content.packages": b"", "records": b"\x00\xff"}
    with pytest.raises(InvalidArgument, match="without a slash"):
        await a.put_topic("a/b", b"", None)


@story
async def changes_are_hinted_at_by_name(join: Join) -> None:
    a, b = await join("a"), await join("b")
    heard: set[str] = set()

    async def listen(until: set[str]) -> None:
        async for name in changes:
            heard.add(name)
            if until <= heard:
                return

    changes = b.changes()
    async with asyncio.timeout(10):
        await listen({"registered", "live", "topics", "chains", "latest"})  # anything at first
        heard.clear()
        await a.register(Registered("a", "key-a"))
        await a.announce(live("a"))
        await a.put_topic("records", b"", None)
        await a.replace(Chain(7, (span(1),)))
        await a.publish(cut(1))
        await listen({"registered", "live", "topics", "chain/7", "latest"})
    await changes.aclose()  # pyright: ignore[reportAttributeAccessIssue]


@story
async def it_is_available_and_was_not_rolled_back(join: Join) -> None:
    a = await join("a")
    await a.latest()
    assert a.available
    assert a.rolled_back == ""
