"""Whole members in virtual time: work of all kinds goes on over moves and losses."""

import asyncio

import pytest
from tests.cluster.simulated import NAMES, PARTITIONS, SimulatedCluster, play

from holdfast.engine.jobs.values import JobState
from holdfast.errors import (
    Code,
    HoldfastError,
    InvalidState,
    NotFound,
    Unavailable,
    Unknown,
)
from holdfast.gateway.service import Gateway
from holdfast.gateway.tasks.shapes import NewTask
from holdfast.journal.cluster.messages import Fence, Promised
from holdfast.records import partition_of
from holdfast.testing.disk import SimulatedDisk
from known_metrics import check_exported

AWAY_S = 20  # etcd keeps the cuts of 8 s


def test_three_members_divide_the_partitions_and_each_serves_all_of_them() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.start_all()
        assert set(cluster.owners()) == set(range(1, PARTITIONS + 1))
        assert len(set(cluster.owners().values())) > 1
        for name in NAMES:
            keyed = [NewTask("mail", key=f"{name} {number}") for number in range(10)]
            receipts = await cluster.gateway(name).tasks.submit(keyed)
            for other in NAMES:
                found = await cluster.gateway(other).tasks.get(receipts[0].task_key)
                assert found.state is JobState.WAITING
        status = await cluster.gateway("a").cluster.status()
        assert [each.state for each in status.members] == ["UP"] * 3
        assert {each.state for each in status.partitions} == {"HEALTHY"}
        assert (status.etcd, status.problems) == ("AVAILABLE", [])
        await cluster.until(lambda: cluster["b"].publisher.number > 3)
        cuts = await cluster.gateway("c").cluster.cuts(3)
        assert [each.number for each in cuts.items] == sorted(
            (each.number for each in cuts.items), reverse=True
        )
        waiting: dict[str, float] = {}
        for name in NAMES:
            exposition = await cluster.gateway(name).node.metrics()
            check_exported(exposition)
            for line in exposition.decode().splitlines():
                if line.startswith("holdfast_jobs_waiting{"):
                    place, _, count = line.rpartition(" ")
                    assert place not in waiting, "a partition is exported by its owner alone"
                    waiting[place] = float(count)
        assert sum(waiting.values()) == 10.0 * len(NAMES)

    play(story)


def test_a_lost_owner_is_replaced_within_half_a_second_and_nothing_is_lost() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.start_all()
        loop = asyncio.get_running_loop()
        keys: dict[str, str] = {}
        for victim in (*NAMES, *NAMES):
            survivor = next(name for name in NAMES if name != victim)
            owned = [each for each, owner in cluster.owners().items() if owner == victim]
            await cluster.kill(victim)
            # A machine without power says nothing: silence is noticed, then partitions are taken.
            peers = cluster[survivor].peers
            await cluster.until(lambda it=peers, lost=victim: lost not in it.heard())
            began = loop.time()
            for number in range(12):
                key = f"{victim} {len(keys)} {number}"
                keys[key] = await submit(cluster.gateway(survivor), key)
            assert loop.time() - began < 0.5, owned
            await cluster.start(victim)
            await cluster.settled()
        again = await cluster.gateway("a").tasks.submit([NewTask("mail", key=key) for key in keys])
        assert [each.task_key for each in again] == list(keys.values())

    play(story)


async def submit(gateway: Gateway, key: str) -> str:
    """The key of a task, asked for until it is known."""
    while True:
        try:
            (receipt,) = await gateway.tasks.submit([NewTask("mail", key=key)])
        except Unknown:
            continue
        return receipt.task_key


