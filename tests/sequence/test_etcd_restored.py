"""etcd that was restored from an older copy, and keys that somebody else has written."""

import asyncio
from pathlib import Path

import pytest
from bench.peers.etcd import VERSIONS, EtcdServer
from tests.etcd_server import etcd_server
from tests.sequence.coordination_contract import cut, live, span

from holdfast.errors import DataLoss, Unavailable
from holdfast.sequence.api import Chain, ClusterSettings, Registered, Replica, RolledBack
from holdfast.sequence.etcd import EtcdCoordination
from holdfast.sequence.keys import Put, Write
from holdfast.sequence.opening import open_coordination

pytestmark = pytest.mark.xdist_group("etcd")


async def _answered(coordination: EtcdCoordination) -> None:
    """Waits until the server is reached again."""
    async with asyncio.timeout(10):
        while True:
            try:
                await coordination.keys.read()
                return
            except RolledBack:
                raise
            except Unavailable:
                await asyncio.sleep(0.02)


@pytest.mark.parametrize("version", VERSIONS)
def test_an_etcd_that_was_restored_from_an_older_snapshot_is_not_believed(
    version: str, tmp_path: Path
) -> None:
    snapshot = tmp_path / "snapshot.db"

    async def story(etcd: EtcdServer) -> None:
        a, b, late = (open_coordination(etcd.url, member) for member in ("a", "b", "late"))
        chain = await a.replace(Chain(7, (span(1),)))
        assert isinstance(chain, Chain)
        for number in (1, 2):
            assert await a.publish(cut(number))
        await b.chains()  # b knows an epoch that is in the snapshot, late one that is not
        await asyncio.to_thread(etcd.ctl, "snapshot", "save", str(snapshot))
        assert isinstance(await late.replace(Chain(7, (span(1), span(2)), chain.revision)), Chain)
        for number in (3, 4, 5):
            assert await a.publish(cut(number))
        await asyncio.to_thread(etcd.restore, snapshot)
        for each in (a, b, late):
            await _answered(each)
        told: list[str] = []
        a.on_rolled_back.append(told.append)
        with pytest.raises(RolledBack, match="it was at revision"):
            await a.latest()
        assert told == [a.rolled_back]
        with pytest.raises(RolledBack):
            await a.publish(cut(6))
        # Others have written since: the revision tells nothing any more, but the chain does.
        for topic in range(10):
            await b.put_topic(f"t{topic}", b"", None)
        with pytest.raises(RolledBack, match="partition 7 was in epoch 2 and is now in 1"):
            await late.chain(7)
        assert b.rolled_back == ""
        for each in (a, b, late):
            await each.close()

    with etcd_server(version) as etcd:
        asyncio.run(story(etcd))


def test_a_value_that_somebody_else_wrote_is_an_error_that_names_its_key(etcd: EtcdServer) -> None:
    garbage = (b"", b"{", b"null", b'"text"', b"[[[]]]", b'{"ranges": 5}', b"\x01\x01\xff\x00")
    keys = (
        "/cluster", "/registeredNodes", "/removedNodes", "/latest", "/log/0000000000000001",
        "/chains/7", "/disks/a/d", "/node/1", "/node/x", "/topics/t",
    )  # fmt: skip

    async def story() -> None:
        a = open_coordination(etcd.url, "a")
        for value in garbage:
            await a.keys.write(Write((), tuple(Put(key, value) for key in keys)))
            for call in (
                a.settle(ClusterSettings("one", 4)),
                a.registered(),
                a.register(Registered("a", "k")),
                a.remove("a"),
                a.chain(7),
                a.chains(),
                a.latest(),
                a.publish(cut(5)),
                a.cuts(1, 9),
                a.begin_disk(Replica("a", "d"), 1),
            ):
                with pytest.raises(DataLoss, match=r"cannot be read|at the end of /log/") as error:
                    await call
                assert error.value.fields["key"] in (*keys, "/log/")
            assert await a.live() == {}  # a place is lost, but nobody stops because of it
            assert await a.announce(live("a")) == 2
            assert await a.topics() == {"t": value}
            await a.close()
            a = open_coordination(etcd.url, "a")
        await a.close()

    asyncio.run(story())
