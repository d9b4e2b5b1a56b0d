"""What members keep of partitions that others have in their place: nothing, after a while."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from tests.cluster.simulated import PARTITIONS, SimulatedCluster, run_machines

from holdfast.cluster.member import ClusterMember
from holdfast.engine.jobs.values import JobState
from holdfast.gateway.tasks.shapes import NewTask
from holdfast.limits import CLUSTER_TEND_MS
from holdfast.testing import VirtualClock

LONG_S = 6 * CLUSTER_TEND_MS / 1_000  # closed ranges are copied, named anew, and given up
EVERY = range(1, PARTITIONS + 1)


def play(story: Callable[[SimulatedCluster], Coroutine[Any, Any, None]]) -> None:
    """Three members run, and two more may be started."""
    clock = VirtualClock()

    async def played() -> None:
        cluster = SimulatedCluster(clock, names="abcde")
        cluster.names = list("abc")
        await cluster.start_all()
        await story(cluster)
        await cluster.close()

    run_machines(played(), clock)


async def join(cluster: SimulatedCluster, *names: str) -> None:
    for name in names:
        cluster.names.append(name)
        await cluster.start(name)
    await cluster.settled()


def kept(member: ClusterMember) -> set[int]:
    """The partitions of which a member has a log or rows."""
    journal, node = member.journal, member.node
    return {each for each in EVERY if journal.leaving.has_entries(each) or node.has_rows(each)}


def wanted(member: ClusterMember) -> set[int]:
    """The partitions whose log a member is to keep."""
    chains = {each: member.journal.chain(each).last for each in EVERY}
    return {
        each
        for each, last in chains.items()
        if last is not None and (member.journal.replica in last.replicas)
    }


def is_named(cluster: SimulatedCluster, name: str) -> bool:
    """Whether an open range is on the disk of a member."""
    chains = [
        each.journal.chain(number).last for each in cluster.members.values() for number in EVERY
    ]
    return any(name == each.member for last in chains if last for each in last.replicas)


def is_clear(cluster: SimulatedCluster) -> bool:
    return all(kept(each) == wanted(each) for each in cluster.members.values())


async def submit(cluster: SimulatedCluster, count: int) -> list[str]:
    tasks = [NewTask("mail", key=f"task {number}") for number in range(count)]
    return [each.task_key for each in await cluster.gateway("a").tasks.submit(tasks)]


async def check_all_there(cluster: SimulatedCluster, keys: list[str]) -> None:
    for name in cluster.members:
        for key in keys:
            assert (await cluster.gateway(name).tasks.get(key)).state is JobState.WAITING


def test_members_give_up_what_others_keep_in_their_place_and_get_it_back() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        keys = await submit(cluster, 40)
        assert all(kept(each) == set(EVERY) for each in cluster.members.values())
        await join(cluster, "d", "e")
        await cluster.until(lambda: is_clear(cluster), LONG_S)
        assert sum(len(kept(each)) for each in cluster.members.values()) == 3 * PARTITIONS
        await check_all_there(cluster, keys)
        for name in "de":  # they are taken out again: the others keep everything as before
            await cluster.kill(name)
            cluster.names.remove(name)
            await cluster.gateway("a").cluster.remove(name)
            await cluster.until(lambda name=name: not is_named(cluster, name))
            await cluster.settled()
        await cluster.until(
            lambda: all(
                kept(each) == set(EVERY) and each.standings.own | set(each.conductor.owned())
                for each in cluster.members.values()
            ),
            LONG_S,
        )
        await check_all_there(cluster, keys)

    play(story)


def test_a_member_that_is_killed_while_it_gives_partitions_up_starts_and_goes_on() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        keys = await submit(cluster, 40)
        stopped: dict[str, int] = {}

        def stop_in_the_middle(name: str) -> None:
            node = cluster[name].node
            remove = node.remove_rows

            async def removed(partition: int) -> None:
                await remove(partition)
                stopped[name] = partition
                await asyncio.Event().wait()  # the log is still there when the power goes

            node.remove_rows = removed  # type: ignore[method-assign]

        for name in "abc":
            stop_in_the_middle(name)
        await join(cluster, "d", "e")
        await cluster.until(lambda: stopped, LONG_S)
        name, partition = next(iter(stopped.items()))
        assert cluster[name].journal.leaving.has_entries(partition)
        for victim in "abc":
            await cluster.kill(victim)
            await cluster.start(victim)
            await cluster.settled()
        assert cluster[name].journal.disk.promise(partition) > 0
        await cluster.until(lambda: is_clear(cluster), LONG_S)
        await check_all_there(cluster, keys)

    play(story)


def test_nothing_is_given_up_while_etcd_is_not_believed() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await submit(cluster, 10)
        for member in cluster.members.values():
            member.can_act = lambda: False  # type: ignore[method-assign]
        before = {name: kept(member) for name, member in cluster.members.items()}
        await asyncio.sleep(LONG_S)
        assert {name: kept(member) for name, member in cluster.members.items()} == before

    play(story)
