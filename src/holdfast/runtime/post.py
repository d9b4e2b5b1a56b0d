"""The post between partitions: what they send one another, once it is durable.

Parcels go from one partition to another; distributed commands go to many. What is lost here its
partition sends again, so nothing here waits, keeps or repeats.
"""

import asyncio
from collections.abc import Callable, Collection, Iterator, Sequence

from holdfast.engine.distribution.distributing import sending
from holdfast.engine.distribution.values import (
    CommandTaken,
    DistributionIntent,
    Postponement,
    Refusal,
    Sending,
    Targets,
)
from holdfast.engine.kernel import Command, CommandRefused, Reply
from holdfast.engine.kernel.runner import Runner
from holdfast.engine.parcels.values import (
    Parcel,
    ParcelIntent,
    ParcelReady,
    ParcelsReceived,
    ParcelsUpTo,
)
from holdfast.engine.partition import DISPATCH
from holdfast.engine.state import EngineState
from holdfast.errors import HoldfastError, ResourceExhausted
from holdfast.limits import ERROR_CHARS_MAX, POSTPONE_MS_MIN, RESEND_BYTES_MAX
from holdfast.metrics import DistributionMetrics
from holdfast.partitions.api import Partitions
from holdfast.records import ValueType, partition_of
from holdfast.records.keys import NO_KEY

_DISTRIBUTION = ValueType.DISTRIBUTION
_PARCEL = ValueType.PARCEL

_ByReceiver = dict[int, list[tuple[Command, int]]]  # commands with the bytes of their values


