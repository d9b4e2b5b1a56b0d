"""A subscriber in virtual time: what it takes in, what it says, and what it does when stuck."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from package_kit import tree_of
from subscribing import IDLE, PickyRepository, Stage

from holdfast.content.messages import (
    ClearQueue,
    ImportOutcome,
    Package,
    RemovePackage,
    RetryPackage,
    TakeSnapshot,
)
from holdfast.content.repository.memory import MemoryRepository
from holdfast.content.subscriber import Admission, SubscriberCondition
from holdfast.content.topics import ContentTopic
from holdfast.errors import InvalidArgument, Unavailable
from holdfast.limits import (
    CONTENT_PREFETCH_PACKAGES_MAX,
    CONTENT_SMALL_PACKAGES_BYTES,
    CONTENT_SMALL_PACKAGES_MAX,
)
from holdfast.testing.loop import run

RETRYING, WAITING = SubscriberCondition.RETRYING, SubscriberCondition.WAITING
NEEDS_SEEDING = SubscriberCondition.NEEDS_SEEDING
BROKEN = InvalidArgument("no such room")


def story(told: Callable[[Stage], Awaitable[None]]) -> Callable[[], None]:
    """A test in virtual time, on a stage of its own."""

    def test() -> None:
        async def play() -> None:
            await told(Stage())

        run(play())

    test.__name__, test.__doc__ = told.__name__, told.__doc__
    return test


def content(store: MemoryRepository) -> dict[str, Any]:
    """The property `n` of all nodes that have one."""
    return {path: node["n"] for path, node in tree_of(store).items() if "n" in node}


async def outcomes(stage: Stage) -> list[tuple[int, ImportOutcome]]:
    await asyncio.sleep(1)
    return [(each.offset, each.outcome) for each in await stage.statuses()]


# --- packages ---------------------------------------------------------------------------------


@story
async def test_packages_arrive_in_their_order_with_their_offset(stage: Stage) -> None:
    store = MemoryRepository()
    await stage.add({"/a": {"n": 1}})
    edge = stage.subscriber("edge", store)
    await edge.wait_until(IDLE)
    assert content(store) == {"/a": 1}
    await stage.add({"/a": {"n": 2}, "/b": {"data": b"x" * 100}})
    await stage.delete("/a")
    await asyncio.sleep(1)
    assert tree_of(store) == {"/": {}, "/b": {"data": b"x" * 100}}
    [progress] = edge.progress
    assert (progress.offset, progress.number, edge.imported) == (2, 3, 3)
    await edge.close()
    assert edge.condition is SubscriberCondition.CLOSED


@story
async def test_large_packages_and_binaries_come_from_blobs(stage: Stage) -> None:
    store = MemoryRepository()
    edge = stage.subscriber("edge", store)
    await stage.add({"/large": {"data": b"l" * 200_000}})
    await stage.add({f"/many/{each}": {"text": "m" * 50_000} for each in range(20)})
    await asyncio.sleep(1)
    assert [bool(package.blob) for _, package in stage.published] == [False, True]
    assert tree_of(store, "/large") == {"/large": {"data": b"l" * 200_000}}
    assert len(tree_of(store, "/many")) == 21 and edge.imported == 2
    await edge.close()


@story
async def test_many_small_packages_share_a_commit(stage: Stage) -> None:
    for number in range(128):
        await stage.add({f"/{number}": {"n": number}})
    store = PickyRepository()
    edge = stage.subscriber("edge", store)
    await edge.wait_until(IDLE)
    assert len(content(store)) == 128
    assert store.commits == 1 + 128 / CONTENT_SMALL_PACKAGES_MAX
    await edge.close()


@story
async def test_a_few_large_packages_share_a_commit(stage: Stage) -> None:
    large = "x" * (CONTENT_SMALL_PACKAGES_BYTES // 4)
    for number in range(24):
        await stage.add({f"/{number}": {"n": large}})
    store = PickyRepository()
    edge = stage.subscriber("edge", store)
    await edge.wait_until(IDLE)
    assert len(content(store)) == 24
    # Pages of a MiB are read ahead: seven or eight packages each.
    assert 1 + 24 / CONTENT_PREFETCH_PACKAGES_MAX <= store.commits <= 6
    await edge.close()


@story
async def test_a_copied_store_goes_on_from_its_offset(stage: Stage) -> None:
    store = MemoryRepository()
    for number in range(3):
        await stage.add({f"/{number}": {"n": number}})
    edge = stage.subscriber("edge", store, editable=True)
    await edge.wait_until(IDLE)
    clone = store.clone()
    await stage.add({"/3": {"n": 3}})
    other = stage.subscriber("other", clone, editable=True)
    await asyncio.sleep(1)
    assert content(clone) == content(store) and other.imported == 1
    assert [(each.subscriber, each.offset) for each in await stage.statuses()].count(
        ("other", 3)
    ) == 1
    assert not [each for each in await stage.statuses() if each.subscriber == "other"][1:]
    await edge.close()
    await other.close()


@story
async def test_a_store_that_is_opened_again_goes_on_where_it_was(stage: Stage) -> None:
    store = PickyRepository()
    await stage.add({"/a": {"n": 1}})
    edge = stage.subscriber("edge", store)
    await edge.wait_until(IDLE)
    await edge.close()
    await stage.add({"/b": {"n": 2}})
    store.refused["/a"] = BROKEN  # it would be seen if it were imported again
    edge = stage.subscriber("edge", store)
    await edge.wait_until(IDLE)
    assert content(store) == {"/a": 1, "/b": 2} and edge.imported == 1
    await edge.close()


@story
async def test_what_invalidates_is_handed_to_who_wants_to_know(stage: Stage) -> None:
    told: list[list[str]] = []
    edge = stage.subscriber(invalidate=lambda paths: told.append(list(paths)))
    await stage.invalidate("/pages")
    await stage.test()
    await asyncio.sleep(1)
    assert told == [["/pages"]]
    assert edge.progress[0].offset == 0 and edge.progress[0].number == 1
    await asyncio.sleep(60)
    assert edge.progress[0].offset == 1  # the test was passed over, and that was saved later
    await edge.close()


@story
async def test_packages_of_others_are_passed_over_and_saved_every_ten(stage: Stage) -> None:
    store = PickyRepository()
    for number in range(25):
        await stage.add({f"/{number}": {"n": number}}, publisher="other")
    await stage.add({"/mine": {"n": 0}})
    edge = stage.subscriber("edge", store)
    await edge.wait_until(IDLE)
    assert content(store) == {"/mine": 0}
    await edge.close()
    before = store.commits
    for number in range(12):
        await stage.add({f"/{number}": {"n": number}}, publisher="other")
    edge = stage.subscriber("edge", store)
    await edge.wait_until(IDLE)
    assert store.commits == before + 1  # ten or more at once
    await edge.close()


@story
async def test_one_store_takes_in_several_publishers(stage: Stage) -> None:
    store = MemoryRepository()
    edge = stage.subscriber("edge", store, of=("site", "shop"))
    await stage.add({"/site": {"n": 1}}, publisher="site")
    await stage.add({"/shop": {"n": 2}}, publisher="shop")
    await stage.add({"/none": {"n": 3}}, publisher="none")
    await asyncio.sleep(1)
    assert content(store) == {"/site": 1, "/shop": 2}
    await edge.close()
    # One more publisher: its packages are taken in from the beginning, the others' not again.
    edge = stage.subscriber("edge", store, of=("site", "shop", "none"))
    await edge.wait_until(IDLE)
    assert content(store) == {"/site": 1, "/shop": 2, "/none": 3} and edge.imported == 1
    assert [each.number for each in edge.progress] == [1, 1, 1]
    await edge.close()


# --- packages that fail -----------------------------------------------------------------------


@story
async def test_a_package_that_fails_is_tried_again_less_and_less_often(stage: Stage) -> None:
    store = PickyRepository()
    store.refused["/bad"] = BROKEN
    for path in ("/a", "/bad", "/c"):
        await stage.add({path: {"n": 1}})
    edge = stage.subscriber("edge", store)
    await edge.wait_until(RETRYING)
    assert content(store) == {"/a": 1}, "what is before it is taken in"
    loop = asyncio.get_running_loop()
    began, pauses = loop.time(), []
    for failures in range(2, 12):
        while edge.progress[0].retries < failures:  # noqa: ASYNC110
            await asyncio.sleep(0.5)
        pauses.append(round(loop.time() - began))
        began = loop.time()
    assert pauses[:8] == [5, 10, 20, 40, 80, 160, 320, 640] and pauses[9] == 900
    said = (await stage.discoveries())[-1].progress[0]
    assert (said.retries, said.reason) == (11, "no such room") and said.offset == 0
    store.refused.clear()
    await asyncio.sleep(900)
    assert content(store) == {"/a": 1, "/bad": 1, "/c": 1}
    assert (edge.progress[0].retries, edge.progress[0].reason) == (0, "")
    assert await outcomes(stage) == []
    await edge.close()


@story
async def test_it_gives_up_and_counts_anew_for_the_next_package(stage: Stage) -> None:
    store = PickyRepository()
    store.refused |= {"/bad": BROKEN, "/worse": BROKEN}
    for path in ("/a", "/bad", "/worse", "/d"):
        await stage.add({path: {"n": 1}})
    edge = stage.subscriber("edge", store, retries_max=2)
    await asyncio.sleep(14.5)
    assert edge.progress[0].retries == 2
    await asyncio.sleep(1)  # 5 + 10 seconds: the third attempt was the last one
    assert edge.progress[0].retries == 1 and edge.progress[0].offset == 1
    await asyncio.sleep(15)
    assert content(store) == {"/a": 1, "/d": 1}
    failed = ImportOutcome.REMOVED_FAILED
    assert await outcomes(stage) == [(1, failed), (2, failed)]
    status = (await stage.statuses())[0]
    assert (status.attempts, status.reason, status.number) == (3, "no such room", 2)
    await edge.close()


class LateRefusal(PickyRepository):
    """A store that finds out when it commits, and whose commits wait for one another."""

    def __init__(self, refused: str) -> None:
        super().__init__()
        self.attempts = 0
        self.before_commit = self._refuse
        self._refused = refused
        self._touched: list[str] = []

    def change(self) -> Any:
        changes = super().change()
        put = changes.put
        self._touched.clear()

        def touch(path: str, *args: Any) -> None:
            self._touched.append(path)
            put(path, *args)

        changes.put = touch
        return changes

    def commit_delay_ms(self) -> int:
        return 1_000

    def _refuse(self) -> None:
        self.attempts += 1
        if self._refused in self._touched:
            raise BROKEN


@pytest.mark.parametrize("bad", [0, 1, 69, 99])
def test_of_many_packages_in_one_commit_the_one_that_fails_is_found_in_a_few_attempts(
    bad: int,
) -> None:
    async def play() -> None:
        stage, store = Stage(), LateRefusal(f"/{bad}")
        for number in range(100):
            await stage.add({f"/{number}": {"n": 1}})
        edge = stage.subscriber("edge", store, retries_max=0)
        await edge.wait_until(IDLE)
        assert content(store) == {f"/{number}": 1 for number in range(100) if number != bad}
        assert store.commits <= 12 and store.attempts <= 22, "halved: 100, 50, 25, 13, 7, 4, 2, 1"
        assert await outcomes(stage) == [(bad, ImportOutcome.REMOVED_FAILED)]
        await edge.close()

    run(play())


@story
async def test_what_is_not_the_packages_fault_is_never_given_up_on(stage: Stage) -> None:
    store = PickyRepository()
    store.refused["/a"] = Unavailable("the disk is away")
    await stage.add({"/a": {"n": 1}})
    edge = stage.subscriber("edge", store, retries_max=0)
    await asyncio.sleep(3_600)
    assert edge.condition is RETRYING and await outcomes(stage) == []
    store.refused.clear()
    await asyncio.sleep(900)
    assert content(store) == {"/a": 1}
    await edge.close()


@story
async def test_a_message_that_it_cannot_read_stops_it_and_is_told(stage: Stage) -> None:
    store = MemoryRepository()
    await stage.add({"/a": {"n": 1}})
    edge = stage.subscriber("edge", store)
    await edge.wait_until(IDLE)
    await stage.journal.append(ContentTopic.PACKAGES.topic, 1, [b"\xc1"])
    running = await stage.service.running()
    running.packages._taken = lambda entries: None
    await running.packages.take_up()
    await asyncio.sleep(30)
    assert edge.condition is SubscriberCondition.STUMBLING and "at offset 1" in edge.reason
    assert content(store) == {"/a": 1}
    await edge.close()


@story
async def test_a_commit_that_fails_after_it_was_made_is_not_made_again(stage: Stage) -> None:
    store = MemoryRepository()
    edge = stage.subscriber("edge", store)
    await edge.wait_until(IDLE)
    failures = [Unavailable("the connection broke")]

    def break_once() -> None:
        if failures:
            raise failures.pop()

    store.after_commit = break_once
    await stage.add({"/a": {"n": 1}})
    await asyncio.sleep(1)
    await stage.add({"/b": {"n": 2}})
    await asyncio.sleep(30)
    assert content(store) == {"/a": 1, "/b": 2} and edge.progress[0].number == 2
    assert edge.condition is IDLE
    await edge.close()


# --- commands ---------------------------------------------------------------------------------


@story
async def test_a_clear_wakes_a_stuck_retry_and_is_remembered(stage: Stage) -> None:
    store = PickyRepository()
    store.refused["/bad"] = BROKEN
    for path in ("/a", "/bad", "/c", "/d"):
        await stage.add({path: {"n": 1}})
    edge = stage.subscriber("edge", store, editable=True)
    await asyncio.sleep(300)
    assert edge.condition is RETRYING
    await stage.command(ClearQueue("one", "edge", "site", 2))
    await asyncio.sleep(1)
    assert content(store) == {"/a": 1, "/d": 1}
    removed, imported = ImportOutcome.REMOVED, ImportOutcome.IMPORTED
    assert await outcomes(stage) == [(0, imported), (1, removed), (2, removed), (3, imported)]
    await stage.command(ClearQueue("two", "edge", "site", 1))  # it only moves up
    await asyncio.sleep(1)
    assert edge.progress[0].cleared == 2
    await edge.close()
    edge = stage.subscriber("edge", store, editable=True)
    await edge.wait_until(IDLE)
    assert edge.progress[0].cleared == 2
    await edge.close()


@story
async def test_a_command_that_was_given_while_it_was_away_comes_first(stage: Stage) -> None:
    store = MemoryRepository()
    edge = stage.subscriber("edge", store, editable=True)
    await edge.wait_until(IDLE)
    await edge.close()
    for path in ("/a", "/b"):
        await stage.add({path: {"n": 1}})
    await stage.command(ClearQueue("one", "edge", "site", 0))
    edge = stage.subscriber("edge", store, editable=True)
    await edge.wait_until(IDLE)
    assert content(store) == {"/b": 1}
    await edge.close()


@story
async def test_the_queue_of_one_that_is_not_editable_stays(stage: Stage) -> None:
    store = PickyRepository()
    store.refused["/bad"] = BROKEN
    await stage.add({"/bad": {"n": 1}})
    edge = stage.subscriber("edge", store)
    await edge.wait_until(RETRYING)
    await stage.command(ClearQueue("one", "edge", "site", 0))
    await stage.command(RemovePackage("two", "edge", "site", 0))
    await asyncio.sleep(60)
    assert edge.condition is RETRYING and edge.progress[0].number == 0
    await edge.close()


@story
async def test_one_package_is_removed_and_its_neighbours_are_not(stage: Stage) -> None:
    store = PickyRepository()
    store.refused["/bad"] = BROKEN
    for path in ("/bad", "/b", "/c"):
        await stage.add({path: {"n": 1}})
    edge = stage.subscriber("edge", store, editable=True)
    await edge.wait_until(RETRYING)
    await stage.command(RemovePackage("one", "edge", "site", 1))
    await stage.command(RemovePackage("two", "edge", "site", 0))
    await asyncio.sleep(2)
    assert content(store) == {"/c": 1}
    removed = ImportOutcome.REMOVED
    assert await outcomes(stage) == [(0, removed), (1, removed), (2, ImportOutcome.IMPORTED)]
    await edge.close()


@story
async def test_a_retry_changes_only_what_nothing_newer_has_touched(stage: Stage) -> None:
    store = PickyRepository()
    await stage.add({"/p": {"n": 0}, "/p/old": {"n": 0}, "/p/old/deep": {"n": 0}})
    store.refused["/p"] = BROKEN  # the next one is refused as a whole
    tree = {"/p": {"n": 1}, "/p/a": {"n": 1}, "/p/b": {"n": 1}, "/p/c": {"n": 1}}
    await stage.add(tree | {"/p/c/d": {"n": 1}}, deep="/p")
    edge = stage.subscriber("edge", store, retries_max=0)
    await asyncio.sleep(1)
    edge_offset = 1
    store.refused.clear()
    await stage.add({"/p/a": {"n": 2}})
    await stage.add({"/p/b": {"n": 2}})
    await stage.delete("/p/b")
    await stage.add({"/p/old/deep": {"n": 2}})
    await asyncio.sleep(1)
    for command in ("one", "one"):  # the same one again changes nothing
        await stage.command(RetryPackage(command, "edge", "site", edge_offset))
    await asyncio.sleep(1)
    expected = {"/p": 1, "/p/a": 2, "/p/c": 1, "/p/c/d": 1, "/p/old/deep": 2}
    assert content(store) == expected, "as if it had been imported in its turn"
    failed = ImportOutcome.REMOVED_FAILED
    assert (await outcomes(stage))[-2:] == [(1, failed), (1, ImportOutcome.IMPORTED)]
    assert store.offset_of("/p/c") == edge_offset
    await edge.close()


@story
async def test_a_retry_that_fails_is_told_and_can_be_asked_for_again(stage: Stage) -> None:
    store = PickyRepository()
    store.refused["/bad"] = BROKEN
    await stage.add({"/bad": {"n": 1}})
    edge = stage.subscriber("edge", store, retries_max=0)
    await asyncio.sleep(1)
    await stage.command(RetryPackage("one", "edge", "site", 0))
    await asyncio.sleep(1)
    store.refused.clear()
    await stage.command(RetryPackage("two", "edge", "site", 0))
    await stage.command(RetryPackage("three", "edge", "site", 0))
    await asyncio.sleep(1)
    assert content(store) == {"/bad": 1}
    failed = ImportOutcome.REMOVED_FAILED
    assert await outcomes(stage) == [(0, failed), (0, failed), (0, ImportOutcome.IMPORTED)]
    await edge.close()


@story
async def test_a_retry_that_was_made_and_not_confirmed_is_not_made_again(stage: Stage) -> None:
    store = PickyRepository()
    store.refused["/bad"] = BROKEN
    await stage.add({"/bad": {"n": 1}})
    edge = stage.subscriber("edge", store, retries_max=0)
    await asyncio.sleep(1)
    store.refused.clear()
    failures = [Unavailable("the connection broke")]

    def break_once() -> None:
        if failures:
            store.refused["/bad"] = BROKEN  # it would be seen if it were imported again
            raise failures.pop()

    store.after_commit = break_once
    await stage.command(RetryPackage("one", "edge", "site", 0))
    await asyncio.sleep(5)
    assert content(store) == {"/bad": 1} and edge.condition is IDLE
    outcome = (await outcomes(stage))[-1]
    assert outcome == (0, ImportOutcome.IMPORTED)
    await edge.close()


# --- preconditions ----------------------------------------------------------------------------


@story
async def test_a_precondition_accepts_skips_and_holds_back(stage: Stage) -> None:
    store, answers = MemoryRepository(), {"/b": Admission.SKIP, "/c": Admission.WAIT}

    def check(package: Package, offset: int) -> Admission:
        return answers.get(package.paths[0], Admission.ACCEPT)

    for path in ("/a", "/b", "/c"):
        await stage.add({path: {"n": 1}})
    edge = stage.subscriber("edge", store, precondition=check)
    await edge.wait_until(WAITING)
    assert content(store) == {"/a": 1}
    answers["/c"] = Admission.ACCEPT
    await asyncio.sleep(2)
    assert content(store) == {"/a": 1, "/c": 1}
    assert await outcomes(stage) == [(1, ImportOutcome.REMOVED)]
    await edge.close()


@story
async def test_a_staged_subscriber_imports_only_what_the_golden_one_has(stage: Stage) -> None:
    gold, store = PickyRepository(), MemoryRepository()
    gold.refused["/bad"] = BROKEN
    edge = stage.subscriber("edge", store, only_after="golden")
    for path in ("/a", "/bad", "/c"):
        await stage.add({path: {"n": 1}})
    await asyncio.sleep(60)
    assert edge.condition is WAITING and content(store) == {}
    golden = stage.subscriber("golden", gold, retries_max=1)
    await asyncio.sleep(4)
    assert content(store) == {"/a": 1}
    await asyncio.sleep(10)
    assert content(store) == content(gold) == {"/a": 1, "/c": 1}
    await edge.close()
    await golden.close()


# --- what the log no longer keeps -------------------------------------------------------------


@story
async def test_it_does_not_skip_what_the_log_no_longer_keeps(stage: Stage) -> None:
    store = MemoryRepository()
    await stage.add({"/0": {"n": 0}})
    edge = stage.subscriber("edge", store)
    await edge.wait_until(IDLE)
    await edge.close()
    for number in range(1, 5):
        await stage.add({f"/{number}": {"n": number}})
    stage.journal.discard(ContentTopic.PACKAGES.topic, 1, 3)
    edge = stage.subscriber("edge", store)
    await edge.wait_until(NEEDS_SEEDING)
    assert "package 2 of site" in edge.reason and "package 4" in edge.reason
    await asyncio.sleep(60)
    assert content(store) == {"/0": 0} and edge.condition is NEEDS_SEEDING
    assert "package 2 of site" in (await stage.discoveries())[-1].progress[0].reason
    await edge.close()
    edge = stage.subscriber("edge", store, accepts_gap=True)
    await edge.wait_until(IDLE)
    assert content(store) == {"/0": 0, "/3": 3, "/4": 4}
    await edge.close()


@story
async def test_it_doubts_a_log_that_has_nothing_left_until_the_next_package(stage: Stage) -> None:
    store, lucky = MemoryRepository(), MemoryRepository()
    await stage.add({"/0": {"n": 0}})
    for each in (store, lucky):
        edge = stage.subscriber("edge", each)
        await edge.wait_until(IDLE)
        await edge.close()
    await stage.add({"/x": {"n": 0}}, publisher="other")
    stage.journal.discard(ContentTopic.PACKAGES.topic, 1, 2)
    edge = stage.subscriber("edge", lucky)
    await edge.wait_until(NEEDS_SEEDING)
    assert "or may be" in edge.reason
    await stage.add({"/1": {"n": 1}})  # its number shows that nothing is missing
    await asyncio.sleep(1)
    assert edge.condition is IDLE and content(lucky) == {"/0": 0, "/1": 1}
    await edge.close()


@story
async def test_the_node_remembers_whether_something_is_missing(stage: Stage) -> None:
    """Nothing of the log is left, and no package comes: what was published is counted."""
    store, empty = MemoryRepository(), MemoryRepository()
    await stage.add({"/0": {"n": 0}})
    edge = stage.subscriber("edge", store)
    await edge.wait_until(IDLE)
    await edge.close()
    await stage.add({"/x": {"n": 0}}, publisher="other")
    await stage.restart()  # what it knows is on the log
    stage.journal.discard(ContentTopic.PACKAGES.topic, 1, 2)
    edge = stage.subscriber("edge", store)
    new = stage.subscriber("new", empty)
    other = stage.subscriber("third", of=("third",))
    await asyncio.sleep(1)
    assert edge.condition is IDLE, "it has all that was published"
    assert new.condition is NEEDS_SEEDING and "packages of site" in new.reason
    assert other.condition is IDLE, "nothing was published"
    for each in (edge, new, other):
        await each.close()


@story
async def test_a_seed_has_the_same_publishers(stage: Stage) -> None:
    await stage.add({"/0": {"n": 0}})
    edge = stage.subscriber("edge", of=("site", "shop"))
    await edge.wait_until(IDLE)
    await stage.command(TakeSnapshot("one", "edge", "content/snapshots/1"))
    new = stage.subscriber("new", seed_from="edge")
    await new.wait_until(NEEDS_SEEDING)
    await asyncio.sleep(11)
    assert "takes in shop, site and this one site" in new.reason
    await edge.close()
    await new.close()


@story
async def test_a_new_subscriber_begins_with_what_another_one_stored(stage: Stage) -> None:
    store, seeded = MemoryRepository(), MemoryRepository()
    await stage.add({"/a": {"n": 1, "data": b"a" * 100_000}, "/a/b": {"data": b"a" * 100_000}})
    await stage.add({"/c": {"n": 2}})
    edge = stage.subscriber("edge", store)
    await edge.wait_until(IDLE)
    stage.journal.discard(ContentTopic.PACKAGES.topic, 1, 2)
    new = stage.subscriber("new", seeded, seed_from="edge")
    await new.wait_until(NEEDS_SEEDING)
    assert "holdfast content snapshot" in new.reason
    await stage.command(TakeSnapshot("one", "edge", "content/snapshots/edge/1"))
    await asyncio.sleep(15)
    assert new.condition is IDLE and tree_of(seeded) == tree_of(store)
    assert new.progress == edge.progress and new.imported == 0
    await stage.add({"/d": {"n": 3}})
    await asyncio.sleep(1)
    assert tree_of(seeded) == tree_of(store) and new.imported == 1
    assert seeded.offset_of("/c") == 1
    # One that is too far behind is filled anew.
    old = MemoryRepository()
    late = stage.subscriber("late", old, seed_from="edge")
    await late.wait_until(IDLE)
    assert tree_of(old) == tree_of(store)
    for each in (edge, new, late):
        await each.close()


# --- what it says -----------------------------------------------------------------------------


@story
async def test_it_says_that_it_is_there_every_ten_seconds_and_after_packages(stage: Stage) -> None:
    edge = stage.subscriber()
    await edge.wait_until(IDLE)
    await asyncio.sleep(60)
    quiet = await stage.discoveries()
    assert 6 <= len(quiet) <= 10
    await stage.add({"/a": {"n": 1}})
    await asyncio.sleep(0.5)
    assert (await stage.discoveries())[-1].progress[0].number == 1
    await edge.close()


@story
async def test_two_stores_under_one_name_are_told(stage: Stage) -> None:
    edge = stage.subscriber(store_id="one")
    other = stage.subscriber(store_id="other")
    for number in range(3):
        await stage.add({f"/{number}": {"n": number}})
        await asyncio.sleep(10)
    [view] = await stage.service.subscribers("site")
    assert view.is_doubled and view.store_id in ("one", "other")
    await edge.close()
    await other.close()


@story
async def test_it_is_ready_when_it_was_idle_and_stays_so(stage: Stage) -> None:
    edge = stage.subscriber()
    await edge.wait_until(IDLE)
    await asyncio.sleep(9)
    assert not edge.ready
    await asyncio.sleep(2)
    assert edge.ready and (await stage.discoveries())[-1].ready
    await edge.close()


@story
async def test_what_could_not_be_reported_is_reported_after_a_restart(stage: Stage) -> None:
    store = MemoryRepository()
    edge = stage.subscriber("edge", store, editable=True)
    await edge.wait_until(IDLE)
    report = stage.service.report

    async def away(statuses: Any) -> None:
        raise Unavailable("the network is down")

    stage.service.report = away  # type: ignore[method-assign]
    await stage.add({"/a": {"n": 1}})
    await asyncio.sleep(5)
    assert content(store) == {"/a": 1} and await outcomes(stage) == []
    await edge.close()
    stage.service.report = report  # type: ignore[method-assign]
    edge = stage.subscriber("edge", store, editable=True)
    await asyncio.sleep(1)
    assert await outcomes(stage) == [(0, ImportOutcome.IMPORTED)]
    await edge.close()


@pytest.mark.parametrize("failing", ["read", "announce"])
def test_it_goes_on_when_the_log_comes_back(failing: str) -> None:
    async def told() -> None:
        stage, store = Stage(), MemoryRepository()
        works = getattr(stage.service, failing)

        async def away(*args: Any, **options: Any) -> Any:
            raise Unavailable("the network is down")

        setattr(stage.service, failing, away)
        edge = stage.subscriber("edge", store)
        await asyncio.sleep(30)
        assert edge.condition is SubscriberCondition.STUMBLING
        setattr(stage.service, failing, works)
        await stage.add({"/a": {"n": 1}})
        await asyncio.sleep(20)
        assert content(store) == {"/a": 1}
        await edge.close()

    run(told())
