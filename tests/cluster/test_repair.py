"""An etcd that was put back to an older copy is repaired from what the members know."""

import asyncio
from pathlib import Path

import pytest
from tests.cluster.simulated import NAMES, PARTITIONS, SimulatedCluster, play
from tests.cluster.test_members_of_cluster import submit

from holdfast.cluster.knowing import REMEMBERED_FILE, KnownChains
from holdfast.errors import InvalidState
from holdfast.gateway.tasks.shapes import NewTask
from holdfast.sequence.api import Chain, Range
from holdfast.sequence.repairing import read_stored


async def rolled_back(cluster: SimulatedCluster) -> dict[str, str]:
    """etcd lacks what happened after a backup, and all members know; tasks by their keys."""
    await cluster.start_all()
    await submit(cluster.gateway("a"), "before")
    backup = cluster.etcd.save()
    keys: dict[str, str] = {}
    for victim in NAMES:  # new epochs, which the backup does not have
        await cluster.kill(victim)
        survivor = next(each for each in NAMES if each != victim)
        keys[victim] = await submit(cluster.gateway(survivor), f"after {victim}")
        await cluster.start(victim)
        await cluster.settled()
    await cluster.until(lambda: cluster["a"].publisher.number > 20)
    cluster.etcd.restore(backup)
    await cluster.until(lambda: all(cluster[name].coordination.rolled_back for name in NAMES))
    return keys


async def restart(cluster: SimulatedCluster, name: str) -> None:
    await cluster.kill(name)
    await cluster.start(name)


async def check_tasks(cluster: SimulatedCluster, keys: dict[str, str]) -> None:
    new = [NewTask("mail", key=f"after {victim}") for victim in keys]
    for name in NAMES:
        again = await cluster.gateway(name).tasks.submit(new)
        assert [each.task_key for each in again] == list(keys.values())


def test_what_etcd_lacks_is_written_back_and_nothing_acknowledged_is_lost() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        keys = await rolled_back(cluster)
        api = cluster.gateway("b").cluster
        stored = await read_stored(cluster["a"].coordination.keys)
        known = {each: cluster["a"].journal.chain(each).epoch for each in range(1, PARTITIONS + 1)}
        assert any(stored.chains[each].epoch < epoch for each, epoch in known.items())
        told = await api.repair()
        assert (told.is_done, told.members, told.problems) == (False, list(NAMES), [])
        assert any("-> " in each for each in told.changes)
        assert await read_stored(cluster["a"].coordination.keys) == stored, "nothing was changed"
        keys["meanwhile"] = await submit(cluster.gateway("a"), "after meanwhile")
        done = await api.repair(confirm=True)
        assert done.is_done and not done.problems
        stored = await read_stored(cluster["a"].coordination.keys)
        for partition, epoch in known.items():
            assert stored.chains[partition].epoch >= epoch
        assert stored.head.number == max(cluster[name].publisher.number for name in NAMES)
        assert (await api.repair()).changes == [], "there is nothing left to repair"
        for name in NAMES:
            await restart(cluster, name)
        await cluster.settled()
        assert not any(cluster[name].coordination.rolled_back for name in NAMES)
        await check_tasks(cluster, keys)
        number = cluster["a"].publisher.number
        await submit(cluster.gateway("c"), "goes on")
        await cluster.until(lambda: cluster["a"].publisher.number > number)
        cuts = await asyncio.gather(*(cluster[name].kept_cuts(number, number) for name in NAMES))
        assert len({each.nonce for found in cuts for each in found}) == 1, "one order"

    play(story)


def test_a_member_that_does_not_answer_has_to_be_given_up_for_ever() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        keys = await rolled_back(cluster)
        key = cluster["a"].roster.registered["c"].key
        await cluster.kill("c")
        await cluster.until(lambda: "c" not in cluster["a"].peers.heard())
        api = cluster.gateway("a").cluster
        told = await api.repair()
        assert [each for each in told.problems if "--without" in each], told.problems
        with pytest.raises(InvalidState, match="Member c does not answer"):
            await api.repair(confirm=True)
        with pytest.raises(InvalidState, match="Member b answers"):
            await api.repair(confirm=True, without=["b", "c"])
        done = await api.repair(confirm=True, without=["c"])
        assert done.is_done
        stored = await read_stored(cluster["a"].coordination.keys)
        assert key in stored.removed
        assert "c" not in {each.member for each in stored.registered}
        cluster.names.remove("c")
        for name in "ab":
            await restart(cluster, name)
        await cluster.until(lambda: len(cluster.owners()) == PARTITIONS)
        for victim, task in keys.items():
            assert await submit(cluster.gateway("a"), f"after {victim}") == task

    play(story)


def test_members_that_were_all_restarted_know_it_from_their_disks(tmp_path: Path) -> None:
    async def story(cluster: SimulatedCluster) -> None:
        keys = await rolled_back(cluster)
        known = {name: dict(cluster[name].journal.positions.chains()) for name in NAMES}
        for name in NAMES:
            await cluster.kill(name)
        for name in NAMES:
            member = await cluster.start(name)
            member.remembering = KnownChains(tmp_path)
            member.remembering.chains = known[name]
        await asyncio.sleep(3)  # they believe the old etcd; their disks do not
        problems = [each for name in NAMES for each in cluster[name].problems()]
        assert any("holdfast cluster repair" in each for each in problems), problems
        done = await cluster.gateway("a").cluster.repair(confirm=True)
        assert done.is_done, done
        for name in NAMES:
            await restart(cluster, name)
        await cluster.settled()
        await check_tasks(cluster, keys)

    play(story)


def test_chains_that_were_read_are_remembered_over_a_restart(tmp_path: Path) -> None:
    def chain(epoch: int) -> Chain:
        ranges = tuple(Range(each, "a", "n", (), {}) for each in range(1, epoch + 1))
        return Chain(1, ranges, epoch)

    async def story() -> None:
        remembering = KnownChains(tmp_path)
        assert remembering.chains == {}
        for epoch in (1, 3, 2):
            remembering.learned(chain(epoch))
        remembering.learned(Chain(2))
        await remembering.close()
        again = KnownChains(tmp_path)
        assert again.chains == {1: chain(3)}
        again.learned(chain(2))  # as an etcd that was rolled back says
        assert again.chains == {1: chain(3)}
        (tmp_path / REMEMBERED_FILE).write_bytes(b"garbage")
        assert KnownChains(tmp_path).chains == {}

    asyncio.run(story())


def test_a_minority_cannot_repair_anything() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await rolled_back(cluster)
        for name in "bc":
            await cluster.kill(name)
        await cluster.until(lambda: not cluster["a"].peers.heard() - {"a"})
        with pytest.raises(InvalidState, match="2 members do not answer, but at most 1"):
            await cluster.gateway("a").cluster.repair(confirm=True, without=["b", "c"])

    play(story)


def test_a_cluster_that_is_well_has_nothing_to_repair() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.start_all()
        for _ in range(3):
            await submit(cluster.gateway("a"), "work")
            found = await cluster.gateway("b").cluster.repair(confirm=True)
            assert (found.is_done, found.changes, found.problems) == (False, [], [])

    play(story)
