"""Partitions that other members own: their events are applied here, so that they open quickly.

A standby reads what its log has acknowledged, and does nothing else: no command is processed, no
due date fires, no effect leaves, and nobody can ask it anything. Its rows are written behind with
everybody's. When the partition is opened here, its processor goes on from where it stands.

A partition is a standby or open, never both. What was open in memory is dropped when it is closed,
and the standby begins with what the store has, which is acknowledged.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Generic, TypeVar

from holdfast.engine.kernel.behind import WriteBehind
from holdfast.engine.kernel.careful import reason_of
from holdfast.engine.kernel.halt import Halt
from holdfast.engine.kernel.lives import Lives
from holdfast.engine.kernel.others import others
from holdfast.engine.kernel.processor import Processor
from holdfast.engine.kernel.recovery import TOPIC, write_state
from holdfast.engine.kernel.work import Work
from holdfast.errors import DataLoss, InvalidState, NotFound, Unavailable
from holdfast.journal import Entry, Journal
from holdfast.limits import (
    REPLAY_BYTES,
    STANDBY_ENTRIES,
    STANDBY_PAUSE_MS,
    STANDBY_RETRY_MS,
    STORE_ROWS_MAX,
)
from holdfast.logs import log
from holdfast.state import Store

S = TypeVar("S")


class Standbys(Generic[S]):
    """Follows the logs of partitions that are not open here."""

    def __init__(
        self, journal: Journal, lives: Lives[S], work: Work[S], behind: WriteBehind, halt: Halt
    ) -> None:
        self.is_hot = True  # events are applied as they come; else when `catch_up` is called
        self.wanted: set[int] = set()  # partitions that are to be standbys while they are not open
        self.missing: set[int] = set()  # those of them whose log does not reach back far enough
        self.stopped: dict[int, str] = {}  # those of them that could not go on, and why
        self.on_missing: list[Callable[[int], None]] = []  # told of each that is missing
        self.closed_to: set[int] = set()  # partitions whose rows are being replaced
        self._journal = journal
        self._lives = lives
        self._work = work
        self._behind = behind
        self._halt = halt
        self._unread = unread_of(journal)
        self._processors = lives.standing
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._offsets: dict[int, int] = {}  # of those that are not hot: where the store stands
        self._piece = asyncio.Lock()  # one piece at a time: live partitions have a turn in between

    # --- what is wanted -----------------------------------------------------------------------

    def begin(self, partition: int) -> None:
        """From now on the partition is a standby whenever it is not open."""
        self.wanted.add(partition)
        self.go_on(partition)

    def go_on(self, partition: int) -> None:
        """The partition is not open here any more, or its state has come: follows its log."""
        self.missing.discard(partition)
        self.stopped.pop(partition, None)
        if self.is_hot:
            self._start(partition)

    def try_again(self) -> None:
        """Those that could not go on try again: what was in their way may have passed."""
        for partition in list(self.stopped):
            self.go_on(partition)

    def resume_one(self, partition: int) -> None:
        """The partition could not be opened: it is a standby as before."""
        if partition not in self.missing:
            self.go_on(partition)

    def forget(self, partition: int) -> None:
        """Ends a standby; its rows stay in the store until they are removed."""
        self.wanted.discard(partition)
        self.missing.discard(partition)
        self.stopped.pop(partition, None)
        self._offsets.pop(partition, None)
        self._drop(partition)
        self._lives.finish_writing()  # it may have rows of the partition

    @property
    def store(self) -> Store:
        """Where the rows are; another one after the state was rebuilt."""
        return self._lives.store

    def lacks(self, partition: int) -> None:
        """The log here does not go on from where the state stands: that must come from outside."""
        if partition in self._lives.epochs:
            return  # it has what it needs in memory
        self._drop(partition)
        if partition in self.wanted and partition not in self.missing:
            self.missing.add(partition)
            log.warning("standby lacks the beginning of its log", partition=partition)
            for tell in self.on_missing:
                tell(partition)

    def give(self, partition: int) -> Processor[S] | None:
        """Ends a standby whose partition is being opened; its processor, where it stands."""
        self._lives.finish_writing()  # what the processor has on its way to the store is there
        processor = self._processors.get(partition)
        self.stopped.pop(partition, None)
        self._drop(partition)
        return processor

    @contextmanager
    def arriving(self, partition: int) -> Iterator[None]:
        """While another state takes the place of the partition's, nobody uses what the store has.

        Afterwards its log is followed from there.
        """
        if partition in {*self._lives.epochs, *self._lives.opening, *self.closed_to}:
            raise InvalidState(f"Partition {partition} is open here, or another state of it comes")
        self._drop(partition)
        self._lives.finish_writing()  # it may have rows of the partition
        self._offsets.pop(partition, None)
        self.closed_to.add(partition)
        try:
            yield
        finally:
            self.closed_to.discard(partition)
            if partition in self.wanted:
                self.go_on(partition)

    def check_there(self, partition: int) -> None:
        """Unavailable while the state of a partition is being replaced."""
        if partition in self.closed_to:
            raise _still_coming(partition)

    def check_reaches(self, processor: Processor[S]) -> None:
        """Unavailable if the log begins behind what the state of a partition stands for.

        Of a partition that is not to be a standby here, recovery says so.
        """
        partition = processor.partition
        bounds = self._journal.bounds(TOPIC, partition)
        if partition in self.wanted and processor.next_offset < bounds.earliest:
            self.lacks(partition)
            raise _still_coming(partition)

    def pause(self) -> None:
        """The store is about to be replaced: drops what was read from it."""
        for partition in list(self._tasks):
            self._drop(partition)

    def resume(self) -> None:
        """Begins again with what the store has."""
        for partition in self.wanted - self._lives.epochs.keys():
            self.go_on(partition)

    def _drop(self, partition: int) -> None:
        if (task := self._tasks.pop(partition, None)) is not None:
            task.cancel()
        if self._processors.pop(partition, None) is not None:
            self._work.changed.pop(partition, None)

    # --- where they stand ---------------------------------------------------------------------

    def offsets(self) -> dict[int, int]:
        """From where on the log is needed for each standby, as the store has it."""
        return self._offsets | {each: p.stored_offset for each, p in self._processors.items()}

    def lags(self) -> dict[int, int]:
        """How many records each standby is behind what is acknowledged."""
        stand = self._offsets | {each: p.next_offset for each, p in self._processors.items()}
        found: dict[int, int] = {}
        for partition in self.wanted - self._lives.epochs.keys():
            bounds = self._journal.bounds(TOPIC, partition)
            offset = stand.get(partition, bounds.earliest)
            found[partition] = self._unread(TOPIC, partition, min(offset, bounds.next))
        return found

    async def catch_up(self) -> None:
        """Brings those that are not hot to the end of their logs, and their rows to the store."""
        if not self.is_hot:
            for partition in self.wanted - self._lives.epochs.keys() - self.missing:
                self._start(partition)
            await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    # --- following ----------------------------------------------------------------------------

    def _start(self, partition: int) -> None:
        is_free = partition in self.wanted - self._lives.epochs.keys() - self.closed_to
        if is_free and partition not in self._tasks and not self._halt.reason:
            loop = asyncio.get_running_loop()
            task = loop.create_task(self._stand_by(partition), name=f"standby {partition}")
            self._tasks[partition] = task

    async def _stand_by(self, partition: int) -> None:
        try:
            processor = self._lives.read_state(partition)
            if processor.next_offset < self._journal.bounds(TOPIC, partition).earliest:
                self.lacks(partition)
                return
            self._processors[partition] = processor
            if self.is_hot:
                while True:
                    await self._follow(processor)
                    await others(STANDBY_RETRY_MS / 1000)
            else:
                await self._read_to_end(processor)
                self._drop(partition)
        except NotFound:
            self.lacks(partition)
        except Exception as error:
            if not (isinstance(error, DataLoss) and self._halt.reason):  # else it begins again
                self._stop(partition, error)

    async def _follow(self, processor: Processor[S]) -> None:
        """Applies what comes. Returns when the log cannot be read now, as it may be elsewhere."""
        partition, start = processor.partition, processor.next_offset
        # After a restart what is acknowledged may be known later than it was to the state.
        start = min(start, self._journal.bounds(TOPIC, partition).next)
        stream = self._journal.stream(TOPIC, partition, start)
        try:
            async for entries in stream:
                await self._apply(processor, _from(entries, processor.next_offset))
                # What comes meanwhile is applied together, at a part of the cost.
                await others(STANDBY_PAUSE_MS / 1000)
        except Unavailable as error:
            log.info("standby waits for its log", partition=partition, error=error.message)
        finally:
            if isinstance(stream, AsyncGenerator):
                await stream.aclose()

    async def _read_to_end(self, processor: Processor[S]) -> None:
        partition, read = processor.partition, self._journal.read
        while processor.next_offset < self._journal.bounds(TOPIC, partition).next and (
            entries := await read(TOPIC, partition, processor.next_offset, REPLAY_BYTES)
        ):
            await self._apply(processor, entries)
        self._lives.finish_writing()
        write_state([processor], self._lives.store)
        self._offsets[partition] = processor.stored_offset

    async def _apply(self, processor: Processor[S], entries: Sequence[Entry]) -> None:
        """Applies entries in pieces; memory stays within what the store takes."""
        partition = processor.partition
        for first in range(0, len(entries), STANDBY_ENTRIES):
            async with self._piece:
                processor.replay(entries[first : first + STANDBY_ENTRIES])
                changed = self._work.changed[partition] = processor.state.changed_rows()
                self._behind.soon()
                await others()
            while changed > STORE_ROWS_MAX and self._lives.writing is not None:
                await others()
                changed = processor.state.changed_rows()

    def _stop(self, partition: int, error: Exception) -> None:
        """What was applied in part is dropped. The partition can still be opened from its log."""
        reason = reason_of(error)
        log.error("standby stopped", partition=partition, error=reason)
        self._drop(partition)
        self.stopped[partition] = reason

    def cancel(self) -> list["asyncio.Task[None]"]:
        """Applies nothing any more; what was applied stays for the store."""
        tasks = list(self._tasks.values())
        self._tasks.clear()
        for task in tasks:
            task.cancel()
        return tasks


def _still_coming(partition: int) -> Unavailable:
    return Unavailable(
        f"The state of partition {partition} is still coming from another member; try again",
        partition=partition,
    )


def unread_of(journal: Journal) -> Callable[[str, int, int], int]:
    """How many entries a journal has from an offset on; where offsets have gaps, it knows best."""

    def difference(topic: str, partition: int, offset: int) -> int:
        return journal.bounds(topic, partition).next - offset

    return getattr(journal, "unread", difference)


def _from(entries: Sequence[Entry], offset: int) -> Sequence[Entry]:
    """Those of the entries that stand at an offset or behind it."""
    if entries[0].offset >= offset:
        return entries
    return [entry for entry in entries if entry.offset >= offset]
