"""One consumer for all partitions that are followed: what comes is handed to all that wait for it.

The broker holds the question back until it has something, so nobody asks in vain.
"""

import asyncio
import threading
from collections.abc import Callable, Mapping
from typing import Any

from confluent_kafka import TopicPartition

from holdfast.errors import Unavailable
from holdfast.journal.api import Entry
from holdfast.journal.kafka.fetching import BeyondLog, consumer, raw_records
from holdfast.journal.kafka.marks import Raw
from holdfast.journal.kafka.sieve import Sieve, flight_start
from holdfast.journal.kafka.topics import Place
from holdfast.limits import KAFKA_FOLLOW_POLL_MS
from holdfast.logs import log

Came = Callable[[Place, list[Entry], int], None]
"""Told of entries of a partition, and of how far it reaches; or that its place is LOST."""
LOST = -1
_MESSAGES_MAX = 2_000


class Cursor:
    """Where the following of one partition is."""

    def __init__(self, start: int) -> None:
        self.next = start  # the next record's offset
        self._sieve: Sieve | None = None

    def add(self, records: list[Raw]) -> tuple[list[Entry], int] | None:
        """Entries, and up to where all is decided; None to begin earlier, at `next`."""
        if self._sieve is None:
            start = flight_start(records[0])
            if start < records[0].offset and start != self.next:
                self.next = start
                return None
            self._sieve = Sieve(records[0].offset)
        self.next = records[-1].offset + 1
        entries = self._sieve.add(records)
        return entries, self._sieve.settled  # an open flight may still become void

    def rewind(self) -> None:
        """Records were missed: it goes on from where all is decided."""
        if self._sieve is not None:
            self.next, self._sieve = self._sieve.settled, None


class PartitionFollower:
    """Follows partitions, in a thread that runs while there are any."""

    def __init__(self, settings: Mapping[str, Any], came: Came) -> None:
        self._settings = settings
        self._came = came
        self._loop: asyncio.AbstractEventLoop | None = None
        self._wanted: dict[Place, int] = {}  # and where to begin
        self._changed = threading.Event()
        self._closing = False
        self._thread: threading.Thread | None = None

    def follow(self, place: Place, start: int) -> None:
        """Entries of a partition are told from now on, from an offset."""
        self._loop = asyncio.get_running_loop()
        self._wanted = {**self._wanted, place: start}  # the thread may be looking at it
        self._changed.set()
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="kafka follower", daemon=True)
            self._thread.start()

    def leave(self, place: Place) -> None:
        """Entries of a partition are not told any more."""
        self._wanted = {each: start for each, start in self._wanted.items() if each != place}
        self._changed.set()

    def close(self) -> None:
        self._closing = True
        self._changed.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        reading, cursors = consumer(self._settings), dict[Place, Cursor]()
        try:
            while not self._closing:
                if self._changed.is_set() or not cursors:
                    self._changed.wait()
                    self._changed.clear()
                    self._look_at_wanted(cursors)
                    self._assign(reading, cursors)
                self._listen(reading, cursors)
        finally:
            reading.close()

    def _look_at_wanted(self, cursors: dict[Place, Cursor]) -> None:
        wanted = self._wanted
        for place in cursors.keys() - wanted.keys():
            del cursors[place]
        for place in wanted.keys() - cursors.keys():
            cursors[place] = Cursor(wanted[place])

    def _assign(self, reading: Any, cursors: Mapping[Place, Cursor]) -> None:
        reading.assign(
            [
                TopicPartition(topic, partition - 1, cursor.next)
                for (topic, partition), cursor in cursors.items()
            ]
        )

    def _listen(self, reading: Any, cursors: dict[Place, Cursor]) -> None:
        """Waits for records, and takes all that are there."""
        message = reading.poll(KAFKA_FOLLOW_POLL_MS / 1000)
        if message is None:
            return
        found: dict[Place, list[Any]] = {}
        for each in [message, *reading.consume(_MESSAGES_MAX, 0)]:
            found.setdefault((each.topic() or "", (each.partition() or 0) + 1), []).append(each)
        is_moved = False
        for place, messages in found.items():
            cursor = cursors.get(place)
            if cursor is None:
                continue
            try:
                records = raw_records(messages)
            except BeyondLog:  # it was discarded meanwhile: it is followed again, from elsewhere
                del cursors[place]
                self._tell(place, [], LOST)
                continue
            except Unavailable as error:
                log.warning("a partition cannot be followed now", error=error.message)
                cursor.rewind()
                is_moved = True
                continue
            if not records:
                continue
            added = cursor.add(records)
            if added is None:
                is_moved = True
            else:
                self._tell(place, *added)
        if is_moved:
            self._assign(reading, cursors)

    def _tell(self, place: Place, entries: list[Entry], settled: int) -> None:
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._came, place, entries, settled)
