"""Links between members: one connection a pair, made again when it breaks, in bad weather too."""

import asyncio
from collections import Counter
from pathlib import Path
from random import Random

import pytest
from tests.transport.ways import CLUSTER, ECHO, HOLD, NOTE, until

from holdfast.errors import HoldfastError, Unavailable, Unknown
from holdfast.testing.loop import run
from holdfast.testing.network import SimulatedNetwork, Weather
from holdfast.testing.streams import SimulatedTransport
from holdfast.transport import (
    Address,
    Answer,
    Connection,
    ConnectionBounds,
    Identity,
    Link,
    Links,
    TcpAddress,
    UnixAddress,
)
from holdfast.transport.keys import MemberKey
from holdfast.transport.sockets import SocketTransport
from holdfast.transport.tls import Tls


class Counting:
    """Answers a call with its body, and knows how often it was asked."""

    def __init__(self) -> None:
        self.calls: Counter[bytes] = Counter()
        self.told_in_order: list[int] = []

    def called(self, kind: int, body: bytes) -> Answer:
        self.calls[body] += 1
        return asyncio.get_running_loop().create_future() if kind == HOLD else body

    def told(self, kind: int, body: bytes) -> None:
        self.told_in_order.append(int(body))


class Members:
    """Members a, b and c on a simulated network."""

    def __init__(self, seed: int, weather: Weather | None = None) -> None:
        self.network = SimulatedNetwork(seed=seed, weather=weather)
        self.addresses: dict[str, Address] = {name: TcpAddress(name, 1) for name in "abc"}
        self.answering = {name: Counting() for name in "abc"}
        self.transports: dict[str, SimulatedTransport] = {}
        self.links: dict[str, Links] = {}

    async def start(self, *names: str) -> None:
        for name in names or "abc":
            transport = SimulatedTransport(self.network, name, Identity(name, CLUSTER))
            self.transports[name] = transport
            counting = self.answering[name]
            self.links[name] = Links(name, transport, self.addresses, lambda *_, it=counting: it)
            await self.links[name].start()

    async def all_up(self) -> None:
        for links in self.links.values():
            for link in links:
                await link.up()

    async def stop(self) -> None:
        for links in self.links.values():
            await links.close()


def test_all_pairs_are_connected_once_and_both_ways() -> None:
    async def story() -> None:
        members = Members(seed=1)
        await members.start()
        await members.all_up()
        for here in "abc":
            for there in set("abc") - {here}:
                body = (here + there).encode()
                assert await members.links[here][there].call(ECHO, body) == body
                assert members.answering[there].calls[body] == 1
        await members.stop()

    run(story())


def test_a_member_that_is_down_is_unavailable_and_found_again_when_it_is_back() -> None:
    async def story() -> None:
        members = Members(seed=2)
        await members.start("a", "c")
        link = members.links["a"]["b"]
        with pytest.raises(Unavailable, match="not reached"):
            await link.call(ECHO, b"x")
        with pytest.raises(Unavailable):
            link.tell(NOTE, b"1")
        ups: list[bool] = []
        downs: list[bool] = []
        link.on_up(lambda: ups.append(link.is_up))
        link.on_down(lambda: downs.append(link.is_up))
        await members.start("b")
        await link.up()
        assert await link.call(ECHO, b"x") == b"x"
        members.transports["b"].crash()
        call = link.call(ECHO, b"lost")
        with pytest.raises(Unknown):
            await call
        assert not link.is_up
        await members.start("b")
        await link.up()
        assert await link.call(ECHO, b"again") == b"again"
        assert (ups, downs) == ([True, True], [False])
        await members.stop()

    run(story())


def test_a_member_that_restarts_takes_the_place_of_its_former_connection() -> None:
    """c listens for a and b only: a's restart must not wait until its old connection times out."""

    async def story() -> None:
        members = Members(seed=3)
        await members.start()
        await members.all_up()
        link = members.links["c"]["a"]
        former = link.connection
        members.transports["a"].crash()
        await members.start("a")
        await members.links["a"]["c"].up()
        await until(lambda: link.connection is not former and link.is_up)
        assert former is not None and former.closed
        assert await link.call(ECHO, b"x") == b"x"
        await members.stop()

    run(story())


