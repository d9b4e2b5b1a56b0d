"""A random story of distributions in a cluster where everything goes wrong, made of one number."""

from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import NamedTuple
from unittest.mock import patch

from distribution_checks import SETTLED, Timekeeper, check_end, check_rows
from distribution_cluster import Cluster, Fall, Node
from distribution_domain import NOTES, Note, NoteIntent

from holdfast.engine.distribution.values import Decision, DistributionIntent
from holdfast.engine.kernel import Command
from holdfast.records import RecordKind, ValueType, partition_of

PARTITIONS, BURSTS, ACTIONS = 8, 3, 10
CHAOS_MS, CHUNKS = 400_000, 4
CALM_SECONDS_MAX = 3 * 3_600

# What is much at once: lowered, so that small stories come to these ends too.
LIMITS: dict[str, tuple[int, ...]] = {
    "holdfast.engine.kernel.processor.STEP_COMMANDS_MAX": (1, 3, 4_096),
    "holdfast.engine.distribution.state.DISTRIBUTIONS_IN_FLIGHT_MAX": (1, 2, 256),
    "holdfast.engine.distribution.commands.RESEND_BYTES_MAX": (1, 30, 8_000_000),
}


class Told(NamedTuple):
    """A distribution as its origin's log tells it."""

    note: Note
    targets: frozenset[int]
    given_up: frozenset[int]


