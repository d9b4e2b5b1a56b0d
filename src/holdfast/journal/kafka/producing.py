"""An idempotent producer for all partitions, and the thread that hears from it.

The producer keeps the order of a partition's records and sends none of them twice, over restarts of
brokers too. What it reports is handed to the event loop, all reports of a moment in one go.
"""

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

from confluent_kafka import KafkaError, KafkaException, Producer

from holdfast.errors import Unavailable
from holdfast.limits import (
    KAFKA_BATCH_BYTES,
    KAFKA_DELIVERY_MS,
    KAFKA_POLL_MS,
    KAFKA_PROBE_MS,
)
from holdfast.logs import log

Settings = Mapping[str, str | int | float]


_PURGES_MAX = 5  # of a producer that is given up, until it has told everything


class Delivered(NamedTuple):
    """Records of a flight are in the log: where its first and its last one are."""

    first: int
    last: int


Heard = Callable[[Delivered | str], None]
"""Told where a flight is, or why that is not known."""


Marked = tuple[bytes, bytes]
"""The key and the payload of a record."""


class FlightProducer:
    """Sends flights; tells what became of each on the event loop."""

    def __init__(self, settings: Settings, linger_ms: float) -> None:
        self._settings = {
            **settings,
            "enable.idempotence": True,
            "acks": "all",
            "linger.ms": linger_ms,
            "batch.size": KAFKA_BATCH_BYTES,
            "message.timeout.ms": KAFKA_DELIVERY_MS,
            "message.max.bytes": 1_000_000_000,  # a topic's own limit counts
            "queue.buffering.max.messages": 0,  # flights are limited where they are formed
            "queue.buffering.max.kbytes": 2_000_000,
            "retry.backoff.ms": 20,
            "retry.backoff.max.ms": 500,
            "compression.type": "none",
        }
        self.is_away = False  # no broker can be reached: what is sent now would only wait
        self._loop: asyncio.AbstractEventLoop | None = None
        self._heard: list[tuple[Heard, Delivered | str]] = []
        self._lock = threading.Lock()
        self._closing = False
        self._producer = self._open()
        self._thread = threading.Thread(target=self._listen, name="kafka sender", daemon=True)
        self._thread.start()

    def send(
        self, topic: str, partition: int, records: Sequence[Marked], time_ms: int, heard: Heard
    ) -> None:
        """Sends the records of one flight, in this order."""
        self._loop = asyncio.get_running_loop()
        report, produce = _Report(self, heard), self._producer.produce
        key, payload = records[0]
        is_only = len(records) == 1
        try:
            told = report.only if is_only else report.first
            produce(topic, payload, key, partition, told, None, time_ms)
        except (KafkaException, BufferError) as error:  # nothing of it was taken over
            raise Unavailable(f"Kafka's client does not take an append: {error}") from error
        if is_only:
            return
        try:  # the order is kept: those between are where the first and the last are
            for key, payload in islice(records, 1, len(records) - 1):
                produce(topic, payload, key, partition, None, None, time_ms)
            key, payload = records[-1]
            produce(topic, payload, key, partition, report.last, None, time_ms)
        except Exception as error:
            report.fail(str(error))  # a flight that is not whole is void

    def close(self) -> None:
        """Waits for what is under way, and ends."""
        self._closing = True
        self._thread.join()
        self._producer.flush(KAFKA_DELIVERY_MS / 1000)

    def _open(self) -> Producer:
        settings: dict[str, Any] = {**self._settings, "error_cb": self._erred}
        return Producer(settings)

    def _erred(self, error: KafkaError) -> None:
        """Called by the listening thread."""
        if error.code() == KafkaError._ALL_BROKERS_DOWN:
            if not self.is_away:
                log.warning("no Kafka broker can be reached", error=error.str())
            self.is_away = True

    def _listen(self) -> None:
        while not self._closing:
            try:
                self._producer.poll(KAFKA_POLL_MS / 1000)
            except KafkaException as error:  # a fatal error is raised here, not told
                log.error("Kafka's producer is opened again", error=str(error))
                self._open_again()
            if self.is_away:
                self._probe()

    def _open_again(self) -> None:
        """The producer is of no use any more, and takes nothing. All that it had is told."""
        former, self._producer = self._producer, self._open()
        for _ in range(_PURGES_MAX):
            with contextlib.suppress(KafkaException):
                former.purge()
                former.flush(KAFKA_POLL_MS / 1000)
            if len(former) == 0:
                break
        time.sleep(KAFKA_PROBE_MS / 1000)  # a cause that lasts must not keep it busy

    def _probe(self) -> None:
        try:
            self._producer.list_topics(timeout=KAFKA_PROBE_MS / 1000)
        except KafkaException:
            return
        self.is_away = False
        log.warning("Kafka answers again")

    def _tell(self, heard: Heard, what: Delivered | str) -> None:
        """Called by the listening thread, or by the loop's for what could not be queued."""
        with self._lock:
            self._heard.append((heard, what))
            is_first = len(self._heard) == 1
        if is_first and self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._hand_over)

    def _hand_over(self) -> None:
        with self._lock:
            reports, self._heard = self._heard, []
        for heard, what in reports:
            heard(what)


class _Report:
    """Puts together what is heard of a flight's first and last record."""

    def __init__(self, producer: FlightProducer, heard: Heard) -> None:
        self._producer = producer
        self._heard = heard
        self._first: int | None = None
        self._is_told = False

    def first(self, error: KafkaError | None, message: Any) -> None:
        if error is not None:
            self.fail(error.str())
        else:
            self._first = message.offset()

    def last(self, error: KafkaError | None, message: Any) -> None:
        if error is not None:
            self.fail(error.str())
        elif self._first is not None:
            self._tell(Delivered(self._first, message.offset()))

    def only(self, error: KafkaError | None, message: Any) -> None:
        self.first(error, message)
        self.last(error, message)

    def fail(self, why: str) -> None:
        self._tell(why)

    def _tell(self, what: Delivered | str) -> None:
        if not self._is_told:
            self._is_told = True
            self._producer._tell(self._heard, what)