@pytest.mark.parametrize("cut", [("a", "b"), ("b", "a")])
def test_a_one_way_cut_is_noticed_by_both_and_heals(cut: tuple[str, str]) -> None:
    async def story() -> None:
        members = Members(seed=4)
        await members.start()
        await members.all_up()
        here, there = members.links["a"]["b"], members.links["b"]["a"]
        members.network.cut(*cut)
        await asyncio.sleep(2 * ConnectionBounds().silent_ms_max / 1_000)
        assert not here.is_up
        assert not there.is_up
        assert members.links["a"]["c"].is_up
        members.network.heal()
        await here.up()
        await there.up()
        assert await there.call(ECHO, b"x") == b"x"
        await members.stop()

    run(story())


def test_a_member_that_joins_is_reached_and_one_that_is_removed_is_shut_out() -> None:
    async def story() -> None:
        members = Members(seed=5)
        everybody = dict(members.addresses)
        del members.addresses["c"]
        await members.start("a", "b")
        await members.all_up()
        members.addresses["c"] = everybody["c"]
        await members.start("c")
        for name in "ab":
            members.links[name].add("c", None)  # it is known before its address is
        await asyncio.sleep(1)
        assert not members.links["c"]["a"].is_up
        for name in "ab":
            members.links[name].add("c", everybody["c"])
        await members.all_up()
        assert await members.links["c"]["a"].call(ECHO, b"x") == b"x"
        here, there = members.links["a"]["c"], members.links["c"]["a"]
        call = there.call(HOLD, b"lost")
        members.links["a"].remove("c")
        assert not here.is_up
        with pytest.raises(Unknown):
            await call
        with pytest.raises(Unavailable, match="removed"):
            await here.call(ECHO, b"x")
        await asyncio.sleep(10)
        assert not there.is_up  # though c did not hear of it, and would take a call
        assert members.links["c"]["b"].is_up
        await members.stop()

    run(story())


def test_a_member_that_comes_back_elsewhere_is_found_at_its_new_address() -> None:
    async def story() -> None:
        members = Members(seed=6)
        await members.start()
        await members.all_up()
        members.transports["c"].crash()
        await until(lambda: not members.links["a"]["c"].is_up)
        await asyncio.sleep(30)  # the pauses between attempts are long by now
        members.addresses["c"] = TcpAddress("c", 2)
        await members.start("c")
        began = asyncio.get_running_loop().time()
        for name in "ab":
            members.links[name].add("c", TcpAddress("c", 2))
        await members.links["a"]["c"].up()
        assert asyncio.get_running_loop().time() - began < 0.1
        await members.stop()

    run(story())


def test_the_connection_of_a_removed_key_is_closed_and_it_does_not_come_back() -> None:
    """Over real TLS, with ports that the system gives."""

    async def story() -> None:
        keys = {name: MemberKey.make() for name in "ab"}
        registered = {name: {each: key.public for each, key in keys.items()} for name in "ab"}
        links: dict[str, Links] = {}
        for name in "ab":
            tls = Tls(keys[name], registered[name])
            transport = SocketTransport(Identity(name, CLUSTER), tls=tls)
            own: dict[str, Address] = {name: TcpAddress("127.0.0.1", 0)}
            links[name] = Links(name, transport, own, lambda *_: Counting())
            await links[name].start()
        links["b"].add("a", None)
        link = links["a"].add("b", links["b"].address)
        async with asyncio.timeout(5):
            await link.up()
        assert await link.call(ECHO, b"x") == b"x"
        del registered["b"]["a"]
        links["b"].remove("a")
        await until(lambda: not link.is_up)
        links["b"].add("a", None)  # even where the name is known, the key is not
        await asyncio.sleep(0.2)
        assert not link.is_up
        for each in links.values():
            await each.close()

    asyncio.run(story())


WEATHERS = [
    Weather(),
    Weather(delay_ms_min=0.1, delay_ms_max=200.0),
    Weather(delay_ms_max=30.0, loss=0.01, duplication=0.05),
]


