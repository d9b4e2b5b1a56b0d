"""A member's disk: entries filed under (topic, partition, epoch, number), and its promises.

Everything that arrives in a turn of the loop, for whichever role, is written together at its end:
first what is noted of promises and runs, then the entries, with one sync for each topic.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from holdfast.clock import Clock
from holdfast.errors import DataLoss, HoldfastError, Unavailable
from holdfast.journal.api import Appended, Entry, Outcome
from holdfast.journal.cluster.identity import JOURNAL, DiskIdentity
from holdfast.journal.cluster.messages import Stretch
from holdfast.journal.cluster.promises import DiskNotes, no_promises
from holdfast.journal.cluster.runs import LogRuns, RangeSpan, Run, RunPiece
from holdfast.journal.local import Disk, LocalJournal, Observer, RealDisk
from holdfast.journal.local.frame import frame_bytes
from holdfast.journal.local.stage import Staging
from holdfast.limits import EAGER_COMMIT_BYTES, SEGMENT_BYTES
from holdfast.sequence.api import Chain

Landed = Callable[[BaseException | None], None]


class _Log(LogRuns):
    """The runs of a log, and what is on its way to it."""

    def __init__(self, following: int, runs: list[Run]) -> None:
        super().__init__(following, runs)
        self.in_flight = 0
        self.is_failing = False  # something in flight was lost: nothing is taken until all ended


class _Batch:
    """What the next write of a topic takes."""

    def __init__(self) -> None:
        self.stagings: list[Staging] = []
        self.logs: list[_Log] = []
        self.landed: list[Landed] = []
        self.size_bytes = 0


class Begin(NamedTuple):
    """Where a topic goes on after a snapshot."""

    number: int  # in its range
    offset: int


class ClusterDisk:
    """Called from the thread of one event loop."""

    def __init__(self, local: LocalJournal, notes: DiskNotes, identity: DiskIdentity) -> None:
        self.local = local
        self.identity = identity
        self.failed: HoldfastError | None = None  # the disk keeps nothing any more
        self._notes = notes
        self._batches: dict[str, _Batch] = {}
        self._flying: set[asyncio.Future[list[Outcome]]] = set()
        self._is_due = False
        self._is_well = True  # nothing was lost on its way to the disk
        self._logs: dict[str, dict[int, _Log]] = {}
        self._recover()

    @classmethod
    def open(
        cls,
        folder: str,
        identity: DiskIdentity,
        *,
        clock: Clock,
        disk: Disk | None = None,
        segment_bytes: int = SEGMENT_BYTES,
        observer: Observer | None = None,
    ) -> "ClusterDisk":
        """Opens the log of a member's folder; DataLoss if a file in it is damaged."""
        disk, root = disk or RealDisk(), f"{folder}/{JOURNAL}"
        local = LocalJournal.open(
            root, clock=clock, disk=disk, segment_bytes=segment_bytes, observer=observer
        )
        return cls(local, DiskNotes(disk, root), identity)

    @property
    def id(self) -> str:
        return self.identity.disk

    def _recover(self) -> None:
        """What a crash left: runs that were noted and of which nothing came are dropped."""
        topics = self.local.topics()
        logs = [(topic, each) for topic, count in topics.items() for each in range(1, count + 1)]
        if not self._notes.is_found and any(self.local.bounds(*each).next for each in logs):
            raise no_promises(self._notes.path)
        # The file is there before any log: the cuts alone may be one, on a disk of no replica set.
        self._notes.is_dirty |= not self._notes.is_found
        for topic, by_partition in self._notes.noted.runs.items():
            for partition, runs in by_partition.items() if topic in topics else ():
                log = self._logs.setdefault(topic, {})[partition] = _Log(0, runs)
                self._notes.is_dirty |= log.lost(self.local.bounds(topic, partition).next)
                if not log.runs:  # the partition was given up
                    self._free(topic, partition, log.following)
        if self._notes.is_dirty:  # other runs may begin there
            self._notes.store()

    # --- promises -----------------------------------------------------------------------------

    def promise(self, partition: int) -> int:
        """The epoch below which nothing of a partition is taken or reported."""
        return self._notes.promise(partition)

    async def raise_promise(self, partition: int, epoch: int) -> None:
        """Promises an epoch; durable when it returns. It holds at once, and only goes up."""
        self._notes.raise_promise(partition, epoch)
        await self._stored()

    async def _stored(self) -> None:
        """Returns when all promises and runs so far are durable."""
        if self._notes.is_dirty:
            self._write_soon()
            await self._notes.stored()

    # --- writing ------------------------------------------------------------------------------

    def counts(self, partition: int) -> dict[int, dict[str, int]]:
        """By epoch and topic, how many entries were taken; some may be on their way to the disk."""
        found: dict[int, dict[str, int]] = {}
        for topic, logs in self._logs.items():
            for epoch, count in logs[partition].counts().items() if partition in logs else ():
                found.setdefault(epoch, {})[topic] = count
        return found

    def partitions(self) -> set[int]:
        """The partitions of which there is anything."""
        held = {partition for logs in self._logs.values() for partition in logs}
        return held | set(self._notes.noted.promises)

    def accepts(self, topic: str, partition: int) -> bool:
        """Whether the topic is known, and nothing of the log was just lost."""
        if self._is_well and topic in self._logs:
            return True
        log = self._log(topic, partition)
        return log is not None and not log.is_failing and self.failed is None

    def store(self, topic: str, stretches: Sequence[Stretch], landed: Landed) -> None:
        """Files appends of a topic that is known at the end of this turn; `landed` is told.

        Each begins where the disk has nothing of its range yet. Where a run begins, the promise is
        raised to its epoch with it.
        """
        batch = self._batches.get(topic)
        if batch is None:
            batch = self._batches[topic] = _Batch()
        logs = self._logs.get(topic, {})
        for each in stretches:
            if batch.size_bytes >= EAGER_COMMIT_BYTES:
                self._write()
                batch = self._batches[topic] = _Batch()
            partition, epoch, entries = each.partition, each.epoch, each.entries
            log = logs.get(partition) or self._log(topic, partition)
            assert log is not None, "expected a topic that is known"
            if not log.goes_on(epoch, each.number):
                self._begin(topic, partition, log, epoch, each.number)
            lengths = list(map(len, entries))
            physical = log.add(len(lengths))
            log.in_flight += 1
            batch.logs.append(log)
            size_bytes = frame_bytes(lengths)
            batch.size_bytes += size_bytes
            batch.stagings.append(
                Staging(partition, entries, lengths, size_bytes, epoch, physical, each.timestamp_ms)
            )
        batch.landed.append(landed)
        self._write_soon()

    def _begin(self, topic: str, partition: int, log: _Log, epoch: int, number: int) -> None:
        log.begin(epoch, number)
        self._notes.begin_runs(topic, partition, log.runs)
        self._notes.raise_promise(partition, epoch)

    def _log(self, topic: str, partition: int) -> _Log | None:
        logs = self._logs.get(topic)
        if logs is None:
            if topic not in self.local.topics():
                return None
            logs = self._logs[topic] = {}
        log = logs.get(partition)
        if log is None:
            log = logs[partition] = _Log(self.local.bounds(topic, partition).next, [])
        return log

    def _write_soon(self) -> None:
        if not self._is_due:
            self._is_due = True
            asyncio.get_running_loop().call_soon(self._write_due)

    def _write_due(self) -> None:
        self._is_due = False
        self._write()

    def _write(self) -> None:
        """Writes what has gathered: the note first."""
        batches, self._batches = self._batches, {}
        error: BaseException | None = None
        if self._notes.is_dirty:
            try:
                self._notes.store()
            except Exception as failure:
                error = failure
        for topic, batch in batches.items():
            if error is not None:
                self._ended(topic, batch, error)
                continue
            try:
                written = self.local.append_copies(topic, batch.stagings)
            except Exception as failure:
                self._ended(topic, batch, failure)
                continue
            if isinstance(written, asyncio.Future):
                self._flying.add(written)
                written.add_done_callback(partial(self._ended_flying, topic, batch))
            else:
                self._written(topic, batch, written)

    def _ended_flying(
        self, topic: str, batch: _Batch, flying: "asyncio.Future[list[Outcome]]"
    ) -> None:
        self._flying.discard(flying)
        error = flying.exception()
        if error is None:
            self._written(topic, batch, flying.result())
        else:
            self._ended(topic, batch, error)

    def _written(self, topic: str, batch: _Batch, outcomes: list[Outcome]) -> None:
        is_refused = type(outcomes[-1]) is not Appended
        self._ended(topic, batch, _not_written(topic) if is_refused else None)

    def _ended(self, topic: str, batch: _Batch, error: BaseException | None) -> None:
        """A batch has landed, or could not."""
        is_failing = False
        for log in batch.logs:
            log.in_flight -= 1
            is_failing |= log.is_failing
        if error is not None or is_failing:
            error = error or _not_written(topic)
            if isinstance(error, DataLoss):
                self.failed = error
            self._is_well = False
            self._lost(topic, batch)
        for landed in batch.landed:
            landed(error)

    def _lost(self, topic: str, batch: _Batch) -> None:
        """What could not be written is forgotten, once nothing is under way that followed it."""
        for partition in {each.partition for each in batch.stagings}:
            log = self._logs[topic][partition]
            log.is_failing = log.in_flight > 0
            if not log.is_failing:
                self._notes.is_dirty |= log.lost(self.local.bounds(topic, partition).next)
        failing = [log for logs in self._logs.values() for log in logs.values() if log.is_failing]
        self._is_well = self.failed is None and not failing

    async def landed(self) -> None:
        """Returns when nothing is on its way to the disk that was there before."""
        if self._batches:
            self._write()
        if self._flying:
            await asyncio.wait(list(self._flying))

    # --- reading ------------------------------------------------------------------------------

    def entries(
        self, topic: str, partition: int, span: RangeSpan, epoch: int, offset: int, bytes_max: int
    ) -> list[Entry] | None:
        """Entries of a range from a logical offset on, up to the span's end or a break in the log.

        None if the first one is not here.
        """
        found = self._find(topic, partition, epoch, offset - span.start)
        if found is None:
            return None
        physical, length = found
        if span.length is not None:
            length = min(length, span.start + span.length - offset)
        return self.local.read_shifted(
            topic, partition, physical, physical + length, offset - physical, bytes_max
        )

    def stretches(
        self, topic: str, partition: int, epoch: int, first: int, end: int, bytes_max: int
    ) -> list[Stretch]:
        """Whole appends of a range from a number on, below an end; none if it is not here."""
        found = self._find(topic, partition, epoch, first)
        if found is None:
            return []
        physical, length = found
        last = physical + min(length, end - first)
        shift = first - physical
        return [
            Stretch(partition, epoch, topic, offset + shift, timestamp_ms, entries)
            for offset, timestamp_ms, _, entries in self.local.appends(
                topic, partition, physical, bytes_max
            )
            if offset + len(entries) <= last
        ]

    def _find(self, topic: str, partition: int, epoch: int, number: int) -> RunPiece | None:
        """Where an entry is, and how many follow it there that are durable."""
        log = self._logs.get(topic, {}).get(partition)
        found = None if log is None else log.find(epoch, number)
        if found is None:
            return None
        bounds = self.local.bounds(topic, partition)
        length = min(found.length, bounds.next - found.physical)
        is_here = length > 0 and bounds.earliest <= found.physical
        return RunPiece(found.physical, length) if is_here else None

    # --- what is given up ---------------------------------------------------------------------

    def earliest(self, topic: str, partition: int) -> int:
        """The logical offset below which nothing is kept."""
        return self._notes.earliest(topic, partition)

    def earliest_of(self, partition: int) -> dict[str, int]:
        """By topic, the logical offset below which nothing of a partition is kept."""
        found = {topic: self.earliest(topic, partition) for topic in self.local.topics()}
        return {topic: offset for topic, offset in found.items() if offset}

    def discard(self, chain: Chain, topic: str, before: int) -> None:
        """Gives up entries below a logical offset; after a crash some of them may be back."""
        partition = chain.partition
        if before > self.earliest(topic, partition):
            self._notes.raise_earliest(topic, partition, before)
            log = self._log(topic, partition)
            assert log is not None, "expected a topic that is known"
            bounds = self.local.bounds(topic, partition)
            physical = min(log.free(chain, topic, before), bounds.next)
            self.local.discard(topic, partition, max(physical, bounds.earliest))
            self._notes.is_dirty |= log.forget(self.local.bounds(topic, partition).earliest)

    def take_up_discards(self, chain: Chain) -> None:
        """What the log of the disk no longer has, by retention or before a crash, is given up."""
        partition = chain.partition
        for topic, logs in self._logs.items():
            if (log := logs.get(partition)) is not None:
                physical = self.local.bounds(topic, partition).earliest
                self._notes.raise_earliest(topic, partition, log.dropped(chain, topic, physical))

    async def drop(self, partition: int) -> None:
        """Gives up all entries of a partition, of which none are on their way; the promise stays.

        First they are noted to be gone, then the log frees their space: a crash in between leaves
        entries that no run names, and the next start frees them.
        """
        followings = {
            topic: logs[partition].following
            for topic, logs in self._logs.items()
            if partition in logs
        }
        self._notes.drop(partition)
        await self._stored()
        for topic, following in followings.items():
            self._free(topic, partition, following)

    def _free(self, topic: str, partition: int, before: int) -> None:
        bounds = self.local.bounds(topic, partition)
        self.local.discard(topic, partition, max(min(before, bounds.next), bounds.earliest))

    def needed(self, chain: Chain, topic: str, before: int) -> int:
        """The physical offset from which on something is needed that begins at a logical one."""
        log = self._log(topic, chain.partition)
        return 0 if log is None else log.free(chain, topic, before)

    async def begin_at(self, partition: int, epoch: int, offsets: Mapping[str, Begin]) -> None:
        """Jumps: what comes next of each topic is behind a snapshot. Durable when it returns."""
        await self.landed()
        for topic, begin in offsets.items():
            log = self._log(topic, partition)
            if log is None:
                continue
            self._begin(topic, partition, log, epoch, begin.number)
            self._notes.raise_earliest(topic, partition, begin.offset)
        await self._stored()

    async def close(self) -> None:
        """Finishes what is waiting, writes down what is only in memory, and lets go."""
        await self.landed()
        if self.failed is None:
            self._notes.store()
        await self.local.close()


def _not_written(topic: str) -> Unavailable:
    return Unavailable(
        f"expected to write behind what came before in topic {topic!r}, but that was not written",
        topic=topic,
    )
