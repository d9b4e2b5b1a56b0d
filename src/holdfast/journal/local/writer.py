"""The writing side of one topic: appends become frames, frames become durable, segments roll."""

import copy
import math
from collections.abc import Mapping
from concurrent.futures import Executor
from functools import partial
from typing import Protocol

from holdfast.clock import Clock
from holdfast.errors import DataLoss, HoldfastError, ResourceExhausted
from holdfast.journal.api import Outcome, Retention
from holdfast.journal.checks import check_offset
from holdfast.journal.local.allocator import Allocator
from holdfast.journal.local.disk import FULL, Disk, Meanwhile
from holdfast.journal.local.frame import FrameHeader
from holdfast.journal.local.index import Points, Summary
from holdfast.journal.local.recovery import Recovered
from holdfast.journal.local.seal import remove_segments, seal_again, seal_if_possible
from holdfast.journal.local.segment import Segment
from holdfast.journal.local.stage import Stage
from holdfast.journal.local.under_way import Commit
from holdfast.limits import DISK_FULL_RETRY_MS, LOOP_COMMIT_BYTES_MAX, THREAD_COMMIT_BYTES_MIN
from holdfast.logs import log


class Observer(Protocol):
    """Is told of every commit, for metrics."""

    def on_commit(self, entries: int, size_bytes: int, sync_seconds: float) -> None: ...


class Poison:
    """Why a journal no longer writes, shared by its topics: they are on the same disk."""

    def __init__(self) -> None:
        self.error: HoldfastError | None = None

    def check(self) -> None:
        if self.error is not None:
            raise copy.copy(self.error)

    def set(self, error: BaseException) -> HoldfastError:
        self.error = DataLoss(
            f"expected the disk to keep what was written, but found: {error}; the journal takes no "
            "more appends, since what is on the disk now is unknown; check the disk and restart",
            error=str(error),
        )
        return copy.copy(self.error)


