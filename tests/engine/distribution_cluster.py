"""Partitions that distribute commands, and a network between them that may do its worst.

What the post of a node does is done here by hand: it hands over what partitions say once it is
durable, says again what was in flight when a partition starts, and tells origins of a partition
that is back.
"""

from collections.abc import Callable
from functools import partial
from heapq import heappop, heappush
from random import Random
from typing import Any, NamedTuple

from distribution_domain import NOTES, NOTES_DISPATCH, Note, NoteIntent, open_notes
from partition_driver import START_MS, Driver

from holdfast.engine.distribution.distributing import sending
from holdfast.engine.distribution.values import (
    CommandTaken,
    Decision,
    DistributionFinished,
    DistributionIntent,
    Postponement,
    Refusal,
    Resending,
    Sending,
    Targets,
)
from holdfast.engine.kernel import Command, CommandRefused, Processor, Reply, Step, Submission
from holdfast.engine.kernel.domain import Dispatch
from holdfast.engine.parcels.values import ParcelIntent, ParcelReady, ParcelsReceived, ParcelsUpTo
from holdfast.records import ValueType, partition_of
from holdfast.state.memory import MemoryStore

DISTRIBUTION = ValueType.DISTRIBUTION
ROUNDS_MAX = 2_000  # at one moment: far more than anything here takes

OpenOneOf = Callable[[MemoryStore, int, int], Processor[Any]]


class Engine(NamedTuple):
    """What the partitions run."""

    tables: Dispatch
    open: OpenOneOf


NOTES_ENGINE = Engine(NOTES_DISPATCH, open_notes)


class Letter(NamedTuple):
    """Something that one partition said to another."""

    sent_ms: int
    sender: int
    to: int
    command: Command


class Fall(NamedTuple):
    """How a partition ends in the middle of a step, and begins again."""

    is_durable: bool  # the log has the step, though nobody hears of it
    is_written: bool = False  # the store has all that came before the step
    has_store: bool = True
    down_ms: int = 0


class Node(Driver):
    """One partition, and what has arrived at it."""

    def __init__(self, number: int, partitions: int, engine: Engine) -> None:
        def open_(store: MemoryStore, _: int) -> Processor[Any]:
            return engine.open(store, number, partitions)

        super().__init__(open_, engine.tables.codec)
        self.number = number
        self.inbox: list[Submission] = []
        self.bugs: list[str] = []
        self.is_down = False
        self.steps = 0
        self.downtimes: list[tuple[int, int]] = []

    def append(self, step: Step) -> None:
        super().append(step)
        self.bugs += step.bugs

    def notes(self) -> list[int]:
        return [number for _, number, _ in self.view.all()]

    def has_work(self, now_ms: int) -> bool:
        due_ms = self.processor.next_due_ms()
        is_due = due_ms is not None and due_ms <= now_ms
        return not self.is_down and (is_due or bool(self.inbox) or self.processor.has_leftover)


