"""How flights are sent: small ones at once, large ones by producers that wait for all of a flight.

A producer that does not wait sends the first records of a flight while the others are still being
handed over, so that a large flight takes many requests. To wait for a moment takes a quarter of the
processor time for an entry here, and less than half of the broker's. A partition has one flight at
a time, so it does not matter which producer sends the next one.
"""

from collections.abc import Sequence

from holdfast.journal.kafka.producing import FlightProducer, Heard, Marked, Settings
from holdfast.limits import KAFKA_LINGER_MS


class FlightSender:
    """Sends flights; tells what became of each on the event loop."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._producers: dict[float, FlightProducer] = {}  # by how long they wait
        self._producer(0)

    @property
    def is_away(self) -> bool:
        """Whether no broker can be reached: what is sent now would only wait."""
        return any(each.is_away for each in self._producers.values())

    def send(
        self, topic: str, partition: int, records: Sequence[Marked], time_ms: int, heard: Heard
    ) -> None:
        """Sends the records of one flight, in this order."""
        producer = self._producer(_linger_ms(len(records)))
        producer.send(topic, partition, records, time_ms, heard)

    def close(self) -> None:
        """Waits for what is under way, and ends."""
        for each in self._producers.values():
            each.close()

    def _producer(self, linger_ms: float) -> FlightProducer:
        """One that waits for so long; it is opened by the first flight that needs it."""
        producer = self._producers.get(linger_ms)
        if producer is None:
            producer = self._producers[linger_ms] = FlightProducer(self._settings, linger_ms)
        return producer


def _linger_ms(records: int) -> float:
    """How long a producer waits for all records of a flight."""
    return next((linger for least, linger in KAFKA_LINGER_MS if records >= least), 0)