def bad_weather(seed: int) -> None:
    """A call that has an answer was done once; one that was unavailable was not done. When the
    weather has cleared all members reach each other again."""

    async def story() -> None:
        members = Members(seed, WEATHERS[seed % len(WEATHERS)])
        dice = Random(seed)
        await members.start()
        await members.all_up()
        outcomes: dict[bytes, bytes | HoldfastError] = {}

        async def ask(here: str, there: str, body: bytes) -> None:
            try:
                outcomes[body] = await members.links[here][there].call(ECHO, body)
            except HoldfastError as error:
                outcomes[body] = error

        asking: list[asyncio.Task[None]] = []
        where: dict[bytes, str] = {}
        for number in range(400):
            here, there = dice.sample("abc", 2)
            body = str(number).encode() + b" " * dice.choice([0, 100, 100_000])
            where[body] = there
            asking.append(asyncio.create_task(ask(here, there, body)))
            if dice.random() < 0.02:
                members.transports[dice.choice("abc")].reset_all()
            if dice.random() < 0.01:
                victim = members.transports[dice.choice("abc")]
                victim.stall()
                asyncio.get_running_loop().call_later(dice.uniform(0.1, 9), victim.go_on)
            await asyncio.sleep(dice.choice([0, 0.001, 0.05]))
        async with asyncio.timeout(60):  # of virtual time: nobody waits for ever
            await asyncio.gather(*asking)
        for body, outcome in outcomes.items():
            done = members.answering[where[body]].calls[body]
            if isinstance(outcome, bytes):
                assert (outcome, done) == (body, 1)
            elif isinstance(outcome, Unknown):
                assert done <= 1
            else:
                assert isinstance(outcome, Unavailable)
                assert done == 0
        assert len(outcomes) == 400
        members.network.weather = Weather()
        await asyncio.sleep(60)  # stalled members go on, and all find each other again
        for here in "abc":
            for there in set("abc") - {here}:
                assert await members.links[here][there].call(ECHO, b"spring") == b"spring"
        await members.stop()

    run(story())


@pytest.mark.parametrize("seed", range(12))
def test_every_call_is_answered_once_and_truthfully_in_bad_weather(seed: int) -> None:
    bad_weather(seed)


@pytest.mark.soak
def test_every_call_is_answered_once_and_truthfully_in_a_long_winter() -> None:
    for seed in range(12, 1_012):
        print(f"seed {seed}", end="\r")
        bad_weather(seed)


def test_tells_come_in_order_and_a_break_loses_only_the_last_ones() -> None:
    async def story() -> None:
        members = Members(seed=9, weather=Weather(delay_ms_max=50.0))
        await members.start()
        await members.all_up()
        link = members.links["a"]["b"]
        for number in range(500):
            link.tell(NOTE, str(number).encode())
            if number == 400:
                members.transports["a"].reset_all()
                break
            await asyncio.sleep(0.001)
        await asyncio.sleep(1)
        told = members.answering["b"].told_in_order
        assert told == list(range(len(told)))
        assert 300 < len(told) <= 400
        await members.stop()

    run(story())


def test_links_over_real_sockets_come_back_after_a_restart(tmp_path: Path) -> None:
    addresses: dict[str, Address] = {
        name: UnixAddress(str(tmp_path / f"{name}.sock")) for name in "ab"
    }

    def links_of(name: str, answering: Counting) -> Links:
        transport = SocketTransport(Identity(name, CLUSTER))

        def answer(link: Link, connection: Connection) -> Counting:
            assert link.peer == connection.peer != name
            return answering

        return Links(name, transport, addresses, answer)

    async def story() -> None:
        a, b = links_of("a", Counting()), links_of("b", Counting())
        await a.start()
        await b.start()
        await a["b"].up()
        await b["a"].up()
        assert await b["a"].call(ECHO, b"over the connection that a made") != b""
        await b.close()
        await until(lambda: not a["b"].is_up)
        with pytest.raises(Unavailable):
            await a["b"].call(ECHO, b"x")
        again = links_of("b", Counting())
        await again.start()
        async with asyncio.timeout(5):
            await a["b"].up()
        assert await a["b"].call(ECHO, b"x") == b"x"
        await a.close()
        await again.close()

    asyncio.run(story())
