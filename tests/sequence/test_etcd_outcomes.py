"""etcd that is away, killed, paused or hardly reached: what was done, and what cannot be known."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
from bench.peers.etcd import EtcdServer
from tests.etcd_server import etcd_servers
from tests.sequence.coordination_contract import cut, live, span
from tests.sequence.etcd_proxy import EtcdProxy, Loss

from holdfast.errors import Unavailable, Unknown
from holdfast.metrics import Metrics
from holdfast.sequence import etcd as etcd_module
from holdfast.sequence import etcd_client
from holdfast.sequence.api import Chain
from holdfast.sequence.etcd import EtcdCoordination
from holdfast.sequence.opening import open_coordination

pytestmark = pytest.mark.xdist_group("etcd")


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test waits for seconds."""
    monkeypatch.setattr(etcd_client, "ETCD_CALL_MS_MAX", 800)
    monkeypatch.setattr(etcd_client, "ETCD_CONNECT_MS_MAX", 400)
    monkeypatch.setattr(etcd_module, "_BEATS_A_LEASE", 120)


@contextlib.asynccontextmanager
async def opened(url: str, nonce: str = "n1") -> AsyncIterator[EtcdCoordination]:
    coordination = open_coordination(url, nonce)
    try:
        yield coordination
    finally:
        await coordination.close()


