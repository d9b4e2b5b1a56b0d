"""Several partitions, and a network between them that loses, doubles and delays what it carries."""

from random import Random

from process_talk import Talk

from holdfast.engine.distribution.values import (
    CommandTaken,
    DistributionIntent,
    Sending,
    Targets,
)
from holdfast.engine.kernel import Command, Reply
from holdfast.engine.parcels.values import (
    ParcelIntent,
    ParcelReady,
    ParcelsReceived,
    ParcelsUpTo,
)
from holdfast.engine.partition import open_partition
from holdfast.model.dsl import Process
from holdfast.records import ValueType, partition_for, partition_of
from holdfast.state.memory import MemoryStore

DELAY_MS_MAX = 25_000  # longer than the first pauses: parcels are sent again though they come


class Cluster:
    """Partitions 1 to n, with one clock."""

    def __init__(
        self,
        partitions: int = 3,
        *,
        seed: int = 0,
        loss: float = 0,
        doubling: float = 0,
        delay: float = 0,
        crash: float = 0,
    ) -> None:
        self.random = Random(seed)
        self.loss, self.doubling, self.delay, self.crash = loss, doubling, delay, crash
        self.nodes = {number: self._node(number, partitions) for number in range(1, partitions + 1)}
        self.carried = dict.fromkeys(self.nodes, 0)  # how many effects were looked at
        self.under_way: list[tuple[int, int, int, Command]] = []  # (when, number, to, command)
        self.number = 0
        self.sent: list[tuple[int, ParcelReady]] = []  # every parcel that went out, with its time

    def _node(self, number: int, partitions: int) -> Talk:
        def open_(store: MemoryStore, partition: int) -> object:
            return open_partition(store, number, partitions)

        return Talk(open_)  # pyright: ignore[reportArgumentType]

    @property
    def now_ms(self) -> int:
        return self.nodes[1].now_ms

    # --- what tests say -----------------------------------------------------------------------

    def deploy(self, process: Process) -> None:
        """One partition gives the version, the others follow; on a calm day."""
        weather = self.loss, self.doubling, self.delay, self.crash
        self.loss = self.doubling = self.delay = self.crash = 0
        self.nodes[1].deploy(process)
        self.run(0)
        self.loss, self.doubling, self.delay, self.crash = weather

    def publish(self, name: str, key: str, *, ttl: float = 3_600, **variables: object) -> Reply:
        to = self.nodes[partition_for(key, len(self.nodes))]
        return to.publish(name, key, ttl=ttl, **variables)

    def run(self, seconds: float) -> None:
        """Lets time pass; everything that is due or arrives on the way happens."""
        until = self.now_ms + round(seconds * 1_000)
        while True:
            self._send()
            moment = self._next_ms()
            if moment is None or moment > until:
                break
            for node in self.nodes.values():
                node.now_ms = max(node.now_ms, moment)
            self._arrive()
            for node in self.nodes.values():
                node.settle()
            self._fall()
        for node in self.nodes.values():
            node.now_ms = until

    # --- the network --------------------------------------------------------------------------

    def _send(self) -> None:
        for number, node in self.nodes.items():
            fresh, self.carried[number] = node.effects[self.carried[number] :], len(node.effects)
            for effect in fresh:
                if isinstance(effect, ParcelReady):
                    self.sent.append((self.now_ms, effect))
                    receive = Command(ValueType.PARCEL, ParcelIntent.RECEIVE, 0, effect.parcel)
                    self._post(effect.parcel.receiver, receive)
                elif isinstance(effect, ParcelsReceived):
                    value = ParcelsUpTo(effect.receiver, effect.number)
                    told = Command(ValueType.PARCEL, ParcelIntent.ACKNOWLEDGE, 0, value)
                    self._post(effect.sender, told)
                elif isinstance(effect, Sending):
                    for partition in effect.partitions:
                        self._post(partition, effect.command)
                elif isinstance(effect, CommandTaken):
                    taken, intent = Targets((effect.partition,)), DistributionIntent.ACKNOWLEDGE
                    told = Command(ValueType.DISTRIBUTION, intent, effect.key, taken)
                    self._post(partition_of(effect.key), told)

    def _post(self, to: int, command: Command) -> None:
        copies = 0 if self.random.random() < self.loss else 1
        copies += self.random.random() < self.doubling
        for _ in range(copies):
            late = self.random.random() < self.delay
            when = self.now_ms + (self.random.randrange(DELAY_MS_MAX) if late else 0)
            self.number += 1
            self.under_way.append((when, self.number, to, command))

    def _next_ms(self) -> int | None:
        due = [node.processor.next_due_ms() for node in self.nodes.values()]
        found = [each for each in due if each is not None] + [each[0] for each in self.under_way]
        return max(min(found), self.now_ms) if found else None

    def _arrive(self) -> None:
        here = sorted(each for each in self.under_way if each[0] <= self.now_ms)
        self.under_way = [each for each in self.under_way if each[0] > self.now_ms]
        for _, _, to, command in here:
            self.nodes[to].do(command)
            self.nodes[to].settle()

    def _fall(self) -> None:
        """A partition may end and begin again; what it was about to say is never said."""
        for number, node in self.nodes.items():
            if self.random.random() < self.crash:
                if self.random.random() < 0.5:
                    node.write_state()
                node.restart(with_store=self.random.random() < 0.7)
                self.carried[number] = len(node.effects)

    # --- what has to hold ---------------------------------------------------------------------

    def open_parcels(self) -> int:
        return sum(len(list(node.view.parcels.all_open())) for node in self.nodes.values())

    def check(self) -> None:
        for node in self.nodes.values():
            node.check()