def test_a_drain_hands_everything_over_without_an_unanswered_request() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.start_all()
        draining = next(iter(cluster.owners().values()))
        asked: list[asyncio.Task[str]] = []

        async def load() -> None:
            for number in range(300):
                gateway = cluster.gateway(NAMES[number % 3])
                asked.append(asyncio.ensure_future(once(gateway, f"{number}")))
                await asyncio.sleep(0.005)

        async def once(gateway: Gateway, key: str) -> str:
            (receipt,) = await gateway.tasks.submit([NewTask("mail", key=key)])
            return receipt.task_key

        loading = asyncio.ensure_future(load())
        await asyncio.sleep(0.2)
        await cluster.gateway("a").cluster.drain(draining)
        await cluster.until(lambda: draining not in cluster.owners().values())
        status = await cluster.gateway("a").cluster.status()
        (view,) = [each for each in status.members if each.member == draining]
        assert (view.state, view.owned_partitions) == ("DRAINING", [])
        with pytest.raises(InvalidState, match="being drained and gets no partitions"):
            await cluster.gateway("a").cluster.move("1", draining)
        await loading
        answered = await asyncio.gather(*asked)  # none of them failed
        assert len(set(answered)) == 300
        await cluster.gateway("a").cluster.drain(draining, is_draining=False)
        await cluster.until(lambda: draining in cluster.owners().values())

    play(story)


def test_a_partition_is_moved_by_hand_and_stays() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.start_all()
        owner = cluster.owners()[3]
        target = next(name for name in NAMES if name != owner)
        with pytest.raises(NotFound, match="'nobody'"):
            await cluster.gateway("a").cluster.move("3", "nobody")
        await cluster.until(lambda: cluster[owner].has_all(3, target))
        await cluster.gateway("a").cluster.move("3", target)
        await cluster.until(lambda: cluster.owners().get(3) == target)
        await asyncio.sleep(30)
        assert cluster.owners()[3] == target
        assert await submit(cluster.gateway(owner), "still there")

    play(story)


def test_a_removed_member_is_shut_out_and_a_quorum_is_kept() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.start_all()
        await cluster.kill("b")
        await cluster.until(lambda: cluster.is_settled() and len(cluster.owners()) == PARTITIONS)
        with pytest.raises(InvalidState, match="2 disks of partition 1 without member 'c'"):
            await cluster.gateway("a").cluster.remove("c")
        key = await submit(cluster.gateway("a"), "kept")
        await cluster.gateway("a").cluster.remove("b")
        await cluster.until(
            lambda: all(
                len(cluster.replicas(cluster["a"], each)) == 2 for each in range(1, PARTITIONS + 1)
            )
        )
        with pytest.raises(HoldfastError) as refused:
            await cluster.start("b")
        assert refused.value.code is Code.FORBIDDEN
        found = await cluster.gateway("c").tasks.get(key)
        assert found.state is JobState.WAITING

    play(story)


def test_a_partition_whose_quorum_is_lost_is_told_apart_from_one_with_a_disk_too_few() -> None:
    async def states(cluster: SimulatedCluster) -> tuple[set[str], str]:
        status = await cluster.gateway("a").cluster.status()
        mine = {each.state for each in status.partitions if each.owner == "a"}
        return mine, " ".join(status.problems)

    async def story(cluster: SimulatedCluster) -> None:
        await cluster.start_all()
        await cluster.until(lambda: "a" in cluster.owners().values())
        await cluster.kill("b")
        await cluster.until(lambda: cluster.is_settled() and len(cluster.owners()) == PARTITIONS)
        assert (await states(cluster))[0] == {"UNDER_REPLICATED"}
        await cluster.kill("c")
        await asyncio.sleep(3)  # until its silence is noticed
        found, problems = await states(cluster)
        assert found == {"NO_QUORUM"}
        assert "commit nothing: too few of their disks are there" in problems
        await cluster.start("b")
        await cluster.until(lambda: cluster.is_settled() and len(cluster.owners()) == PARTITIONS)
        assert (await states(cluster))[0] == {"UNDER_REPLICATED"}

    play(story)


def test_without_etcd_owners_go_on_and_nobody_takes_over() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.start_all()
        before = cluster.owners()
        cluster.etcd.cut_off()
        await asyncio.sleep(30)
        for name in NAMES:
            await submit(cluster.gateway(name), f"without etcd, at {name}")
        assert cluster.owners() == before
        health = await cluster.gateway("a").node.health()
        assert health.status == "DEGRADED"
        assert any("etcd" in each for each in health.warnings)
        cluster.etcd.reconnect()
        await cluster.until(lambda: cluster["a"].coordination.available)
        await cluster.settled()

    play(story)


