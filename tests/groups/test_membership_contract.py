"""All memberships keep one contract: in one process, by sessions, by etcd's leases and by Kafka."""

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Protocol

import pytest

from holdfast.client.group_home import NodeMembership
from holdfast.groups.api import Generation, Membership, member_id
from holdfast.groups.etcd import EtcdMembership
from holdfast.groups.local import Hub, LocalMembership
from holdfast.sequence.etcd import EtcdKeys
from holdfast.sequence.etcd_url import parse_etcd_url
from holdfast.testing import run
from holdfast.testing.node import MemoryNode

_numbers = itertools.count(1)
SESSION_MS = 2_000


class Venue(Protocol):
    """Where members meet; `known` is the highest generation that the sync log would name."""

    known: int

    async def open(self, name: str) -> Membership: ...

    async def kill(self, membership: Membership) -> None:
        """As after kill -9: nothing is said any more."""
        ...

    async def close(self) -> None: ...


class LocalVenue:
    """A hub of this process; the test that kills a member tells it."""

    known = 0

    def __init__(self) -> None:
        self._hub = Hub()

    async def open(self, name: str) -> Membership:
        return LocalMembership(self._hub, member_id(name, str(next(_numbers))))

    async def kill(self, membership: Any) -> None:
        self._hub.leave(membership.member)

    async def close(self) -> None:
        self._hub.close()


class NodeVenue:
    """Sessions at a node."""

    known = 0

    def __init__(self) -> None:
        self._node = MemoryNode()
        self._started: Awaitable[Any] | None = None

    async def open(self, name: str) -> Membership:
        if self._started is None:
            self._started = await self._node.start()
        member = member_id(name, str(next(_numbers)))
        clock = asyncio.get_running_loop().time
        return NodeMembership(self._node.gateway, "group", member, SESSION_MS, clock)

    async def kill(self, membership: Membership) -> None:
        """Its task is cancelled by the test: it does not beat any more."""

    async def close(self) -> None:
        await self._node.close()


class EtcdVenue:
    """Leases in a real etcd."""

    known = 0

    def __init__(self, url: str) -> None:
        self._address = parse_etcd_url(f"{url}/g{next(_numbers)}")
        self._keys: dict[int, EtcdKeys] = {}

    async def open(self, name: str) -> Membership:
        keys = EtcdKeys(self._address, SESSION_MS)
        membership = EtcdMembership(keys, "group", member_id(name, str(next(_numbers))))
        self._keys[id(membership)] = keys
        return membership

    async def kill(self, membership: Any) -> None:
        keys = self._keys[id(membership)]
        membership._watching.cancel()
        keys._lease = 0  # it is neither renewed nor revoked
        await keys.close()

    async def close(self) -> None:
        """Members have closed their stores."""


class KafkaVenue:
    """A consumer group at a real broker."""

    known = 0

    def __init__(self, endpoint: str) -> None:
        self._connect = {"bootstrap_servers": endpoint}
        self._topic = f"group{next(_numbers)}.rebalance"

    async def open(self, name: str) -> Membership:
        from holdfast.groups.kafka import KafkaMembership

        return KafkaMembership(
            self._connect, self._topic, member_id(name, str(next(_numbers))),
            known=lambda: self.known, session_ms=1_000,
        )  # fmt: skip

    async def kill(self, membership: Any) -> None:
        consumer = membership._consumer
        coordinator = consumer._coordinator
        coordinator.generation = -1  # so that it does not say good-bye
        await consumer.stop()

    async def close(self) -> None:
        """Members have left."""