class TopicWriter:
    """Writes commits, one at a time, each with one write and one sync."""

    def __init__(
        self,
        disk: Disk,
        folder: str,
        recovered: Recovered,
        clock: Clock,
        background: Executor,
        segment_bytes: int,
        poison: Poison,
        observer: Observer | None,
    ) -> None:
        self.view = recovered.view
        self._disk = disk
        self._folder = folder
        self._clock = clock
        self._background = background
        self._poison = poison
        self._observer = observer
        self._mark = recovered.mark
        self._earliest = recovered.earliest
        self._earliest_stored = list(recovered.view.earliest)
        self.epochs = list(recovered.view.epochs)  # the newest, of commits under way and takes too
        self._epochs = recovered.epochs
        self._epochs_stored = recovered.epochs.load()
        self._file = recovered.file
        self._capacity_bytes = recovered.file.size_bytes()
        self._active = recovered.view.segments[-1]
        self._previous_end = _previous_end(recovered.view.segments)
        self._dirty_end = 0  # a failed write may have left bytes up to here
        self._under_way: list[Commit] = []  # begun and not ended: their file must stay
        self._broken: BaseException | None = None  # why those under way cannot succeed any more
        self.large_sync_seconds = math.inf  # of the last commit that the loop or a thread may write
        self._last_ms = max(each.summary.last_ms for each in recovered.view.segments)
        self._pins = 0  # how many copy the files, which stay meanwhile
        self._allocator = Allocator(disk, folder, segment_bytes, background)
        if recovered.prepared is not None:
            self._allocator.adopt(recovered.prepared)
        self._remove_discarded()

    def write(self, stage: Stage, meanwhile: Meanwhile | None = None) -> list[Outcome]:
        """Makes appends durable together and readable; what became of each.

        While the disk writes, `meanwhile` may be called, and what is to be told is prepared.
        """
        commit = self.begin(stage)
        assert commit is not None, "a commit in the loop began while another was under way"

        beside = None if meanwhile is None else partial(_prepare, commit, meanwhile)
        try:
            sync_seconds = self.transfer(commit, beside)
        except BaseException as error:
            raise self.failed(commit, error) from error
        return self.finish(commit, sync_seconds)

    def begin(self, stage: Stage) -> Commit | None:
        """Gives a commit its place, behind those under way.

        None if it has to wait until they have ended: it needs a new segment, or one has failed.
        """
        self._poison.check()
        start, offsets = self._active.summary.end, self.view.next
        if not self._under_way:
            if self._dirty_end > start or start + stage.size_bytes > self._capacity_bytes:
                self._try_to_make_room(stage.size_bytes)
                start = self._active.summary.end
        else:
            headers = [header for commit in self._under_way for header in commit.headers]
            start = headers[-1].end
            if self._broken is not None or start + stage.size_bytes > self._capacity_bytes:
                return None
            offsets = list(offsets)
            for header in headers:
                offsets[header.partition] = header.next_offset
        # Time that never goes back makes it possible to find an offset by its time.
        self._last_ms = max(self._clock.now_ms(), self._last_ms)
        sequence = self._active.sequence
        headers = stage.place(
            offsets, self.epochs, self._last_ms, sequence, start, self._previous_end
        )
        commit = Commit(stage, headers, self._file, start)
        if headers:  # else all of it is refused
            self._under_way.append(commit)
        return commit

    def transfer(self, commit: Commit, meanwhile: Meanwhile | None = None) -> float:
        """Writes and syncs; how long it took. Any one thread may do it: it touches nothing else."""
        if not commit.headers:
            return 0.0
        if self._broken is not None:
            raise self._broken  # what comes before it is not there
        begun = self._clock.monotonic()
        try:
            with commit.stage.data() as data:
                commit.file.write_durably(commit.start, data, meanwhile)
        except BaseException as error:
            self._broken = error
            raise
        return self._clock.monotonic() - begun

    def finish(self, commit: Commit, sync_seconds: float) -> list[Outcome]:
        """The commit is durable: its entries can be read; what became of each append."""
        headers = commit.headers
        if not headers:
            return commit.outcomes()
        told = commit.told()
        self._under_way.remove(commit)
        self._make_readable(headers, told.mark)
        size_bytes = headers[-1].end - commit.start
        if THREAD_COMMIT_BYTES_MIN <= size_bytes < LOOP_COMMIT_BYTES_MAX:
            self.large_sync_seconds = sync_seconds
        if self._observer is not None:
            self._observer.on_commit(told.entry_count, size_bytes, sync_seconds)
        return told.outcomes

    def failed(self, commit: Commit, error: BaseException) -> BaseException:
        """The commit could not be made durable: what its appends are told.

        Without room nothing of it stays. After any other error, how much is on disk is unknown.
        """
        self._under_way.remove(commit)
        self._dirty_end = max(self._dirty_end, commit.headers[-1].end)
        told: BaseException
        if isinstance(error, OSError) and error.errno in FULL:
            told = self._full(str(error))
        else:
            told = self._poisoned(error)
        if not self._under_way:
            self._broken = None
            if self._poison.error is None:
                try:
                    self._scrub()
                except BaseException as second:
                    told = self._poisoned(second)
        return told

    def _poisoned(self, error: BaseException) -> BaseException:
        poisoned = self._poison.set(error)
        return poisoned if isinstance(error, Exception) else error

    def _try_to_make_room(self, size_bytes: int) -> None:
        try:
            self._make_room(size_bytes)
        except HoldfastError:
            raise
        except BaseException as error:
            if isinstance(error, OSError) and error.errno in FULL:
                raise self._full(str(error)) from error
            raise self._poisoned(error) from error

    def discard(self, partition: int, before: int) -> None:
        """Gives up entries; durable when a segment is freed by it or the journal is closed."""
        bounds = self.view.bounds(partition)
        if before > bounds.earliest:
            check_offset(self.view.topic, partition, before, bounds)
            self.view.earliest[partition] = before
            self._remove_discarded()

    def pin(self) -> None:
        """Keeps the files of all segments that are there now, discarded or not, until `unpin`."""
        self._pins += 1

    def unpin(self) -> None:
        """Somebody is done with the files; what was discarded meanwhile goes with the last one."""
        assert self._pins > 0, "there are as many unpins as pins"
        self._pins -= 1
        self._remove_discarded()

    def begin_at(self, partition: int, offset: int, epoch: int) -> None:
        """Lets a partition begin at an offset, as if what came before was discarded."""
        self.view.earliest[partition] = self.view.next[partition] = offset
        self.view.epochs[partition] = self.epochs[partition] = epoch
        self._remove([])

    def enforce(self, retention: Retention, now_ms: int, needed: Mapping[int, int]) -> None:
        """Drops the oldest segments that the retention does not keep and nobody needs."""
        segments = self.view.segments
        size_bytes = sum(each.summary.end for each in segments)
        dropped: list[int] = []
        while True:
            oldest = segments[0].summary
            if self._pins:
                break
            too_old = retention.age_ms is not None and oldest.last_ms < now_ms - retention.age_ms
            too_many = retention.bytes is not None and size_bytes - oldest.end >= retention.bytes
            if oldest.end == 0 or not (too_old or (too_many and len(segments) > 1)):
                break
            if any(
                needed.get(each, following) < following for each, following in oldest.next.items()
            ):
                break
            if len(segments) == 1 and not self._try_roll():
                break
            size_bytes -= oldest.end
            dropped.append(self.view.drop_oldest().sequence)
        self._remove(dropped)

    def store_numbers(self) -> None:
        """Writes earliest offsets and epochs anew, as when a file of them was found damaged."""
        self._epochs_stored = []
        self._remove([])

    def seal_again(self, sequence: int) -> None:
        """Writes the index of a sealed segment anew."""
        if sequence < self._active.sequence:
            self._background.submit(seal_again, self._disk, self._folder, sequence)

    def end_segment(self, path: str) -> None:
        """Goes on in another segment, if this is the one that is written."""
        if path == self._active.path:
            self._try_roll()

    def close(self) -> None:
        """Writes down what is only in memory, and lets go of the files."""
        try:
            if self._poison.error is None:
                if self.view.earliest != self._earliest_stored:
                    self._remove([])
                self._mark.sync()
        finally:
            self._background.submit(_nothing).result()  # what was begun before is done
            self._allocator.close()
            self.view.close()
            for each in (self._file, self._mark, self._earliest, self._epochs):
                each.close()

    def _make_readable(self, headers: list[FrameHeader], mark: bytes) -> None:
        self.view.add_frames(headers)
        self._mark.store(mark)
        if 2 * headers[-1].end > self._capacity_bytes:
            self._allocator.prepare(self._active.sequence + 1)

    def _make_room(self, size_bytes: int) -> None:
        if self._dirty_end > self._active.summary.end:
            self._scrub()
            if self._dirty_end:
                raise self._full("a failed write could not be cleared away")
        if self._active.summary.end + size_bytes > self._capacity_bytes:
            if self._active.summary.end == 0:
                self._allocator.extend(self._file, size_bytes)
                self._capacity_bytes = self._file.size_bytes()
            else:
                self._roll(size_bytes)

    def _roll(self, size_bytes: int) -> None:
        """Goes on in the next segment; the old one is sealed in the background."""
        sequence = self._active.sequence + 1
        file = self._allocator.take(sequence, size_bytes)
        self._file.close()
        old = self._active
        self._previous_end = old.summary.end
        self._file, self._capacity_bytes = file, file.size_bytes()
        self._active = Segment(self._disk, self._folder, Summary(sequence), Points())
        self._background.submit(seal_if_possible, self._disk, self._folder, old.summary, old.points)
        self.view.add_segment(self._active)

    def _try_roll(self) -> bool:
        """Rolls so that the last segment can be dropped, unless the disk has no room for it."""
        if self._poison.error is not None or self._under_way:
            return False
        try:
            self._roll(0)
        except OSError as error:
            if error.errno not in FULL:
                raise self._poison.set(error) from error
            return False
        return True

    def _scrub(self) -> None:
        """Zeros over what a failed write left, so that a start never takes it for frames."""
        end = self._active.summary.end
        try:
            self._file.write(end, bytes(self._dirty_end - end))
        except OSError as error:
            self._full_or_raise(error)
        else:
            self._file.sync()
            self._dirty_end = 0

    def _remove_discarded(self) -> None:
        dropped: list[int] = []
        while not self._pins and self.view.oldest_is_discarded():
            dropped.append(self.view.drop_oldest().sequence)
        if dropped:
            self._remove(dropped)

    def _remove(self, sequences: list[int]) -> None:
        self._earliest_stored = list(self.view.earliest)
        marks = [(self._earliest, self._earliest_stored[1:])]
        if self.view.epochs[1:] != self._epochs_stored:
            self._epochs_stored = self.view.epochs[1:]
            marks.insert(0, (self._epochs, self._epochs_stored))
        self._background.submit(remove_segments, self._disk, self._folder, marks, sequences)

    def _full_or_raise(self, error: OSError) -> ResourceExhausted:
        if error.errno not in FULL:
            raise error
        return self._full(str(error))

    def _full(self, reason: str) -> ResourceExhausted:
        return ResourceExhausted(
            f"expected room for the append on the disk of {self._folder}, but found: {reason}; "
            "nothing of it was kept; free space or lower the retention",
            folder=self._folder,
            retry_after_ms=DISK_FULL_RETRY_MS,
        )


def _prepare(commit: Commit, meanwhile: Meanwhile) -> None:
    """What can be done before a commit is durable; the commit does not depend on it."""
    try:
        commit.told()
        meanwhile()
    except Exception as error:
        log.error("work beside a write failed", error=repr(error))


def _previous_end(segments: list[Segment]) -> int:
    return segments[-2].summary.end if len(segments) > 1 else 0


def _nothing() -> None:
    """Runs after all that was submitted before it."""