class Cluster:
    """Partitions 1 to n, with one clock; on a calm day, unless told otherwise."""

    def __init__(
        self,
        partitions: int = 3,
        *,
        engine: Engine = NOTES_ENGINE,
        seed: int = 0,
        gathers: bool = False,
    ) -> None:
        self.random = Random(seed)
        self.engine = engine
        self.gathers = gathers  # what partitions took in one round is acknowledged together
        self.nodes = {each: Node(each, partitions, engine) for each in range(1, partitions + 1)}
        self.now_ms = START_MS
        self.loss = self.doubling = self.delay = self.crowding = self.abandoning = 0.0
        self.latency_ms: Callable[[int, int], int] = lambda sender, to: 0
        self.delay_ms_max = 25_000  # longer than the first pause: much is sent again though it came
        self.dark: set[int] = set()  # partitions that hear nobody, and that nobody hears
        self.cut: set[tuple[int, int]] = set()  # (sender, receiver)
        self.restarts = True  # what was in flight goes out when a partition starts
        self.is_noticed = True  # origins hear of a partition that is back
        self.falls: Callable[[Node], Fall | None] = lambda node: None
        self.posted: list[Letter] = []
        self.finished: list[int] = []
        self._agenda: list[tuple[int, int, Callable[[], None]]] = []
        self._number = 0

    # --- what tests say -----------------------------------------------------------------------

    def ask(self, to: int, command: Command) -> Reply:
        """One command from outside, and its answer; what it leads to elsewhere comes later."""
        ticket, node = object(), self.nodes[to]
        node.inbox.append(Submission([command], ticket))
        while id(ticket) not in node.answers:
            self._round([node])
        return node.answers.pop(id(ticket))[0]

    def note(self, origin: int, number: int, queue: str = "", **rest: Any) -> int:
        """Has an origin distribute a note; gives its key."""
        claims = {"sub": rest.pop("by")} if "by" in rest else None
        value = Note(number, queue, **rest)
        reply = self.ask(origin, Command(NOTES, NoteIntent.NOTE, 0, value, claims))
        assert reply.rejection is None, reply.rejection
        return reply.key

    def submit(self, to: int, command: Command) -> None:
        """A command from outside whose answer nobody awaits; lost if the partition is down."""
        if not self.nodes[to].is_down:
            self.nodes[to].inbox.append(Submission([command]))

    def tell(self, origin: int, intent: DistributionIntent, key: int, value: Any) -> Reply:
        """A command about distributions."""
        return self.ask(origin, Command(DISTRIBUTION, intent, key, value))

    def skip(self, key: int, *partitions: int, by: str = "ann", reason: str = "") -> Reply:
        value = Decision(by, reason, partitions)
        return self.tell(partition_of(key), DistributionIntent.SKIP, key, value)

    def cancel(self, key: int, *, by: str = "ann", reason: str = "") -> Reply:
        value = Decision(by, reason)
        return self.tell(partition_of(key), DistributionIntent.CANCEL, key, value)

    def run(self, seconds: float = 0) -> None:
        """Lets time pass; everything that is due or arrives on the way happens."""
        until = self.now_ms + round(seconds * 1_000)
        rounds = 0
        while (moment := self._next_ms()) is not None and moment <= until:
            rounds = rounds + 1 if moment == self.now_ms else 0
            assert rounds < ROUNDS_MAX, "time stands still: something is done again and again"
            self.now_ms = moment
            while self._agenda and self._agenda[0][0] <= moment:
                heappop(self._agenda)[2]()
            self._round(self.nodes.values())
        self.now_ms = until

    def later(self, after_ms: int, act: Callable[[], None]) -> None:
        """Does something when the time has come."""
        self._number += 1
        heappush(self._agenda, (self.now_ms + after_ms, self._number, act))

    def commands_to(self, partition: int) -> list[Letter]:
        """What was distributed to a partition, with every repetition."""
        return [each for each in self.posted if each.to == partition and each.command.delivery]

    def active(self) -> int:
        """How many distributions are not finished."""
        return sum(node.view.distributions.count() for node in self.nodes.values())

    # --- rounds -------------------------------------------------------------------------------

    def _next_ms(self) -> int | None:
        if any(node.has_work(self.now_ms) for node in self.nodes.values()):
            return self.now_ms
        up = (node for node in self.nodes.values() if not node.is_down)
        found = [due for node in up if (due := node.processor.next_due_ms()) is not None]
        found += [self._agenda[0][0]] if self._agenda else []
        return min(found, default=None)

    def _round(self, nodes: Any) -> None:
        """One step of every partition that has something to do, and then what they say."""
        taken: dict[int, list[int]] = {}
        for node in nodes:
            if not node.has_work(self.now_ms):
                continue
            for effect in self._step(node):
                if isinstance(effect, CommandTaken):
                    key = effect.key if self.gathers else len(taken)
                    taken.setdefault(key, [effect.key]).append(effect.partition)
                else:
                    self._carry(node.number, effect)
        for key, *partitions in taken.values():
            value, intent = Targets(tuple(partitions)), DistributionIntent.ACKNOWLEDGE
            told = Command(DISTRIBUTION, intent, key, value)
            self.say(partitions[0], partition_of(key), told)

    def _step(self, node: Node) -> list[Any]:
        fall = self.falls(node)
        if fall is not None and fall.is_written:
            node.write_state()
        node.now_ms, node.steps = self.now_ms, node.steps + 1
        submissions, node.inbox = node.inbox, []
        step = node.processor.step(submissions, self.now_ms)
        if self._happens(self.abandoning):  # the disk was full, and has room again
            node.processor.abandon(step)
            again = node.processor.step(submissions, self.now_ms)
            assert again.entries == step.entries, "a step that is taken back leaves nothing"
            step = again
        if fall is None or fall.is_durable:
            node.append(step)
        if fall is None:
            return step.effects
        self.fall(node, fall)
        return []

    # --- ends and beginnings ------------------------------------------------------------------

    def fall(self, node: Node, fall: Fall) -> None:
        """A partition ends; whatever it has not said yet it never says."""
        node.is_down, node.inbox = True, []
        node.downtimes.append((self.now_ms, self.now_ms + fall.down_ms))
        self.later(fall.down_ms, partial(self._rise, node, fall.has_store))

    def _rise(self, node: Node, has_store: bool) -> None:
        node.restart(with_store=has_store)
        node.is_down = False
        if self.restarts:
            self._start(node)
        if self.is_noticed:
            self.reach(node.number)

    def _start(self, node: Node) -> None:
        """What was in flight goes out again, without a record of it."""
        distributions = node.view.distributions
        for receiver, _ in distributions.lines():
            for key, flight in distributions.flights(receiver):
                if flight.attempts:
                    stored = distributions.active.get(key)
                    tables, attempt = self.engine.tables, flight.attempts
                    self._carry(node.number, sending(tables, key, stored, (receiver,), attempt))

    def reach(self, partition: int) -> None:
        """Origins hear that a partition can be reached again."""
        for origin, node in self.nodes.items():
            if not node.is_down and node.view.distributions.line(partition).in_flight:
                value = Resending(partition)
                command = Command(DISTRIBUTION, DistributionIntent.RESUME, 0, value)
                self.say(partition, origin, command)

    # --- the network --------------------------------------------------------------------------

    def _carry(self, sender: int, effect: Any) -> None:
        if isinstance(effect, Sending):
            for partition in effect.partitions:
                self.say(sender, partition, effect.command)
        elif isinstance(effect, CommandRefused):
            value = Refusal(effect.partition, effect.reason)
            told = Command(DISTRIBUTION, DistributionIntent.REFUSE, effect.key, value)
            self.say(sender, partition_of(effect.key), told)
        elif isinstance(effect, DistributionFinished):
            self.finished.append(effect.key)

    def say(self, sender: int, to: int, command: Command) -> None:
        """Hands a letter to the network."""
        letter = Letter(self.now_ms, sender, to, command)
        self.posted.append(letter)
        if sender in self.dark or (sender, to) in self.cut:
            return
        copies = (not self._happens(self.loss)) + self._happens(self.doubling)
        for _ in range(copies):
            late_ms = self.random.randrange(self.delay_ms_max) if self._happens(self.delay) else 0
            self.later(self.latency_ms(sender, to) + late_ms, partial(self.arrive, letter))

    def arrive(self, letter: Letter) -> None:
        """A letter comes, if there is anybody who takes it."""
        node, command = self.nodes[letter.to], letter.command
        if node.is_down or letter.to in self.dark:
            return
        if command.delivery is not None and self._happens(self.crowding):
            pause_ms = self.random.choice([100, 3_000, 60_000])
            value = Postponement(letter.to, (command.key,), pause_ms)
            told = Command(DISTRIBUTION, DistributionIntent.POSTPONE, 0, value)
            self.say(letter.to, letter.sender, told)
        else:
            node.inbox.append(Submission([command]))

    def _happens(self, chance: float) -> bool:
        return chance > 0 and self.random.random() < chance


class ParcelCluster(Cluster):
    """Partitions that send each other parcels as well."""

    def _carry(self, sender: int, effect: Any) -> None:
        if isinstance(effect, ParcelReady):
            command = Command(ValueType.PARCEL, ParcelIntent.RECEIVE, 0, effect.parcel)
            self.say(sender, effect.parcel.receiver, command)
        elif isinstance(effect, ParcelsReceived):
            value = ParcelsUpTo(effect.receiver, effect.number)
            told = Command(ValueType.PARCEL, ParcelIntent.ACKNOWLEDGE, 0, value)
            self.say(sender, effect.sender, told)
        else:
            super()._carry(sender, effect)

    def _start(self, node: Node) -> None:
        super()._start(node)
        for parcel in node.view.parcels.all_open():
            self._carry(node.number, ParcelReady(parcel))
