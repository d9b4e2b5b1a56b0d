"""A member around its core: starts, hand-overs, parked partitions, and a log that fails."""

import asyncio

import pytest
from tests.groups.members import World

from holdfast.errors import Unavailable
from holdfast.groups.api import NewPartition
from holdfast.groups.journal_log import JournalSyncLog
from holdfast.groups.messages import Ask, AskKind, asking, encode
from holdfast.testing import run

TOKENS = [f"p{number}" for number in range(6)]


def test_the_first_member_runs_all_partitions_and_commits_their_offsets() -> None:
    async def story() -> None:
        world = World()
        group = world.start("a", TOKENS)
        await asyncio.sleep(3.5)
        assert sorted(world.works["a"].running) == TOKENS == group.owned
        assert {each.offset for each in group.partitions().values()} == {4}
        assert group.watermark == 4
        await world.close()

    run(story())


def test_a_second_member_gets_half_with_the_offsets_of_the_first() -> None:
    async def story() -> None:
        world = World()
        world.start("a", TOKENS)
        await asyncio.sleep(3.5)
        world.start("b", TOKENS)
        await asyncio.sleep(3)
        world.check_one_owner(TOKENS)
        assert world.load() == {"a": 3, "b": 3}
        for member, _, _, offset in world.ran:
            assert offset in ((None,) if member == "a" else (4, 5)), world.ran
        await world.close()

    run(story())


def test_a_member_that_leaves_hands_over_and_one_that_dies_is_replaced() -> None:
    async def story() -> None:
        world = World()
        for name in "abc":
            world.start(name, TOKENS)
        await asyncio.sleep(2.5)
        assert world.load() == {"a": 2, "b": 2, "c": 2}
        await world.stop("b")
        await asyncio.sleep(1)
        world.check_one_owner(TOKENS)
        await world.kill("a")  # it leads
        await asyncio.sleep(1)
        world.check_one_owner(TOKENS)
        assert world.load() == {"c": 6}
        last = {token: offset for member, token, _, offset in world.ran if member == "c"}
        assert all(offset >= 2 for offset in last.values() if offset is not None)
        await world.close()

    run(story())


def test_a_partition_that_fails_is_parked_alone_and_tried_again() -> None:
    async def story() -> None:
        world = World()
        group = world.start("a", TOKENS)
        await asyncio.sleep(1.5)
        world.works["a"].raises["p3"] = ValueError("no answer from p3")
        await asyncio.sleep(1)
        parked = group.partitions()["p3"]
        assert parked.state == "PARKED" and "no answer from p3" in (parked.error or "")
        assert sorted(world.works["a"].running) == [each for each in TOKENS if each != "p3"]
        del world.works["a"].raises["p3"]
        await asyncio.sleep(2)
        world.check_one_owner(TOKENS)
        assert group.partitions()["p3"].error is None
        assert [each[:2] for each in world.ran].count(("a", "p4")) == 1, "nobody else noticed"
        await world.close()

    run(story())


def test_operators_move_park_and_resume() -> None:
    async def story() -> None:
        world = World()
        world.start("a", ["p0", "p1"])
        world.start("b")
        await asyncio.sleep(2)
        [owner] = world.owners()["p0"]
        other = {"a": "b", "b": "a"}[owner]
        log = world.log()
        await log.append(encode(asking("operator/0", (Ask(AskKind.MOVE, "p0", other),))))
        await asyncio.sleep(1)
        assert world.owners()["p0"] == [other]
        await log.append(encode(asking("operator/0", (Ask(AskKind.PARK, "p0"),))))
        await asyncio.sleep(1)
        assert "p0" not in world.owners()
        await asyncio.sleep(100)
        assert "p0" not in world.owners(), "it stays parked"
        await log.append(encode(asking("operator/0", (Ask(AskKind.RESUME, "p0"),))))
        await asyncio.sleep(1)
        assert world.owners()["p0"] == [other]
        await world.close()

    run(story())


