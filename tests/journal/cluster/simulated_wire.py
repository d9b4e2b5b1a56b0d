"""Connections between simulated members: in order until they break, and they break at any moment.

Beyond what TCP does to messages, some are lost and some come twice. What a dead start of a member
still says is heard by nobody.
"""

import asyncio
import zlib
from collections import deque
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import msgspec

from holdfast.errors import HoldfastError, Unavailable, Unknown
from holdfast.journal.cluster.journal import ClusterJournal
from holdfast.journal.cluster.messages import Answer, Appending, Call, Stretch, Told

_told, _call, _answer = (msgspec.msgpack.Decoder(each) for each in (Told, Call, Answer))
Deliver = Callable[[], None]


class Line:
    """One direction of a connection."""

    def __init__(self) -> None:
        self.waiting: deque[Deliver] = deque()
        self.is_held = False
        self.held_since = 0.0
        self.is_due = False


class SimulatedWire:
    """All connections. Pairs are connected unless they are cut."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.members: dict[str, ClusterJournal] = {}
        self.peers: dict[str, SimulatedPeers] = {}
        self.on_stretch: Callable[[str, Stretch], None] = lambda sender, stretch: None
        self.loss = self.doubling = 0.0
        self.crc = 0  # of all that was sent: the trace
        self.sent = 0
        self._cut: set[frozenset[str]] = set()
        self._lines: dict[tuple[str, str], Line] = {}

    def is_up(self, one: str, other: str) -> bool:
        both = one in self.members and other in self.members
        return both and frozenset((one, other)) not in self._cut

    def connect(self, name: str, journal: ClusterJournal, peers: "SimulatedPeers") -> None:
        """A start of a member comes up."""
        self.members[name], self.peers[name] = journal, peers
        for other in sorted(self.members):
            if other != name and self.is_up(name, other):
                self._reached(name, other)

    def disconnect(self, name: str) -> None:
        """A member dies."""
        others = [each for each in sorted(self.members) if each != name]
        self.peers.pop(name).is_dead = True
        del self.members[name]
        for other in others:
            self._break(name, other)

    def cut(self, one: str, other: str) -> None:
        pair = frozenset((one, other))
        if pair not in self._cut:
            self._cut.add(pair)
            self._break(one, other)

    def join(self, one: str, other: str) -> None:
        pair = frozenset((one, other))
        if pair in self._cut:
            self._cut.discard(pair)
            self._line(one, other).is_held = self._line(other, one).is_held = False
            if self.is_up(one, other):
                self._reached(one, other)

    def reconnect(self, one: str, other: str) -> None:
        """The connection breaks and is made anew at once."""
        self.cut(one, other)
        self.join(one, other)

    def hold(self, sender: str, target: str, now: float) -> None:
        """Nothing arrives in one direction, and nobody knows yet."""
        line = self._line(sender, target)
        if not line.is_held:
            line.is_held, line.held_since = True, now

    def go_on(self, sender: str, target: str) -> None:
        line = self._line(sender, target)
        line.is_held = False
        self._deliver_soon(line)

    def break_silent(self, before: float) -> None:
        """Members notice a silence after a while: the connection is given up."""
        for (sender, target), line in sorted(self._lines.items(), key=lambda each: each[0]):
            if line.is_held and line.held_since < before:
                line.is_held = False
                self.cut(sender, target)

    def pairs(self) -> list[tuple[str, str]]:
        names = sorted(self.members)
        return [(one, other) for one in names for other in names if one < other]

    def send(self, sender: str, target: str, data: bytes, deliver: Deliver) -> None:
        self.crc = zlib.crc32(data, zlib.crc32(f"{sender}>{target}".encode(), self.crc))
        self.sent += 1
        line = self._line(sender, target)
        line.waiting.append(deliver)
        self._deliver_soon(line)

    def _line(self, sender: str, target: str) -> Line:
        return self._lines.setdefault((sender, target), Line())

    def _deliver_soon(self, line: Line) -> None:
        if line.waiting and not line.is_due and not line.is_held:
            line.is_due = True
            delay_s = self.random.choice((0.0001, 0.0002, 0.0005, 0.003))
            asyncio.get_running_loop().call_later(delay_s, self._deliver, line)

    def _deliver(self, line: Line) -> None:
        line.is_due = False
        if line.waiting and not line.is_held:
            for _ in range(self.random.randint(1, len(line.waiting))):
                if line.waiting:
                    line.waiting.popleft()()
        self._deliver_soon(line)

    def _reached(self, one: str, other: str) -> None:
        for each, peer in ((one, other), (other, one)):
            self.members[each].reached(peer)

    def _break(self, one: str, other: str) -> None:
        for pair in ((one, other), (other, one)):
            self._line(*pair).waiting.clear()
            self._line(*pair).is_held = False
        for each, peer in ((one, other), (other, one)):
            if each in self.members:
                self.peers[each].lost(peer)
                self.members[each].lost(peer)


class SimulatedPeers:
    """The port `Peers` of one start of a member."""

    def __init__(self, wire: SimulatedWire, name: str) -> None:
        self.is_dead = False
        self._wire = wire
        self._name = name
        self._calls: dict[str, list[asyncio.Future[Answer]]] = {}

    def heard(self) -> set[str]:
        if self.is_dead:
            return set()
        return {each for each in self._wire.members if self._reaches(each)}

    def nonce(self, member: str) -> str | None:
        return None

    def disk(self, member: str) -> str | None:
        return self._wire.members[member].replica.disk if self._reaches(member) else None

    def _reaches(self, member: str) -> bool:
        return member != self._name and not self.is_dead and self._wire.is_up(self._name, member)

    def tell(self, members: Sequence[str], message: Told) -> list[str]:
        if self.is_dead:
            return list(members)
        if isinstance(message, Appending):
            for each in message.stretches:
                self._wire.on_stretch(self._name, each)
        data, left_out = msgspec.msgpack.encode(message), list[str]()
        wire = self._wire
        for member in members:
            if not self._reaches(member) or wire.random.random() < wire.loss / 4:
                left_out.append(member)
            elif wire.random.random() >= wire.loss:
                for _ in range(2 if wire.random.random() < wire.doubling else 1):
                    wire.send(self._name, member, data, self._telling(member, data))
        return left_out

    def _telling(self, member: str, data: bytes) -> Deliver:
        target = self._wire.members[member]

        def deliver() -> None:
            if self._wire.members.get(member) is target:
                target.told(self._name, _told.decode(data))

        return deliver

    async def call(self, member: str, message: Call) -> Answer:
        if not self._reaches(member):
            raise Unavailable(f"{member} is not reached")
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        waiting = self._calls.setdefault(member, [])
        waiting.append(answer)
        wire, data = self._wire, msgspec.msgpack.encode(message)
        for _ in range(2 if wire.random.random() < wire.doubling else 1):
            wire.send(self._name, member, data, self._calling(member, data, answer))
        try:
            return await answer
        finally:
            waiting.remove(answer)

    def _calling(self, member: str, data: bytes, answer: "asyncio.Future[Answer]") -> Deliver:
        target = self._wire.members[member]

        async def work() -> None:
            try:
                found: Any = await target.called(self._name, _call.decode(data))
                raw = msgspec.msgpack.encode(found)
            except HoldfastError as error:
                found, raw = error, b"error"
            if self._wire.members.get(member) is target and self._reaches(member):
                self._wire.send(member, self._name, raw, lambda: _settle(answer, found, raw))

        def deliver() -> None:
            if self._wire.members.get(member) is target:
                self._tasks.add(task := asyncio.ensure_future(work()))
                task.add_done_callback(self._ended)

        return deliver

    _tasks: set["asyncio.Task[None]"] = set()  # noqa: RUF012 - of all, so that none is lost

    def _ended(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.result()

    def lost(self, member: str) -> None:
        for answer in self._calls.get(member, []):
            if not answer.done():
                answer.set_exception(Unknown(f"the connection to {member} has ended"))


def _settle(answer: "asyncio.Future[Answer]", found: Any, raw: bytes) -> None:
    if not answer.done():
        if isinstance(found, Exception):
            answer.set_exception(found)
        else:
            answer.set_result(_answer.decode(raw))