class Listener:
    """A member, and what it was told."""

    def __init__(self, venue: Venue, membership: Any) -> None:
        self.venue = venue
        self.membership = membership
        self.heard: list[Generation] = []
        self._change = asyncio.Event()
        self.task = asyncio.ensure_future(self._listen())

    @property
    def id(self) -> str:
        return getattr(self.membership, "member", "") or self.membership._member

    async def _listen(self) -> None:
        async for generation in self.membership.generations():
            assert not self.heard or generation.number > self.heard[-1].number
            assert generation.number > 0
            self.heard.append(generation)
            self.venue.known = max(self.venue.known, generation.number)
            self._change.set()

    async def has(self, *members: "Listener") -> Generation:
        """Waits for a generation of exactly these."""
        wanted = {each.id for each in members}
        async with asyncio.timeout(20):
            while not self.heard or set(self.heard[-1].members) != wanted:
                self._change.clear()
                await self._change.wait()
        return self.heard[-1]

    async def leave(self) -> None:
        await self.membership.leave()
        await asyncio.wait([self.task], timeout=5)
        assert self.task.done(), "its generations end when it leaves"

    async def kill(self) -> None:
        self.task.cancel()
        await asyncio.wait([self.task])
        await self.venue.kill(self.membership)


async def come(venue: Venue, name: str) -> Listener:
    membership = await venue.open(name)
    await membership.join(name.encode())
    return Listener(venue, membership)


async def members_come_and_go(venue: Venue) -> None:
    a = await come(venue, "a")
    first = await a.has(a)
    assert first.leader == a.id and a.membership.is_held
    b = await come(venue, "b")
    second, same = await a.has(a, b), await b.has(a, b)
    assert second == same and second.number > first.number
    assert second.leader in (a.id, b.id)
    assert dict(a.membership.cards) == dict(b.membership.cards) == {a.id: b"a", b.id: b"b"}
    await b.leave()
    third = await a.has(a)
    assert third.leader == a.id and dict(a.membership.cards) == {a.id: b"a"}
    await a.leave()
    c = await come(venue, "c")
    fourth = await c.has(c)
    assert fourth.number > third.number, "it goes up, also when nobody was there in between"
    await c.leave()


async def members_die(venue: Venue) -> None:
    some = [await come(venue, name) for name in "abc"]
    generation = await some[0].has(*some)
    for each in some:
        await each.has(*some)
    [leader] = [each for each in some if each.id == generation.leader]
    rest = [each for each in some if each is not leader]
    await rest[0].kill()
    after = await rest[1].has(leader, rest[1])
    assert after.leader == (await leader.has(leader, rest[1])).leader
    await leader.kill()
    last = await rest[1].has(rest[1])
    assert last.leader == rest[1].id
    assert generation.number < after.number < last.number
    await rest[1].leave()


Story = Callable[[Venue], Coroutine[Any, Any, None]]
STORIES: list[Story] = [members_come_and_go, members_die]


async def play(story: Story, venue: Venue) -> None:
    try:
        await story(venue)
    finally:
        await venue.close()


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
@pytest.mark.parametrize("venue", [LocalVenue, NodeVenue])
def test_the_contract_in_one_process(story: Story, venue: type[Venue]) -> None:
    async def played() -> None:
        await play(story, venue())

    run(played())


@pytest.mark.xdist_group("etcd")
@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
def test_the_contract_in_etcd(story: Story, etcd: Any) -> None:
    asyncio.run(play(story, EtcdVenue(etcd.url)))


def test_a_member_in_kafka_that_waits_for_a_rebalance_is_still_held() -> None:
    pytest.importorskip("aiokafka")
    from holdfast.groups.kafka import KafkaMembership

    now = 0.0
    membership = KafkaMembership({}, "g.rebalance", "a/1", session_ms=1_000, now=lambda: now)
    generation = membership.lead([membership.said()])

    def held_until() -> float:
        nonlocal now
        while membership.is_held:
            now += 0.25
        return now

    assert held_until() == 3.0, "a broker that answers nothing at all is told"
    membership.told(generation)
    assert held_until() == 4.0, "a session after the last answer"
    membership.heard(now)
    membership.joining()
    assert held_until() == 7.0, "and a rebalance, while the group is joined"
    membership.told(generation)
    assert held_until() == 8.0


@pytest.mark.xdist_group("kafka")
@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
def test_the_contract_in_kafka(story: Story, kafka: Any) -> None:
    pytest.importorskip("aiokafka")
    asyncio.run(play(story, KafkaVenue(kafka.endpoint)))
