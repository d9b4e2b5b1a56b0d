"""Three members: a quorum acknowledges appends, all read them, and they survive."""

import asyncio
from pathlib import Path

import pytest
from bench.peers.etcd import EtcdServer
from tests.journal.cluster.trio import Trio, append, everything, play, take, until

from holdfast.clock import SystemClock
from holdfast.journal import Append, Appended, Refused


def test_an_append_is_read_on_all_members() -> None:
    async def story(trio: Trio) -> None:
        a, b, c = await trio.start_all()
        assert await take(a) == (1, 0)
        assert await append(a, b"1", b"2") == Appended(0, 2)
        assert await append(a, b"3") == Appended(2, 3)
        for each in (a, b, c):
            await until(lambda each=each: each.bounds("t", 1).next == 3)
            assert await everything(each) == [b"1", b"2", b"3"]
        assert all(each.is_caught_up(1) for each in (a, b, c))

    play(story)


def test_a_member_that_does_not_own_a_partition_is_refused() -> None:
    async def story(trio: Trio) -> None:
        a, b, _ = await trio.start_all()
        await take(a)
        await append(a, b"1")
        refused = await b.take("t", 1)
        assert isinstance(refused, Refused)
        assert "a has the partition" in refused.reason
        (outcome,) = await b.append_many([Append("t", 1, [b"x"])])
        assert isinstance(outcome, Refused)

    play(story)


@pytest.mark.xdist_group("etcd")
def test_members_with_real_disks_and_a_real_etcd(tmp_path: Path, etcd: EtcdServer) -> None:
    async def story() -> None:
        trio = Trio(SystemClock())
        trio.etcd_url, trio.topics["records"] = f"{etcd.url}/members", (3, None)
        trio.use_folder(tmp_path)
        await trio.start_all()
        written = [b"%d" % number for number in range(50)]
        await take(trio["a"])
        for payload in written[:30]:
            await append(trio["a"], payload)
        await trio.kill("a")
        await take(trio["b"])
        for payload in written[30:]:
            await append(trio["b"], payload)
        a = await trio.start("a")
        await until(lambda: a.is_caught_up(1) and a.bounds("t", 1).next == 50)
        for journal in trio.wire.members.values():
            await until(lambda journal=journal: journal.bounds("t", 1).next == 50)
            assert await everything(journal) == written
        await trio.close()

    asyncio.run(story())


def test_another_member_takes_over_and_nothing_acknowledged_is_lost() -> None:
    async def story(trio: Trio) -> None:
        a, b, c = await trio.start_all()
        await take(a)
        for number in range(5):
            await append(a, b"%d" % number)
        await trio.kill("a")
        taken = await take(b)
        assert taken == (2, 5)
        await append(b, b"x")
        await until(lambda: c.bounds("t", 1).next == 6)
        assert await everything(c) == [b"0", b"1", b"2", b"3", b"4", b"x"]
        a = await trio.start("a")
        await until(lambda: a.is_caught_up(1) and a.bounds("t", 1).next == 6)
        assert await everything(a) == [b"0", b"1", b"2", b"3", b"4", b"x"]

    play(story)
