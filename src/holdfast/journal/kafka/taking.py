"""Taking a partition over: the taker writes a barrier, and the log tells former owners of it.

The barrier counts if its epoch is newer than all before it. Of two that take a partition at the
same time, the one whose barrier is first in the log has it; the other is refused and does not try
again by itself, or both would go on for ever.
"""

import asyncio

from holdfast.errors import Unavailable
from holdfast.journal.api import Refused, Taken
from holdfast.journal.checks import check_epoch, not_newer
from holdfast.journal.kafka.lane import PartitionLane, Ways
from holdfast.journal.kafka.marks import BARRIER, pack, unpack
from holdfast.journal.kafka.producing import Delivered
from holdfast.journal.kafka.sending import FlightSender
from holdfast.journal.kafka.sieve import Reign, anchor
from holdfast.limits import KAFKA_RETRY_MS
from holdfast.logs import log

_SCAN_RECORDS = 32  # from the end; 16 times as many if they do not tell who has the partition
_SCAN_GROWS = 16


class KafkaTaker:
    """Takes partitions over."""

    def __init__(self, sender: FlightSender, ways: Ways) -> None:
        self._sender = sender
        self._ways = ways

    async def take(self, lane: PartitionLane, epoch: int | None) -> Taken | Refused:
        """Begins to write a partition; waits for as long as no broker answers."""
        check_epoch(epoch or 0)
        await lane.halt()
        numbers: set[int] = set()  # of the barriers that were sent
        try:
            while True:
                try:
                    return await self._attempt(lane, epoch, numbers)
                except Unavailable as error:
                    log.warning(
                        "a partition cannot be taken now",
                        topic=lane.topic, partition=lane.partition, error=error.message,
                    )  # fmt: skip
                    self._ways.check_open()
                    await asyncio.sleep(KAFKA_RETRY_MS / 1000)
        finally:
            lane.go_on()

    async def _attempt(
        self, lane: PartitionLane, epoch: int | None, numbers: set[int]
    ) -> Taken | Refused:
        topic, partition, standing = lane.topic, lane.partition, lane.standing
        earliest, end = await self._ways.ends(topic, partition)
        reign = await self._reign(lane, earliest, end)
        newest = max(reign.epoch, standing.epoch)
        if reign.barrier in numbers:
            return _begin(lane, reign, end)  # one that nobody has answered for is there
        taken = newest + 1 if epoch is None else epoch
        if taken <= newest:
            return Refused(partition, newest, end, not_newer(taken, newest))
        check_epoch(taken)
        number = self._ways.number()
        numbers.add(number)
        at = await self._send_barrier(lane, taken, number)
        reign.add(await self._ways.records(topic, partition, end, at + 1))
        if reign.barrier == number:
            return _begin(lane, reign, at + 1)
        lane.standing.epoch = max(lane.standing.epoch, reign.epoch)
        lane.standing.end = max(lane.standing.end, at + 1)
        return Refused(partition, reign.epoch, at + 1, not_newer(taken, reign.epoch))

    async def _reign(self, lane: PartitionLane, earliest: int, end: int) -> Reign:
        """Who has the partition, by the last records that tell."""
        width = _SCAN_RECORDS
        while True:
            start = max(end - width, earliest)
            found = await self._ways.records(lane.topic, lane.partition, start, end)
            at = anchor(found)
            if at is not None or start == earliest:
                mark = unpack(found[at].key) if at is not None else None
                reign = Reign(mark.epoch if mark is not None else 0)
                reign.add(found[at or 0 :])
                return reign
            width *= _SCAN_GROWS

    async def _send_barrier(self, lane: PartitionLane, epoch: int, number: int) -> int:
        """The offset of the barrier; Unavailable if it is not known."""
        heard: asyncio.Future[Delivered | str] = asyncio.get_running_loop().create_future()
        key = pack(BARRIER, epoch, number, 0, 1)
        time_ms = lane.time_ms()
        self._sender.send(
            lane.topic, lane.partition - 1, [(key, b"")], time_ms,
            lambda what: None if heard.done() else heard.set_result(what),
        )  # fmt: skip
        what = await heard
        if isinstance(what, str):
            raise Unavailable(f"Kafka did not acknowledge the beginning of epoch {epoch}: {what}")
        return what.last


def _begin(lane: PartitionLane, reign: Reign, end: int) -> Taken:
    standing = lane.standing
    standing.epoch = standing.held = reign.epoch
    standing.end, standing.is_sure = end, True
    lane.last_ms = max(lane.last_ms, reign.last_ms)
    lane.kept_from = end - 1
    lane.known.reaches(end)
    return Taken(reign.epoch, end)