async def until(holds: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(10):
        while True:
            if await holds():
                return
            await asyncio.sleep(0.02)


async def until_answered(coordination: EtcdCoordination) -> None:
    """Asks again and again until it is answered."""

    async def is_answered() -> bool:
        with contextlib.suppress(Unavailable):
            await coordination.latest()
        return coordination.available

    await until(is_answered)


@pytest.mark.parametrize(
    ("loss", "is_done"), [(Loss.ANSWER, True), (Loss.REQUEST, False), (Loss.SILENCE, False)]
)
def test_a_write_that_was_sent_and_not_answered_is_unknown_and_reading_tells(
    loss: Loss, is_done: bool, etcd: EtcdServer
) -> None:
    async def story() -> None:
        async with EtcdProxy(etcd.port) as proxy, opened(proxy.url) as a, opened(etcd.url) as b:
            assert await a.publish(cut(1))
            proxy.loss = loss
            writing = asyncio.create_task(a.publish(cut(2)))
            if is_done:

                async def is_written() -> bool:
                    return await b.latest() == cut(2)

                await until(is_written)
                proxy.cut()
            with pytest.raises(Unknown, match="it may have been written"):
                await writing
            assert not a.available
            metrics = Metrics()
            metrics.etcd.source = a
            text = metrics.exposition().decode()
            assert "holdfast_etcd_available 0.0" in text
            assert "holdfast_etcd_unknown_writes_total 1.0" in text
            assert 'holdfast_etcd_call_seconds_bucket{le="+Inf"} 1.0' in text
            assert (await b.latest() == cut(2)) == is_done
            proxy.loss = Loss.NOTHING
            proxy.cut()
            await until_answered(a)
            assert a.available
            assert (await a.latest() == cut(2)) == is_done
            assert await a.publish(cut(2)) == (not is_done)  # and never twice
            assert [each.number for each in await b.cuts(1, 9)] == [1, 2]

    asyncio.run(story())


@pytest.mark.parametrize("loss", [Loss.ANSWER, Loss.REQUEST])
def test_a_read_that_was_not_answered_is_unavailable(loss: Loss, etcd: EtcdServer) -> None:
    async def story() -> None:
        async with EtcdProxy(etcd.port) as proxy, opened(proxy.url) as a:
            assert await a.latest() is None
            proxy.loss = loss
            with pytest.raises(Unavailable):
                await a.latest()
            proxy.loss = Loss.NOTHING
            await until_answered(a)

    asyncio.run(story())


def test_a_server_that_is_away_was_certainly_not_written_to(etcd: EtcdServer) -> None:
    async def story() -> None:
        async with opened(etcd.url) as a:
            assert await a.publish(cut(1))
            etcd.kill()

            async def is_noticed() -> bool:
                """Until the end of its connection is noticed, a call may still be sent on it."""
                with pytest.raises(Unavailable) as refused:
                    await a.chains()
                return "not reached" in str(refused.value)

            await until(is_noticed)
            for _ in range(3):
                with pytest.raises(Unavailable, match=r"not reached at etcd://127\.0\.0\.1"):
                    await a.publish(cut(2))
                with pytest.raises(Unavailable):
                    await a.chains()
            etcd.run()
            await until_answered(a)
            assert await a.publish(cut(2))
            assert not await a.topics()

    asyncio.run(story())


def test_a_paused_server_makes_writes_unknown_and_goes_on_afterwards(etcd: EtcdServer) -> None:
    async def story() -> None:
        async with opened(etcd.url) as a:
            chain = await a.replace(Chain(7, (span(1),)))
            assert isinstance(chain, Chain)
            etcd.pause()
            with pytest.raises(Unknown):
                await a.replace(Chain(7, (span(1), span(2)), chain.revision))
            with pytest.raises(Unavailable):
                await a.chain(7)
            etcd.resume()
            await until_answered(a)
            assert (await a.chain(7)).epoch in (1, 2)

    asyncio.run(story())


@pytest.mark.parametrize("kills", [3, pytest.param(50, marks=pytest.mark.soak)])
def test_no_cut_is_lost_or_doubled_when_servers_are_killed_again_and_again(kills: int) -> None:
    """Three servers: one alone acknowledges before it has written (etcd-io/etcd#14370)."""

    async def write(member: str, done: asyncio.Event, mine: list[int]) -> None:
        """As a publisher does: after any doubt it reads before it writes again."""
        async with opened(servers.url, member) as a:
            attempt = 0
            while not done.is_set():
                with contextlib.suppress(Unavailable):
                    latest = await a.latest()
                    attempt += 1
                    next_ = cut(1 if latest is None else latest.number + 1, f"{member}{attempt}")
                    try:
                        if await a.publish(next_):
                            mine.append(next_.number)
                    except Unknown:
                        await until_answered(a)
                        found = await a.cuts(next_.number, next_.number)
                        if list(found) == [next_]:
                            mine.append(next_.number)
                    continue
                await asyncio.sleep(0.01)

    async def story() -> None:
        done, mine = asyncio.Event(), {"a": [], "b": []}
        writers = [asyncio.create_task(write(name, done, each)) for name, each in mine.items()]
        for number in range(kills):
            await asyncio.sleep(0.05)
            server = servers.servers[number % len(servers.servers)]
            await asyncio.to_thread(server.kill)
            await asyncio.to_thread(server.run)
        done.set()
        await asyncio.gather(*writers)
        async with opened(servers.url) as reader:
            latest = await reader.latest()
        assert latest is not None
        written = sorted(mine["a"] + mine["b"])
        assert written == list(range(1, latest.number + 1))
        assert len(written) > kills

    with etcd_servers() as servers:
        asyncio.run(story())


def test_with_three_servers_one_may_be_killed_or_paused() -> None:
    async def story() -> None:
        with etcd_servers() as servers:
            async with opened(servers.url) as a:
                assert await a.publish(cut(1))
                await asyncio.to_thread(servers.servers[0].kill)
                async with asyncio.timeout(10):
                    await goes_on(a)
                await asyncio.to_thread(servers.servers[0].run)
                servers.servers[1].pause()
                try:
                    async with asyncio.timeout(10):
                        await goes_on(a)
                finally:
                    servers.servers[1].resume()

    async def goes_on(a: EtcdCoordination) -> None:
        """A leader may have to be elected first."""
        await until_answered(a)
        latest = await a.latest()
        assert latest is not None
        while True:
            with contextlib.suppress(Unknown, Unavailable):
                await a.publish(cut(latest.number + 1))
                found = await a.latest()
                if found == cut(latest.number + 1):
                    return

    asyncio.run(story())


def test_a_lease_that_is_gone_is_told_and_the_place_taken_anew(etcd: EtcdServer) -> None:
    async def story() -> None:
        async with opened(etcd.url) as a, opened(etcd.url) as b:
            lapsed = asyncio.Event()
            a.on_lapsed.append(lapsed.set)
            assert await a.announce(live("a")) == 1
            assert await b.announce(live("b")) == 2
            await asyncio.to_thread(etcd.ctl, "lease", "revoke", f"{a.keys._lease:x}")
            async with asyncio.timeout(5):
                await lapsed.wait()
            await until(lambda: lists(b, "a", "b"))
            assert (a.numbers.lapses, b.numbers.lapses) == (1, 0)
            assert await a.announce(live("a")) == 3
            # what is said of a member under a lease that is gone is said again
            a.keys._lease = 4711
            with pytest.raises(Unavailable, match="lease of this member has run out"):
                await a.announce(live("a", nonce="n2"))

            async def is_said() -> bool:
                return live("a", nonce="n2") in (await b.live()).values()

            await until(is_said)

    asyncio.run(story())


async def lists(coordination: EtcdCoordination, *members: str) -> bool:
    return sorted(each.member for each in (await coordination.live()).values()) == list(members)


def test_who_falls_silent_gives_up_its_place(
    etcd: EtcdServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(etcd_module, "COORDINATION_LEASE_MS", 1_000)  # etcd makes it two seconds

    async def story() -> None:
        async with opened(etcd.url) as a, opened(etcd.url) as b:
            await a.announce(live("a"))
            await b.announce(live("b"))
            assert a.keys._beating is not None
            a.keys._beating.cancel()
            await until(lambda: lists(b, "b"))

    asyncio.run(story())


def test_a_watch_goes_on_after_a_compaction_and_after_the_server_was_away(
    etcd: EtcdServer,
) -> None:
    async def story() -> None:
        async with opened(etcd.url) as a, opened(etcd.url) as b:
            changes = b.changes()
            heard: asyncio.Queue[str] = asyncio.Queue()

            async def listen() -> None:
                async for name in changes:
                    heard.put_nowait(name)

            async def hears(name: str) -> None:
                async with asyncio.timeout(10):
                    while await heard.get() != name:
                        pass

            listening = asyncio.create_task(listen())
            await hears("latest")
            for number in range(1, 20):
                await a.publish(cut(number))
            reading = await a.keys.read()
            await a.keys.compact(reading.revision)
            await a.put_topic("t", b"", None)
            await hears("topics")
            while not heard.empty():
                heard.get_nowait()
            await asyncio.to_thread(etcd.kill)
            await asyncio.to_thread(etcd.run)
            await hears("chains")  # anything may have changed
            await until_answered(a)
            await a.replace(Chain(9, (span(1),)))
            await hears("chain/9")
            assert b.numbers.watches >= 2
            listening.cancel()

    asyncio.run(story())
