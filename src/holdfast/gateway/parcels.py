"""The post between the partitions of this node: parcels go out once they are durable."""

import asyncio

from holdfast.engine.kernel import Command, Reply
from holdfast.engine.kernel.runner import Runner
from holdfast.engine.parcels.values import (
    Parcel,
    ParcelIntent,
    ParcelReady,
    ParcelsReceived,
    ParcelsUpTo,
)
from holdfast.engine.state import EngineState
from holdfast.errors import ResourceExhausted, Unavailable
from holdfast.records import ValueType
from holdfast.records.keys import NO_KEY


class Post:
    """Carries parcels and their acknowledgements; what is lost here, its partition sends again."""

    def __init__(self, runner: Runner[EngineState]) -> None:
        self._runner = runner

    def deliver(self, ready: ParcelReady) -> None:
        self._hand_over(ready.parcel)

    def acknowledge(self, received: ParcelsReceived) -> None:
        value = ParcelsUpTo(received.receiver, received.number)
        self._submit(received.sender, ParcelIntent.ACKNOWLEDGE, value)

    def refresh(self, partition: int) -> None:
        """The node started: what was sent and not acknowledged goes out at once."""
        for parcel in self._runner.processors[partition].view.parcels.all_open():
            self._hand_over(parcel)

    def _hand_over(self, parcel: Parcel) -> None:
        self._submit(parcel.receiver, ParcelIntent.RECEIVE, parcel)

    def _submit(self, partition: int, intent: ParcelIntent, value: Parcel | ParcelsUpTo) -> None:
        command = Command(ValueType.PARCEL, intent, NO_KEY, value)
        try:
            ticket = self._runner.submit(partition, [command])
        except (ResourceExhausted, Unavailable):
            return
        ticket.add_done_callback(_forget)


def _forget(ticket: "asyncio.Future[list[Reply]]") -> None:
    """Nobody waits for the answer: a parcel that was not taken is sent again."""
    if not ticket.cancelled():
        ticket.exception()