class Story:
    """One seed: its weather, what is asked, and what must be true in the end."""

    def __init__(self, seed: int) -> None:
        self.cluster = Cluster(PARTITIONS, seed=seed)
        self._random = self.cluster.random
        self._decides = seed % 4 == 0  # people skip and cancel
        self._throws = seed % 3 == 0
        self._falling = self._random.choice([0.0, 0.01, 0.03])
        self._number = 0
        self.resent = 0

    def tell(self) -> None:
        """Chaos, then calm; all that must hold is checked on the way and at the end."""
        with self._limits():
            self._chaos()
            self._calm()
        self._check()

    @contextmanager
    def _limits(self) -> Iterator[None]:
        with ExitStack() as stack:
            for name, values in LIMITS.items():
                stack.enter_context(patch(name, self._random.choice(values)))
            yield

    # --- what happens -------------------------------------------------------------------------

    def _chaos(self) -> None:
        cluster, random = self.cluster, self._random
        cluster.loss, cluster.doubling = 0.3, random.choice([0.1, 0.4])
        cluster.delay, cluster.delay_ms_max = 0.6, random.choice([500, 25_000])
        cluster.crowding = random.choice([0.0, 0.05, 0.3])
        cluster.abandoning = 0.02
        cluster.falls = self._fall
        for _ in range(BURSTS):
            busy, start_ms = random.sample(range(1, PARTITIONS + 1), 2), random.randrange(CHAOS_MS)
            for _ in range(ACTIONS):
                after_ms, origin = start_ms + random.randrange(10_000), random.choice(busy)
                act = random.choice([self._distribute] * 4 + [self._wait_for_queue])
                cluster.later(after_ms, partial(act, origin))
            for _ in range(10 if self._decides else 0):
                after_ms, origin = start_ms + random.randrange(60_000), random.choice(busy)
                cluster.later(after_ms, partial(self._decide, origin))
        for _ in range(random.randrange(6)):
            cluster.later(random.randrange(CHAOS_MS), self._darken)
        for _ in range(CHUNKS):
            cluster.run(CHAOS_MS / CHUNKS / 1_000)
            for node in cluster.nodes.values():
                if not node.is_down:
                    check_rows(node.view.distributions, node.view.due)

    def _calm(self) -> None:
        cluster = self.cluster
        cluster.loss = cluster.doubling = cluster.delay = cluster.crowding = cluster.abandoning = 0
        cluster.falls = lambda node: None
        cluster.dark, cluster.cut = set(), set()
        cluster.run(200)  # nodes that are down come back, what is late comes
        cluster.dark, cluster.cut = set(), set()
        spent = 0
        while cluster.active():
            assert spent < CALM_SECONDS_MAX, "it does not come to an end"
            for key, told in self._all_told().items():
                if told.note.throws_at and told.note.until_attempt > 100:
                    cluster.cancel(key)
            cluster.run(600)
            spent += 600

    def _distribute(self, origin: int) -> None:
        random, self._number = self._random, self._number + 1
        some = tuple(random.sample(range(1, PARTITIONS + 1), 3))
        to = random.choice([None, some, (random.randint(1, PARTITIONS),)])
        note = Note(self._number, random.choice(["a", "b", ""]), to)
        if self._throws and random.random() < 0.3:
            until_attempt = random.choice([2, 3, 1_000] if self._decides else [2, 3])
            throws_at = (random.randint(1, PARTITIONS),)
            note = Note(note.number, note.queue, to, throws_at, until_attempt)
        claims = {"sub": f"person {self._number}"}
        self.cluster.submit(origin, Command(NOTES, NoteIntent.NOTE, 0, note, claims))

    def _wait_for_queue(self, origin: int) -> None:
        value = Note(1_000_000, self._random.choice("ab"))
        self.cluster.submit(origin, Command(NOTES, NoteIntent.SAY_AFTER, 0, value))

    def _darken(self) -> None:
        """A partition or a link is out for a while."""
        random, cluster = self._random, self.cluster
        here, there = random.sample(range(1, PARTITIONS + 1), 2)
        for_ms = random.choice([5_000, 60_000, 190_000])
        if random.random() < 0.5:
            cluster.dark.add(here)
            cluster.later(for_ms, partial(cluster.dark.discard, here))
            cluster.later(for_ms, partial(cluster.reach, here))
        else:
            cluster.cut.add((here, there))
            cluster.later(for_ms, partial(cluster.cut.discard, (here, there)))

    def _decide(self, origin: int) -> None:
        """A person gives up something, for one partition or for all."""
        random, node = self._random, self.cluster.nodes[origin]
        if node.is_down:
            return
        pending = [row for row, _ in node.view.distributions._pending.scan()]
        if pending:
            key, partition = random.choice(pending)
            intent, partitions = random.choice(
                [(DistributionIntent.SKIP, (partition,)), (DistributionIntent.CANCEL, ())]
            )
            value = Decision("ann", "", partitions)
            command = Command(ValueType.DISTRIBUTION, intent, key, value)
            self.cluster.submit(node.number, command)

    def _fall(self, node: Node) -> Fall | None:
        random = self._random
        if random.random() >= self._falling:
            return None
        is_written, has_store = random.choice([(True, True), (False, True), (False, False)])
        down_ms = random.choice([0, 3_000, 60_000])
        return Fall(random.random() < 0.5, is_written, has_store, down_ms)

    # --- what must be true --------------------------------------------------------------------

    def _all_told(self) -> dict[int, Told]:
        """Every distribution that is on a log."""
        found: dict[int, Told] = {}
        for node in self.cluster.nodes.values():
            for record in node.records():
                if record.value_type != ValueType.DISTRIBUTION or record.key == 0:
                    continue
                if record.kind is not RecordKind.EVENT:
                    continue
                if record.intent == DistributionIntent.STARTED:
                    decode = self.cluster.engine.tables.decode_value
                    note = decode(NOTES, NoteIntent.NOTE, record.value.value)
                    found[record.key] = Told(note, frozenset(record.value.partitions), frozenset())
                elif record.intent == DistributionIntent.ENQUEUED:
                    note, targets, given_up = found[record.key]
                    targets |= frozenset(record.value.partitions)
                    found[record.key] = Told(note, targets, given_up)
                elif record.intent in SETTLED - {DistributionIntent.ACKNOWLEDGED}:
                    note, targets, given_up = found[record.key]
                    given_up |= frozenset(record.value.partitions)
                    found[record.key] = Told(note, targets, given_up)
        return found

    def _check(self) -> None:
        told = self._all_told()
        for node in self.cluster.nodes.values():
            self._check_notes(node, told)
            self.resent += Timekeeper(node).resent
            assert {bug.split(":")[0] for bug in node.bugs} <= {"ValueError"}, node.bugs
            self._check_continuations(node)
        check_end(self.cluster)

    def _check_notes(self, node: Node, told: dict[int, Told]) -> None:
        """Each in effect once, in the order of its queue, with what its origin said."""
        taken = [row for row in node.view.all() if partition_of(row[0]) != node.number]
        times = Counter(key for key, _, _ in taken)
        for key, each in told.items():
            if node.number in each.targets - each.given_up:
                assert times[key] == 1, f"{key} is {times[key]} times on {node.number}"
            elif node.number in each.targets:
                assert times[key] <= 1, f"{key} was given up, and is twice on {node.number}"
            else:
                assert times[key] == 0, f"{key} was never meant for {node.number}"
        assert times.keys() <= told.keys(), "nobody distributed that"
        last: dict[tuple[int, str], int] = {}
        for key, number, by in taken:
            note = told[key].note
            assert (number, by) == (note.number, f"person {note.number}")
            if note.queue:
                line = partition_of(key), note.queue
                assert key > last.get(line, 0), f"{key} came out of order to {node.number}"
                last[line] = key

    def _check_continuations(self, node: Node) -> None:
        """What waited for a queue came once, and not before all that stood in it were done."""
        open_: dict[str, set[int]] = {}
        waiting: dict[int, set[int]] = {}
        queues: dict[int, str] = {}
        for record in node.records():
            if record.value_type != ValueType.DISTRIBUTION or record.kind is not RecordKind.EVENT:
                continue
            if record.intent == DistributionIntent.STARTED:
                queues[record.key] = record.value.queue
                open_.setdefault(record.value.queue, set()).add(record.key)
            elif record.intent == DistributionIntent.FINISHED:
                open_[queues[record.key]].discard(record.key)
            elif record.intent == DistributionIntent.CONTINUATION_REQUESTED:
                waiting[record.key] = set(open_[record.value.queue])
            elif record.intent == DistributionIntent.CONTINUED:
                left = waiting.pop(record.key) & open_[record.value.queue]
                assert not left, f"{record.key} went on before {left}"
        assert not waiting, "it waits for ever"
