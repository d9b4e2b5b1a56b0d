"""A real etcd that was restored from an old snapshot gets back what members know."""

import asyncio
from pathlib import Path

import pytest
from bench.peers.etcd import EtcdServer
from tests.sequence.coordination_contract import cut, span

from holdfast.errors import Unavailable
from holdfast.sequence.api import Chain, ClusterSettings, Registered, Replica, RolledBack
from holdfast.sequence.knowledge import DiskSeen, Knowledge, plan_repair
from holdfast.sequence.opening import open_coordination
from holdfast.sequence.repairing import read_stored, write_back

pytestmark = pytest.mark.xdist_group("etcd")
SETTINGS = ClusterSettings("one", 8)


def test_what_a_restored_etcd_lacks_is_written_back(etcd: EtcdServer, tmp_path: Path) -> None:
    snapshot = tmp_path / "snapshot.db"

    async def story() -> None:
        a = open_coordination(etcd.url, "start of a")
        await a.settle(SETTINGS)
        await a.register(Registered("a", "ka"))
        await a.register(Registered("gone", "kg"))
        first = await a.replace(Chain(7, (span(1),)))
        assert isinstance(first, Chain)
        assert await a.publish(cut(1))
        await asyncio.to_thread(etcd.ctl, "snapshot", "save", str(snapshot))
        await a.remove("gone")
        newest = await a.replace(Chain(7, (span(1), span(2)), first.revision))
        late = await a.replace(Chain(8, (span(1),)))
        assert isinstance(newest, Chain) and isinstance(late, Chain)
        cuts = [cut(number) for number in range(1, 6)]
        for each in cuts[1:]:
            assert await a.publish(each)
        assert newest.last is not None
        replica = newest.last.replicas[0] if newest.last.replicas else Replica("a", "d")
        known = Knowledge(
            "a", replica, 3, "start of a", SETTINGS, [Registered("a", "ka")], [newest, late],
            {7: DiskSeen(2, 2)}, 5, cuts[-1].nonce,
        )  # fmt: skip
        before = await read_stored(a.keys)
        plan = plan_repair(before, [known])
        assert (plan.chains, plan.cut) == ([], None), "a store that is well lacks nothing"
        await asyncio.to_thread(etcd.restore, snapshot)
        fresh = open_coordination(etcd.url, "after")
        async with asyncio.timeout(10):
            while True:
                try:
                    restored = await read_stored(fresh.keys)
                    break
                except Unavailable:
                    await asyncio.sleep(0.05)
        with pytest.raises(RolledBack):
            await a.latest()
        assert restored.chains.keys() == {7}
        plan = plan_repair(restored, [known])
        plan.problems.clear()  # this etcd has a store and no members around it
        await write_back(fresh.keys, plan, cuts)
        with pytest.raises(Unavailable, match="start again"):
            await write_back(fresh.keys, plan, cuts)  # it is guarded by what was read
        assert (await fresh.chain(7)).ranges == newest.ranges
        assert (await fresh.chain(8)).ranges == late.ranges
        assert await fresh.latest() == cuts[-1]
        assert await fresh.cuts(1, 9) == cuts
        assert await fresh.publish(cut(6))
        assert set(await fresh.registered()) == {"a"}
        stored = await read_stored(fresh.keys)
        assert (stored.removed, stored.boots[replica]) == (["kg"], 3)
        assert await fresh.begin_disk(replica, 1) is False, "an older copy of the disk is known"
        await a.close()
        await fresh.close()

    asyncio.run(story())
