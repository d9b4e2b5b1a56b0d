"""Writing partitions: a lane for each, all over one producer."""

import asyncio
import time
from collections.abc import Sequence

from holdfast.clock import Clock
from holdfast.errors import (
    HoldfastError,
    InvalidArgument,
    ResourceExhausted,
    Unavailable,
    Unknown,
)
from holdfast.journal.api import Append, Appended, Outcome, Refused, Taken
from holdfast.journal.checks import check_append_bytes, check_entries, check_epoch
from holdfast.journal.kafka.flights import WaitingAppend
from holdfast.journal.kafka.lane import PartitionLane, Ways
from holdfast.journal.kafka.sending import FlightSender
from holdfast.journal.kafka.taking import KafkaTaker
from holdfast.journal.kafka.topics import KafkaTopics
from holdfast.limits import KAFKA_LATE_MS_MIN, KAFKA_RECORD_OVERHEAD_BYTES


class KafkaWriting:
    """Appends to the partitions of topics, and takes them over."""

    def __init__(self, topics: KafkaTopics, sender: FlightSender, clock: Clock, ways: Ways) -> None:
        self.lanes: dict[tuple[str, int], PartitionLane] = {}
        self._topics = topics
        self._sender = sender
        self._clock = clock
        self._ways = ways
        self._taker = KafkaTaker(sender, ways)

    async def take(self, topic: str, partition: int, epoch: int | None = None) -> Taken | Refused:
        """Begins to write a partition; waits for a broker if none answers."""
        check_epoch(epoch or 0)
        self._topics.known(topic, partition)
        return await self._taker.take(self._lane(topic, partition), epoch)

    async def append_many(self, appends: Sequence[Append]) -> list[Outcome]:
        """Appends to many partitions; those that share a partition are sent together."""
        sizes = [self._check(append) for append in appends]
        for topic in {append.topic for append in appends}:
            check_append_bytes(
                sum(size for append, size in zip(appends, sizes, strict=True) if append[0] == topic)
            )
        if self._sender.is_away:
            raise _away(appends)
        lanes: dict[PartitionLane, None] = {}
        waiting: list[WaitingAppend] = []
        for append, size_bytes in zip(appends, sizes, strict=True):
            lane = self._lane(append.topic, append.partition)
            waiting.append(lane.push(append, size_bytes))
            lanes[lane] = None
        for lane in lanes:
            lane.pump()
        answers = [each.answer for each in waiting]
        await self._first_of(answers)
        return [_outcome(each) for each in waiting]

    async def _first_of(self, answers: "list[asyncio.Future[Appended | Refused]]") -> None:
        """Waits for all that take about as long as the first: others are told later."""
        sent = [each for each in answers if not each.done()]
        if not sent:
            await asyncio.sleep(0)  # nobody is answered before the others had their turn
            return
        if len(sent) == 1:
            await asyncio.wait(sent)
            return
        started = time.monotonic()
        _, pending = await asyncio.wait(sent, return_when=asyncio.FIRST_COMPLETED)
        if pending:
            elapsed = time.monotonic() - started
            await asyncio.wait(pending, timeout=max(elapsed, KAFKA_LATE_MS_MIN / 1000))

    def _check(self, append: Append) -> int:
        """Refuses what cannot be appended; how many bytes it is otherwise."""
        topic, partition, entries, epoch, _ = append
        self._topics.known(topic, partition)
        check_epoch(epoch or 0)
        lengths = check_entries(entries)
        if not set(map(type, entries)) <= {bytes}:
            raise InvalidArgument("expected every entry to be bytes, but found another type")
        limit_bytes = self._topics[topic].limit_bytes - KAFKA_RECORD_OVERHEAD_BYTES
        if max(lengths) > limit_bytes:
            raise InvalidArgument(
                f"expected entries of at most {limit_bytes} bytes, by max.message.bytes of the"
                f" topic {self._topics[topic].name!r}, but found one of {max(lengths)}",
                entry_bytes=max(lengths),
            )
        return sum(lengths)

    def _lane(self, topic: str, partition: int) -> PartitionLane:
        lane = self.lanes.get((topic, partition))
        if lane is None:
            name, known = self._topics[topic].name, self._topics.known(topic, partition)
            lane = PartitionLane(
                name, partition, known, self._sender, self._clock, self._ways, self._taker.take
            )
            self.lanes[topic, partition] = lane
        return lane

    def is_held(self, topic: str, partition: int) -> bool:
        """Whether a partition was taken here, and not lost since."""
        lane = self.lanes.get((topic, partition))
        return lane is not None and lane.standing.held is not None

    async def finish(self) -> None:
        """Returns when everything that waits was told what became of it."""
        for lane in self.lanes.values():
            await lane.finish()


def _away(appends: Sequence[Append]) -> HoldfastError:
    """Nothing was sent. An owner of a partition undoes its step; other callers get Unavailable."""
    kind = ResourceExhausted if any(each.epoch for each in appends) else Unavailable
    return kind(
        "No Kafka broker can be reached, and nothing was appended; look at the brokers, and at the"
        " network between them and this node",
        retry_after_ms=1_000,
    )


def _outcome(waiting: WaitingAppend) -> Outcome:
    """What became of an append, as far as it is known."""
    answer = waiting.answer
    if not answer.done():
        return answer
    error = answer.exception()
    if error is None:
        return answer.result()
    if isinstance(error, Unknown):
        return error
    raise error