class Post:
    """Gathers what one round of the partitions has to say, and hands it over in one go."""

    def __init__(
        self,
        runner: Runner[EngineState],
        partitions: Callable[[], Partitions],
        metrics: DistributionMetrics,
    ) -> None:
        self._runner = runner
        self._partitions = partitions
        self._metrics = metrics
        self._sendings: _ByReceiver = {}
        self._said: _ByReceiver = {}
        self._taken: dict[int, list[int]] = {}  # distribution -> partitions that have it
        self._is_due = False
        self._reached: dict[int, set[int]] = {}  # origin -> receivers that wait for its state
        self._settling: set[asyncio.Task[None]] = set()

    # --- what partitions say ------------------------------------------------------------------

    def parcel(self, ready: ParcelReady) -> None:
        self._say(ready.parcel.receiver, _receive(ready.parcel), len(ready.parcel.value))

    def parcels_received(self, received: ParcelsReceived) -> None:
        value = ParcelsUpTo(received.receiver, received.number)
        self._say(received.sender, Command(_PARCEL, ParcelIntent.ACKNOWLEDGE, NO_KEY, value))

    def distribute(self, sending: Sending) -> None:
        for partition in sending.partitions:
            self._send(partition, sending.command, sending.size_bytes)

    def taken(self, taken: CommandTaken) -> None:
        self._taken.setdefault(taken.key, []).append(taken.partition)
        self._metrics.of(taken.partition).acknowledgements_sent += 1
        self._schedule()

    def refused(self, refused: CommandRefused) -> None:
        value = Refusal(refused.partition, refused.reason[:ERROR_CHARS_MAX])
        command = Command(_DISTRIBUTION, DistributionIntent.REFUSE, refused.key, value)
        self._say(partition_of(refused.key), command)

    def started(self, partition: int, receivers: Collection[int] | None = None) -> None:
        """A partition started, or some receivers did: what nobody acknowledged goes out at once."""
        view = self._runner.processors[partition].view
        for parcel in view.parcels.all_open():
            if receivers is None or parcel.receiver in receivers:
                self._say(parcel.receiver, _receive(parcel), len(parcel.value))
        for receiver, _ in view.distributions.lines():
            if receivers is not None and receiver not in receivers:
                continue
            for key, flight in view.distributions.flights(receiver):
                stored = view.distributions.active.get(key)
                assert stored is not None, "what is in flight is being distributed"
                if flight.attempts:
                    attempt = flight.attempts
                    self.distribute(sending(DISPATCH, key, stored, (receiver,), attempt))

    def reached(self, partitions: Collection[int]) -> None:
        """Partitions can be reached that could not: who has something for them sends it.

        Only what is durable: the state of a partition may hold a step that its log never gets, as
        that of an owner which was replaced and does not know it yet.
        """
        for origin in self._runner.processors:
            if origin in self._reached:
                self._reached[origin].update(partitions)
                continue
            self._reached[origin] = set(partitions)
            sending = asyncio.get_running_loop().create_task(self._send_settled(origin))
            self._settling.add(sending)
            sending.add_done_callback(self._settling.discard)

    async def _send_settled(self, origin: int) -> None:
        try:
            await self._runner.settled(origin)
        except HoldfastError:
            return  # it is closed, or opened again: then everything goes out
        finally:
            receivers = self._reached.pop(origin)
        if origin in self._runner.processors:
            self.started(origin, receivers)

    def _say(self, partition: int, command: Command, size_bytes: int = 0) -> None:
        self._said.setdefault(partition, []).append((command, size_bytes))
        self._schedule()

    def _send(self, partition: int, command: Command, size_bytes: int) -> None:
        self._sendings.setdefault(partition, []).append((command, size_bytes))
        numbers = self._metrics.of(partition)
        numbers.sent += 1
        assert command.delivery is not None
        numbers.retries += command.delivery.attempt > 1
        self._schedule()

    # --- handing over -------------------------------------------------------------------------

    def _schedule(self) -> None:
        if not self._is_due:
            self._is_due = True
            asyncio.get_running_loop().call_soon(self._hand_over)

    def _hand_over(self) -> None:
        """All that the partitions said since the last time, in as few submissions as may be."""
        self._is_due = False
        for key, partitions in self._taken.items():
            value = Targets(tuple(partitions))
            command = Command(_DISTRIBUTION, DistributionIntent.ACKNOWLEDGE, key, value)
            self._said.setdefault(partition_of(key), []).append((command, 0))
        said, sendings = self._said, self._sendings
        self._said, self._sendings, self._taken = {}, {}, {}
        for partition, waiting in (*said.items(), *sendings.items()):
            for commands, size_bytes in _loads(waiting):
                self._submit(partition, commands, size_bytes)

    def _submit(self, partition: int, commands: Sequence[Command], size_bytes: int) -> None:
        """Nobody waits for the answer: what was not taken is sent again."""
        try:
            ticket = self._partitions().submit(partition, commands, size_bytes)
        except HoldfastError as error:
            self._not_taken(partition, commands, error)
        else:
            ticket.add_done_callback(lambda ticket: self._answered(partition, commands, ticket))

    def _answered(
        self,
        partition: int,
        commands: Sequence[Command],
        ticket: "asyncio.Future[list[Reply]]",
    ) -> None:
        if ticket.cancelled():
            return
        if (error := ticket.exception()) is not None:
            self._not_taken(partition, commands, error)
            return
        for command in commands:
            if command.intent is DistributionIntent.ACKNOWLEDGE:
                for target in command.value.partitions:
                    self._metrics.of(target).acknowledgements_received += 1

    def _not_taken(self, partition: int, commands: Sequence[Command], error: BaseException) -> None:
        """If a partition has no room, origins of distributions wait as long as it asks them to."""
        if not isinstance(error, ResourceExhausted):
            return
        keys: dict[int, list[int]] = {}
        for command in commands:
            if command.delivery is not None:
                keys.setdefault(partition_of(command.key), []).append(command.key)
        pause_ms = max(error.retry_after_ms, POSTPONE_MS_MIN)
        for origin, postponed in keys.items():
            value = Postponement(partition, tuple(postponed), pause_ms)
            command = Command(_DISTRIBUTION, DistributionIntent.POSTPONE, NO_KEY, value)
            self._submit(origin, [command], 0)


def _loads(waiting: list[tuple[Command, int]]) -> Iterator[tuple[list[Command], int]]:
    """What goes to a partition in portions: its log does not take any amount at once."""
    load: list[Command] = []
    load_bytes = 0
    for command, size_bytes in waiting:
        if load and load_bytes + size_bytes > RESEND_BYTES_MAX:
            yield load, load_bytes
            load, load_bytes = [], 0
        load.append(command)
        load_bytes += size_bytes
    yield load, load_bytes


def _receive(parcel: Parcel) -> Command:
    return Command(_PARCEL, ParcelIntent.RECEIVE, NO_KEY, parcel)
