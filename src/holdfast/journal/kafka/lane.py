"""The writing of one partition: one flight at a time, the next formed of all that came meanwhile.

A flight of an epoch names the offset at which the log ended when it was sent. If it stands there,
nobody wrote in between, so no newer epoch can have begun before it. If it stands elsewhere it is
void, and what is in between says why: a newer epoch, somebody else's entries, or only the void
records of a former owner. In the last case it is sent again.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Protocol

from holdfast.clock import Clock
from holdfast.errors import HoldfastError, Unavailable, Unknown
from holdfast.journal.api import Append, Refused, Taken
from holdfast.journal.kafka.asking import BrokerEnds
from holdfast.journal.kafka.flights import (
    AppendFlight,
    NotYet,
    WaitingAppend,
    WriterStanding,
    drain,
    form,
)
from holdfast.journal.kafka.marks import Raw
from holdfast.journal.kafka.partition import Known
from holdfast.journal.kafka.producing import Delivered
from holdfast.journal.kafka.sending import FlightSender
from holdfast.journal.kafka.sieve import Reign, Sieve
from holdfast.limits import KAFKA_RESENDS_MAX
from holdfast.logs import log


class Ways(Protocol):
    """What a lane asks of the journal."""

    async def records(self, topic: str, partition: int, start: int, end: int) -> list[Raw]:
        """Records as they are, from an offset up to another."""
        ...

    async def ends(self, topic: str, partition: int) -> BrokerEnds:
        """Where the log begins and ends now."""
        ...

    def check_open(self) -> None:
        """Raises Unavailable once the journal is closed."""
        ...

    def number(self) -> int:
        """A number that no other flight has."""
        ...


class PartitionLane:
    """Writes one partition."""

    def __init__(
        self,
        topic: str,
        partition: int,
        known: Known,
        sender: FlightSender,
        clock: Clock,
        ways: Ways,
        take: "Callable[[PartitionLane, int], Awaitable[Taken | Refused]]",
    ) -> None:
        self.topic, self.partition = topic, partition  # as Kafka calls the topic
        self.known = known
        self.standing = WriterStanding(known.next)
        self.last_ms = 0  # time never goes back in the log
        self.kept_from = 0  # a record of ours that says who has the partition
        self._sender = sender
        self._clock = clock
        self._ways = ways
        self._take = take
        self._queue: deque[WaitingAppend] = deque()
        self._flight: AppendFlight | None = None
        self._number = 0  # where the flight is expected, or its number
        self._halts = 0  # nothing is sent while something is looked up
        self._idle: list[asyncio.Future[None]] = []
        self._tasks: set[asyncio.Task[None]] = set()

    # --- sending ------------------------------------------------------------------------------

    def push(self, append: Append, size_bytes: int) -> WaitingAppend:
        """An append waits for the next flight."""
        waiting = WaitingAppend(append, size_bytes)
        self._queue.append(waiting)
        return waiting

    def pump(self) -> None:
        """Sends the next flight, if none is under way."""
        if self._flight is not None or self._halts:
            return
        formed = form(self._queue, self.standing)
        if self.standing.held is None:
            self.standing.is_sure = False  # others may write at any time
        if isinstance(formed, NotYet):
            self._spawn(self._fetch_end() if formed is NotYet.END else self._take_for_first())
        elif formed is not None:
            self._send(formed)

    def _send(self, flight: AppendFlight) -> None:
        self._flight = flight
        flight.sent += 1
        self._number = self._ways.number() if flight.is_plain else self.standing.end
        try:
            self._sender.send(
                self.topic, self.partition - 1, flight.records(self._number), self.time_ms(),
                self._heard,
            )  # fmt: skip
        except Unavailable as error:
            self._flight = None
            flight.tell(error)
            self.pump()

    def time_ms(self) -> int:
        """When what is sent now is written."""
        self.last_ms = max(self._clock.now_ms(), self.last_ms)
        return self.last_ms

    def _heard(self, what: Delivered | str) -> None:
        """What became of the flight under way."""
        flight, self._flight = self._flight, None
        assert flight is not None
        if isinstance(what, str):
            self._lose(flight, what)
        else:
            self._land(flight, what)
        self.pump()
        self._settle()

    def _land(self, flight: AppendFlight, at: Delivered) -> None:
        standing, is_whole = self.standing, at.last - at.first + 1 == flight.count
        self.known.reaches(at.last + 1)
        if flight.is_plain:
            if not is_whole:
                self._again(flight)
            elif at.first != standing.end and standing.held is not None:
                flight.landed(at.first)
                self._spawn(self._look_between(None, at))  # whose are those in between?
            else:
                self._arrive(flight, at)
        elif is_whole and at.first == self._number:
            self._arrive(flight, at)
        elif not flight.epoch:
            self._refuse(flight, at.last + 1)
        else:
            self._flight = flight  # it is not over
            self._spawn(self._look_between(flight, at))

    def _arrive(self, flight: AppendFlight, at: Delivered) -> None:
        self.standing.end = max(self.standing.end, at.last + 1)
        self.kept_from = at.first
        self.known.weigh(flight.count, flight.size_bytes)
        flight.landed(at.first)

    def _refuse(self, flight: AppendFlight, end: int) -> None:
        self.standing.end, self.standing.is_sure = max(self.standing.end, end), False
        for each in flight.appends:
            reason = f"the log ends at {end}, and this append expects {each.append.offset}"
            each.tell(self.standing.refused(each.append, reason))

    def _again(self, flight: AppendFlight) -> None:
        """It is void, through nobody's fault."""
        if flight.sent < KAFKA_RESENDS_MAX:
            self._send(flight)
        else:
            flight.tell(
                Unavailable(
                    f"Partition {self.partition} of {self.topic} is written by others all the time;"
                    " nothing of this append is in it"
                )
            )

    def _lose(self, flight: AppendFlight, why: str) -> None:
        """Nobody knows whether the log has it: until it is taken again, this epoch has ended."""
        log.warning(
            "what became of an append to Kafka is not known",
            topic=self.topic, partition=self.partition, reason=why,
        )  # fmt: skip
        self.standing.held, self.standing.is_sure = None, False
        flight.tell(
            Unknown(
                f"Expected to hear what became of an append to partition {self.partition} of"
                f" {self.topic!r}, but {why}",
                partition=self.partition,
            )
        )

    # --- looking up ---------------------------------------------------------------------------

    async def _look_between(self, flight: AppendFlight | None, at: Delivered) -> None:
        """Records of others are where ours was expected: they say whether we may go on."""
        standing, start = self.standing, self.standing.end
        try:
            found = await self._ways.records(self.topic, self.partition, start, at.last + 1)
        except HoldfastError as error:
            self._flight = None
            if flight is not None:
                self._lose(flight, error.message)
            raise
        self._flight = None
        reign, others = Reign(standing.epoch), Sieve(start).add(found)
        reign.add(found)
        standing.end = at.last + 1
        if reign.epoch > standing.epoch:
            standing.epoch, standing.held = reign.epoch, None
        if flight is None:
            return
        if standing.held is None:
            reason = (
                f"epoch {standing.epoch} has the partition, and this append is of epoch"
                f" {flight.epoch}"
            )
            for each in flight.appends:
                each.tell(standing.refused(each.append, reason))
        elif others:
            self._refuse(flight, standing.end)
            standing.is_sure = True
        else:
            self._again(flight)

    async def _fetch_end(self) -> None:
        end = (await self._ways.ends(self.topic, self.partition)).next
        self.known.reaches(end)
        self.standing.end, self.standing.is_sure = max(self.standing.end, end), True

    async def _take_for_first(self) -> None:
        """An append in an epoch that nobody took begins it, where the log ends as it expects."""
        waiting = self._queue[0]
        append, end = waiting.append, self.standing.end
        assert append.epoch
        taken = await self._take(self, append.epoch)
        if isinstance(taken, Refused):
            self._queue.popleft()
            waiting.tell(taken)
        elif append.offset == end:
            waiting.append = append._replace(offset=taken.next)

    def _spawn(self, looking: Coroutine[Any, Any, None]) -> None:
        """Looks something up; nothing is sent meanwhile."""
        self._halts += 1

        async def look() -> None:
            try:
                await looking
            except HoldfastError as error:
                self.standing.held, self.standing.is_sure = None, False
                for each in drain(self._queue):
                    each.tell(error)
            finally:
                self._halts -= 1
            self.pump()
            self._settle()

        task = asyncio.get_running_loop().create_task(look())
        self._tasks.add(task)
        task.add_done_callback(self._looked)

    def _looked(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        self._settle()

    # --- standing still -----------------------------------------------------------------------

    async def halt(self) -> None:
        """Sends nothing from now on, and returns when nothing is under way."""
        self._halts += 1
        while self._flight is not None:
            waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._idle.append(waiting)
            await waiting

    def go_on(self) -> None:
        """The end of `halt`."""
        self._halts -= 1
        self.pump()

    async def finish(self) -> None:
        """Returns when everything that waits was told what became of it."""
        while self._flight is not None or self._queue or self._tasks:
            waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._idle.append(waiting)
            await waiting

    def _settle(self) -> None:
        """Callers that wait for the lane look again."""
        idle, self._idle = self._idle, []
        for each in idle:
            if not each.done():
                each.set_result(None)