def test_a_partition_that_cannot_be_handed_over_without_etcd_stays_open_where_it_is() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.start_all()
        owner = cluster.owners()[2]
        other = next(name for name in NAMES if name != owner)
        await cluster.until(lambda: cluster[owner].has_all(2, other))
        cluster.etcd.cut_off()
        with pytest.raises(Unavailable):
            await cluster[owner].conductor.move(2, other)
        assert cluster[owner].node.runner.epoch(2) is not None
        await submit(cluster.gateway(other), "goes on")

    play(story)


def test_a_partition_whose_taker_gave_up_answers_queries_again_though_nobody_writes() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.start_all()
        (receipt,) = await cluster.gateway("a").tasks.submit([NewTask("mail")])
        partition = partition_of(int(receipt.task_key))
        owner = cluster.owners()[partition]
        epoch = cluster[owner].journal.chain(partition).epoch
        for name in [each for each in NAMES if each != owner]:
            journal = cluster[name].journal
            fence = Fence(journal.replica.disk, partition, epoch, epoch + 1, is_drain=True)
            assert isinstance(await journal.called(owner, fence), Promised)
        for name in NAMES:
            async with asyncio.timeout(5):
                await found(cluster.gateway(name), receipt.task_key)
        assert cluster[owner].journal.chain(partition).epoch > epoch

    play(story)


async def found(gateway: Gateway, key: str) -> None:
    """Asks for a task until a member answers."""
    while True:
        try:
            await gateway.tasks.get(key)
            return
        except HoldfastError as error:
            assert error.code in (Code.MOVED, Code.UNAVAILABLE, Code.UNKNOWN), error
            await asyncio.sleep(0.05)


def test_a_member_that_stops_does_not_wait_for_an_etcd_that_was_rolled_back() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.start_all()
        backup = cluster.etcd.save()
        await asyncio.sleep(1)
        cluster.etcd.restore(backup)
        await cluster.until(lambda: all(cluster[name].coordination.rolled_back for name in NAMES))
        owner = cluster.owners()[1]
        problems = cluster[owner].problems()
        assert len(problems) == len(set(problems))
        assert any("etcd was rolled back" in each for each in problems)
        began = asyncio.get_running_loop().time()
        await cluster[owner].leave()
        assert asyncio.get_running_loop().time() - began < 1

    play(story)


def test_an_owner_without_a_disk_of_its_range_is_replaced_when_it_starts_anew() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.start_all()
        cluster.names.append("d")
        cluster.disks["d"] = SimulatedDisk()
        await cluster.start("d")
        await cluster.settled()
        owner = cluster["d"]
        partition, last = next(
            (each, last)
            for each in range(1, PARTITIONS + 1)
            if (last := owner.journal.chain(each).last) is not None
            and "d" in {replica.member for replica in last.replicas}
        )
        others = tuple(each for each in last.replicas if each.member != "d")
        owner.journal.taking._choose_set = lambda _: others  # as after a change of members
        await owner.journal.take_over(partition, is_drain=True)
        assert owner.journal.chain(partition).last.owner == "d"  # type: ignore[union-attr]
        await cluster.kill("d")
        await cluster.start("d")  # before anybody misses it
        await cluster.until(lambda: partition in cluster.owners())

    play(story)


def test_cuts_that_etcd_no_longer_keeps_come_from_others_after_a_restart_or_a_pause() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.start_all()
        await cluster.kill("c")
        await asyncio.sleep(AWAY_S)
        await cluster.start("c")
        await _follows_all(cluster, "c")
        cluster.machines.pause(cluster.run_of("c"))
        await asyncio.sleep(AWAY_S)
        cluster.machines.resume(cluster.run_of("c"))
        await _follows_all(cluster, "c")

    play(story)


async def _follows_all(cluster: SimulatedCluster, name: str) -> None:
    """A member has caught up with the cuts, and none of them is left out."""
    last = cluster["a"].publisher.number
    await cluster.until(lambda: cluster[name].publisher.number > last, 5)
    assert cluster[name].publisher.numbers.jumps == 0
