"""Members over one log: partitions spread, move, are taken over and fenced, and nothing is lost."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.brokered.in_process import PARTITIONS, Members

from holdfast.engine.jobs.values import JobIntent, NewJob
from holdfast.engine.kernel import Command
from holdfast.engine.kernel.runner import TOPIC
from holdfast.errors import HoldfastError, InvalidState, NotFound
from holdfast.gateway.groups.shapes import (
    GroupPartitionQuery,
    NewSession,
    PartitionMove,
    PartitionToken,
)
from holdfast.gateway.tasks.shapes import TaskQuery
from holdfast.records import ValueType


def story(tmp_path: Path, told: Any, **config: Any) -> None:
    async def run() -> None:
        members = Members(tmp_path, **config)
        try:
            await told(members)
            await members.check()
        finally:
            await members.close()

    asyncio.run(run())


def test_members_share_the_partitions_and_answer_for_all_of_them(tmp_path: Path) -> None:
    async def told(members: Members) -> None:
        await members.start("a")
        assert members.counts() == {"a": PARTITIONS}
        await members.submit(12)
        await members.start("b", "c")
        assert set(members.counts().values()) == {2}
        await members.submit(36)
        status = await members.members["b"].node.gateway.cluster.status()
        assert [each.member for each in status.members] == ["a", "b", "c"]
        assert {each.state for each in status.partitions} == {"HEALTHY"}
        assert (status.etcd, status.journal) == ("NONE", "memory://test")
        assert status.problems == []
        assert not (tmp_path / "a" / "journal").exists()

    story(tmp_path, told)


def test_what_a_lost_member_owned_is_taken_over_and_it_is_fenced(tmp_path: Path) -> None:
    async def told(members: Members) -> None:
        await members.start("a", "b", "c")
        await members.submit(24)
        lost = members.owner(1)
        zombie = await members.drop(lost)
        assert 1 in zombie.owned()
        await members.settled()
        await members.submit(24)
        epochs = {each.partition: each.epoch for each in _placements(members)}
        for partition in list(zombie.owned()):
            command = Command(ValueType.JOB, JobIntent.CREATE, 0, NewJob("mail", b"late"))
            with pytest.raises(HoldfastError):
                async with asyncio.timeout(1):
                    await zombie.node.runner.submit(partition, [command])
        assert zombie.owned() == []
        await asyncio.sleep(0.2)  # it does not take them again
        assert epochs == {each.partition: each.epoch for each in _placements(members)}
        await members.submit(24)
        numbers = [m.node.metrics.cluster.numbers() for m in members.members.values()]  # type: ignore
        assert sum(each.take_overs for each in numbers) == 2

    story(tmp_path, told)


def _placements(members: Members) -> Any:
    return next(iter(members.members.values())).place.placements.all()


def test_a_partition_is_moved_by_hand_and_stays_until_members_change(tmp_path: Path) -> None:
    async def told(members: Members) -> None:
        await members.start("a", "b")
        partition = members.members["a"].owned()[0]
        desk = members.members["a"].node.gateway.cluster
        await desk.move(str(partition), "b")
        assert members.owner(partition) == "b"
        await members.submit(12)
        await members.settled()  # another one goes the other way
        assert members.owner(partition) == "b"
        with pytest.raises(NotFound, match="there are a, b"):
            await desk.move(str(partition), "z")
        with pytest.raises(InvalidState, match="no cuts"):
            await desk.order()
        with pytest.raises(InvalidState, match="not registered"):
            await desk.remove("b")
        await members.start("c")
        assert set(members.counts().values()) == {2}
        await members.submit(12)

    story(tmp_path, told)


def test_operators_see_and_use_the_group_of_members_like_any_other(tmp_path: Path) -> None:
    async def told(members: Members) -> None:
        await members.start("a", "b")
        member = members.members["a"]
        groups = member.node.gateway.groups
        await members.until(
            lambda: {each.state for each in member.group.partitions().values()} == {"RUNNING"}
        )
        (shown,) = await groups.groups()
        assert (shown.group, shown.partitions, shown.running) == ("test", PARTITIONS, PARTITIONS)
        assert [each.member.partition("/")[0] for each in shown.members] == ["a", "b"]
        (counted,) = member.node.metrics.groups.numbers()
        assert (counted.group, counted.members, counted.owned) == ("test", 2, PARTITIONS)
        assert counted.epoch == shown.epoch and counted.rebalances > 0 == counted.alarms
        page = await groups.partitions("test", GroupPartitionQuery(member="a"))
        token = page.items[0].token
        await groups.move("test", PartitionMove(token, "b"))
        await members.until(lambda: int(token) in members.members["b"].owned())
        await members.settled()
        with pytest.raises(NotFound, match="'nobody'"):
            await groups.move("test", PartitionMove(token, "nobody"))
        with pytest.raises(NotFound, match="'99'"):
            await groups.park("test", PartitionToken("99"))
        with pytest.raises(InvalidState, match="choose another name"):
            await groups.join("test", NewSession("c/1"))
        with pytest.raises(NotFound, match="'other'"):
            await groups.group("other")

    story(tmp_path, told)


def test_a_member_drains_under_load_and_stops_and_nobody_notices(tmp_path: Path) -> None:
    async def told(members: Members) -> None:
        await members.start("a", "b", "c")
        load = asyncio.create_task(members.submit(300))
        desk = members.members["a"].node.gateway.cluster
        await desk.drain("b")
        await members.until(lambda: members.members["b"].owned() == [])
        status = await desk.status()
        assert [each.state for each in status.members] == ["UP", "DRAINING", "UP"]
        await load
        await desk.drain("b", False)
        await members.settled()
        leaving = members.members["b"]
        await leaving.leave()
        assert leaving.owned() == []
        await members.members.pop("b").close()
        await members.settled()
        assert set(members.members["a"].roster.cards) == {"a", "c"}
        await members.submit(24)
        await members.start("b")
        await members.submit(24)

    story(tmp_path, told)


def test_a_partition_that_cannot_be_opened_is_parked_alone_and_retried(tmp_path: Path) -> None:
    async def told(members: Members) -> None:
        await members.start("a")
        member = members.members["a"]
        opened, failures = member.node.runner.open, [1]

        async def fails(partition: int, epoch: int | None = None) -> None:
            if partition == 3 and failures[0]:
                failures[0] -= 1
                raise NotFound("no such thing")
            await opened(partition, epoch)

        member.node.runner.open = fails
        member.node.runner.lose(3)
        await members.until(lambda: any("parked" in each for each in member.problems()))
        await members.submit(0)
        assert member.owned() == [1, 2, 4, 5, 6]
        await members.settled()
        await members.until(lambda: member.problems() == [])

    story(tmp_path, told)


@pytest.mark.parametrize("standbys", [True, False])
def test_a_new_member_begins_with_stored_snapshots_where_the_log_was_cut(
    tmp_path: Path, standbys: bool
) -> None:
    store = str(tmp_path / "store")

    async def told(members: Members) -> None:
        await members.start("a")
        first = members.members["a"]
        for _ in range(3):
            await members.submit(60)
            await first.node.take_snapshot()
        cut = {each: members.kept.bounds(TOPIC, each).earliest for each in range(1, PARTITIONS + 1)}
        assert all(cut.values())
        await members.start("b")
        await members.submit(24)
        await members.drop("a")
        await members.settled()
        assert members.counts() == {"b": PARTITIONS}
        await members.submit(24)
        found = await members.members["b"].node.gateway.tasks.page(TaskQuery(limit=1_000))
        assert len(found.items) == len(members.submitted)

    # no more of the log is kept than has to be
    story(tmp_path, told, snapshot_store=store, cluster_standbys=standbys, ended_kept_max=0)
