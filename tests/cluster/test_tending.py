"""Closed ranges follow the open one to other disks, and leave the chain behind snapshots."""

from tests.cluster.simulated import PARTITIONS, SimulatedCluster, play
from tests.journal.cluster.staged import TOPIC, Stage

from holdfast.cluster.tending import Tending
from holdfast.limits import CLUSTER_TEND_MS
from holdfast.sequence.api import Chain
from holdfast.testing.disk import SimulatedDisk
from holdfast.testing.loop import VirtualClock, run


def test_closed_ranges_are_tended_where_something_is_to_be_done() -> None:
    clock = VirtualClock()
    stage = Stage(clock)

    async def story() -> None:
        taking = stage.taking("a")
        chain = await taking.take_over(1)
        assert isinstance(chain, Chain)
        ours = stage.appended(chain, "abc", on="abd")
        tending = Tending(
            stage.settling("a"), lambda _: stage.chains[-1], lambda: [1],
            lambda _: {TOPIC: stage.disks["a"].needed},
        )  # fmt: skip
        await tending.tend()
        chain = await taking.hand_over(1, ours, stage.live("a"), stage.replicas("abd"))
        await tending.tend()
        settled = await stage.chain()
        assert [each.replicas for each in settled.ranges] == [stage.replicas("abd")] * 2
        for disk in stage.disks.values():
            disk.needed = 3
        await tending.tend()
        assert [each.epoch for each in (await stage.chain()).ranges] == [2]

    run(story(), clock)


def test_a_disk_that_is_gone_is_named_by_no_range_after_a_while() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.start_all()
        lost = cluster["c"].journal.replica
        await cluster.kill("c")
        cluster.disks["c"] = SimulatedDisk()
        await cluster.start("c")
        await cluster.settled()

        def is_named() -> bool:
            chains = [cluster["a"].journal.chain(each) for each in range(1, PARTITIONS + 1)]
            return any(lost in each.replicas for chain in chains for each in chain.ranges)

        assert is_named(), "closed ranges are copied first"
        await cluster.until(lambda: not is_named(), 3 * CLUSTER_TEND_MS / 1_000)

    play(story)