def test_a_partition_splits_and_its_children_merge() -> None:
    async def story() -> None:
        world = World()
        ran: list[tuple[str, object]] = []

        class Splitting:
            async def run(self, owned) -> None:
                ran.append((owned.token, owned.offset))
                owned.commit(7)
                if owned.token == "root":
                    owned.split(["left", "right"])
                elif owned.token in ("left", "right"):
                    owned.merge("whole", ["left", "right"])
                else:
                    await owned.leaving()

        from holdfast.groups.local import LocalMembership
        from holdfast.groups.running import Group

        group = Group(
            "tree", "a", world.log(), lambda member: LocalMembership(world.hub, member),
            Splitting(), partitions=[NewPartition("root")],
        )  # fmt: skip
        task = asyncio.get_running_loop().create_task(group.run())
        await asyncio.sleep(1)
        assert [token for token, _ in ran] == ["root", "left", "right", "whole"]
        assert group.owned == ["whole"]
        states = {token: each.state for token, each in group.partitions().items()}
        assert states == {"left": "FINISHED", "right": "FINISHED", "whole": "RUNNING"}, states
        group.stop()
        await task

    run(story())


class FailingLog(JournalSyncLog):
    """A log that can be away for one member."""

    is_away = False

    async def append(self, body: bytes) -> None:
        if self.is_away:
            raise Unavailable("the log is away")
        await super().append(body)

    async def stream(self, offset: int):  # type: ignore[override]
        async for entries in super().stream(offset):
            if self.is_away:
                raise Unavailable("the log is away")
            yield entries
            offset = entries[-1].offset + 1


def test_a_member_without_the_log_stops_its_work_and_comes_back_with_a_fresh_epoch() -> None:
    async def story() -> None:
        world = World()
        log = FailingLog(world.journal, "sync")
        world.start("a", TOKENS)
        world.start("b", TOKENS, log=log)
        await asyncio.sleep(2)
        assert world.load() == {"a": 3, "b": 3}
        first = world.groups["b"].member
        log.is_away = True
        await asyncio.sleep(20)
        assert world.load() == {"a": 6, "b": 0}, "the others have its partitions"
        log.is_away = False
        await asyncio.sleep(10)
        world.check_one_owner(TOKENS)
        assert world.load() == {"a": 3, "b": 3}
        assert world.groups["b"].member != first
        epochs = [epoch for member, _, epoch, _ in world.ran if member == "b"]
        assert min(epochs[3:]) > max(epochs[:3])
        await world.close()

    run(story())


def test_a_member_that_is_not_held_stops_at_once_and_joins_anew() -> None:
    async def story() -> None:
        world = World()
        from holdfast.groups.local import LocalMembership

        held = {"is": True}

        class Held(LocalMembership):
            @property
            def is_held(self) -> bool:
                return held["is"]

        world.start("a", TOKENS, membership=lambda member: Held(world.hub, member))
        await asyncio.sleep(1.5)
        assert world.load() == {"a": 6}
        held["is"] = False
        await asyncio.sleep(0.07)
        assert world.load() == {"a": 0}
        held["is"] = True
        await asyncio.sleep(3)
        assert world.load() == {"a": 6}
        await world.close()

    run(story())


def test_a_start_reads_what_the_log_keeps_after_a_discard() -> None:
    async def story() -> None:
        world = World()
        world.start("a", TOKENS)
        await asyncio.sleep(2)
        for name in ("b", "c", "d"):
            world.start(name)
            await asyncio.sleep(1)
        assert world.log().bounds().earliest > 0, "epochs make what is before them unnecessary"
        await world.stop("a")
        await asyncio.sleep(1)
        group = world.start("e")
        await asyncio.sleep(2)
        world.check_one_owner(TOKENS)
        assert set(group.partitions()) == set(TOKENS)
        await world.close()

    run(story())


@pytest.mark.parametrize("appends_lost", [1, 3])
def test_messages_whose_outcome_is_unknown_are_sent_again(appends_lost: int) -> None:
    async def story() -> None:
        from holdfast.errors import Unknown

        world = World()
        left = {"count": appends_lost, "written": True}

        class Losing(JournalSyncLog):
            async def append(self, body: bytes) -> None:
                await super().append(body)
                if left["count"] > 0:
                    left["count"] -= 1
                    raise Unknown("no answer")

        world.start("a", TOKENS, log=Losing(world.journal, "sync"))
        world.start("b", TOKENS)
        await asyncio.sleep(4)
        world.check_one_owner(TOKENS)
        assert not world.groups["a"].alarms
        await world.close()

    run(story())
