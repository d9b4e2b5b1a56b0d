"""The local journal: topics in folders, written by one process, read by any."""

import asyncio
import os
import socket
import sys
from collections.abc import Sequence
from concurrent.futures import Executor
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import msgspec

from holdfast.clock import Clock, SystemClock
from holdfast.errors import InvalidArgument, InvalidState
from holdfast.journal.api import Append, Appended, Needed, Outcome, Refused, Retention, Taken
from holdfast.journal.checks import (
    check_entries,
    check_epoch,
    check_partition,
    check_same_partitions,
    check_topic,
    not_newer,
    unknown_topic,
)
from holdfast.journal.local.commit import GroupCommit
from holdfast.journal.local.disk import Disk, Lock, Meanwhile, RealDisk
from holdfast.journal.local.extent import Pinned, extent_of
from holdfast.journal.local.frame import frame_bytes
from holdfast.journal.local.mark import MARK_BYTES
from holdfast.journal.local.names import (
    DURABLE,
    EARLIEST,
    EPOCHS,
    LOCK,
    SETTINGS,
    Settings,
    are_settings_whole,
    index_sequences,
    load_settings,
    segment_capacity_bytes,
    segment_name,
    store_settings,
)
from holdfast.journal.local.numbers import file_bytes
from holdfast.journal.local.reading import ReadableJournal
from holdfast.journal.local.recovery import recover
from holdfast.journal.local.stage import ANY, Staging
from holdfast.journal.local.view import TopicView
from holdfast.journal.local.writer import Observer, Poison, TopicWriter
from holdfast.limits import ENTRY_BYTES_MAX, SEGMENT_BYTES, SEGMENT_BYTES_MIN

_SEGMENT_BYTES_MAX = 1 << 30  # positions in frames are 32 bits, and an append may make one larger


class OpenTopic(NamedTuple):
    """A topic that is open for writing."""

    settings: Settings
    writer: TopicWriter
    commit: GroupCommit


class LocalJournal(ReadableJournal):
    """A journal in a folder of this machine, called from the thread of one event loop."""

    appends_at_once = True  # what is small: `append_many` then returns without waiting

    def __init__(
        self,
        root: str,
        disk: Disk,
        clock: Clock,
        segment_bytes: int,
        observer: Observer | None,
        lock: Lock,
    ) -> None:
        super().__init__(root)
        self._disk = disk
        self._clock = clock
        self._segment_bytes = segment_bytes
        self._observer = observer
        self._lock = lock
        self._poison = Poison()
        self._background: Executor = disk.background()
        self._committing = disk.committing()
        self._topics: dict[str, OpenTopic] = {}

    @classmethod
    def open(
        cls,
        root: str | Path,
        *,
        clock: Clock | None = None,
        disk: Disk | None = None,
        segment_bytes: int = SEGMENT_BYTES,
        observer: Observer | None = None,
    ) -> "LocalJournal":
        """Opens a folder for writing, with all its topics; makes it if it is not there.

        Unavailable if another process has it open, DataLoss if a file in it is damaged.
        """
        if not SEGMENT_BYTES_MIN <= segment_bytes <= _SEGMENT_BYTES_MAX:
            raise InvalidArgument(
                f"expected segments of {SEGMENT_BYTES_MIN} to {_SEGMENT_BYTES_MAX} bytes, "
                f"but found {segment_bytes}"
            )
        disk, clock, folder = disk or RealDisk(), clock or SystemClock(), str(root)
        disk.make_folder(folder)
        lock = disk.lock(f"{folder}/{LOCK}", _holder(clock))
        journal = cls(folder, disk, clock, segment_bytes, observer, lock)
        try:
            journal._open_topics()
        except BaseException:
            journal._let_go()
            raise
        return journal

    @property
    def folder(self) -> str:
        """Where its files are."""
        return self._root

    def create_topic(self, topic: str, partitions: int, retention: Retention | None = None) -> None:
        """Makes sure that the topic exists; a retention that is given replaces the one it has."""
        self._check_open()
        check_topic(topic, partitions)
        there = self._topics.get(topic)
        folder = f"{self._root}/{topic}"
        if there is None:
            settings = Settings(partitions, retention or Retention())
            self._make_topic(folder, settings)
            self._open_topic(topic, settings)
            return
        check_same_partitions(topic, there.settings.partitions, partitions)
        if retention is not None and retention != there.settings.retention:
            settings = Settings(partitions, retention)
            store_settings(self._disk, folder, settings)
            self._topics[topic] = there._replace(settings=settings)

    def topics(self) -> dict[str, int]:
        """The topics with their number of partitions."""
        self._check_open()
        return {name: topic.settings.partitions for name, topic in self._topics.items()}

    async def take(self, topic: str, partition: int, epoch: int | None = None) -> Taken | Refused:
        """Begins to write a partition in an epoch.

        The folder has one writer, so it is enough to know the epoch here until a frame has it.
        """
        there = self._topic(topic)
        check_partition(topic, partition, there.settings.partitions)
        newest = there.writer.epochs[partition]
        taken = newest + 1 if epoch is None else epoch
        check_epoch(taken)
        if taken <= newest:
            following = there.writer.view.next[partition]
            return Refused(partition, newest, following, not_newer(taken, newest))
        await there.commit.taken(partition, taken)
        return Taken(taken, there.writer.view.next[partition])

    async def append(self, topic: str, partition: int, entries: Sequence[bytes]) -> int:
        """Appends in the newest epoch; returns the offset of the first entry, once durable."""
        there = self._topic(topic)
        check_partition(topic, partition, there.settings.partitions)
        outcome = (await there.commit.enqueue([_staging(partition, entries)]))[0]
        assert isinstance(outcome, Appended), "it expected nothing that could be refused"
        return outcome.first

    async def append_many(
        self, appends: Sequence[Append], meanwhile: Meanwhile | None = None
    ) -> list[Outcome]:
        """Appends with one write and one sync for each topic among them.

        What is not refused becomes durable together or fails together. `meanwhile` may be called
        while the disk writes, before anything is durable or readable.
        """
        if len(appends) == 1 or len({each.topic for each in appends}) == 1:
            there = self._topic(appends[0].topic)
            checked_all = [_checked(there, each) for each in appends]
            written = there.commit.append_now(checked_all, meanwhile)
            return written if isinstance(written, list) else await written
        checked: dict[str, list[Staging]] = {}
        numbers: dict[str, list[int]] = {}
        for number, each in enumerate(appends):
            topic = each.topic
            append = _checked(self._topic(topic), each)
            checked.setdefault(topic, []).append(append)
            numbers.setdefault(topic, []).append(number)
        answers = [
            (topic, self._topics[topic].commit.enqueue(several, at_once=True))
            for topic, several in checked.items()
        ]
        outcomes: dict[int, Outcome] = {}
        for topic, answer in answers:
            outcomes.update(zip(numbers[topic], await answer, strict=True))
        return [outcomes[number] for number in range(len(appends))]

    def append_copies(
        self, topic: str, copies: list[Staging]
    ) -> list[Outcome] | asyncio.Future[list[Outcome]]:
        """Appends at once what was checked and has its time already; now, if it is little.

        Epochs are those of the copies, newer or older than what is there.
        """
        return self._topic(topic).commit.append_now(copies)

    def begin_at(self, topic: str, partition: int, offset: int, epoch: int = 0) -> None:
        """Lets a partition that never had an entry begin at an offset, in an epoch.

        Entries of another journal can then be copied to the offsets that they had there. It is
        durable when the journal is closed. InvalidState where the partition has begun.
        """
        writer = self._topic(topic).writer
        bounds = writer.view.bounds(partition)
        if bounds != (0, 0) or writer.epochs[partition]:
            raise InvalidState(
                f"expected no log of partition {partition} of {topic} in {self._root}, but it has"
                f" offsets {bounds.earliest} to {bounds.next} in epoch {writer.epochs[partition]};"
                " only a new partition can begin elsewhere",
                topic=topic,
                partition=partition,
            )
        check_epoch(epoch)
        writer.begin_at(partition, offset, epoch)

    def epoch(self, topic: str, partition: int) -> int:
        """The newest epoch that a partition was taken or written in; 0 if it never was."""
        there = self._topic(topic)
        check_partition(topic, partition, there.settings.partitions)
        return there.writer.epochs[partition]

    def retention(self, topic: str) -> Retention:
        """How much of a topic is kept."""
        return self._topic(topic).settings.retention

    def discard(self, topic: str, partition: int, before: int) -> None:
        """Gives up the entries below an offset; after a crash some of them may be back."""
        self._topic(topic).writer.discard(partition, before)

    def enforce_retention(
        self, now_ms: int | None = None, needed: Needed = MappingProxyType({})
    ) -> None:
        """Drops whole segments that the topics' retention no longer keeps and nobody needs."""
        self._check_open()
        now_ms = self._clock.now_ms() if now_ms is None else now_ms
        for name, topic in self._topics.items():
            topic.writer.enforce(topic.settings.retention, now_ms, needed.get(name, {}))

    def pin(self) -> Pinned:
        """All topics as of this moment; the files of their segments stay until it is released."""
        self._check_open()
        topics = list(self._topics.items())
        extents = {name: extent_of(each.settings, each.writer.view) for name, each in topics}
        for _, each in topics:
            each.writer.pin()

        def release() -> None:
            for _, each in topics if not self._closed else ():
                each.writer.unpin()

        return Pinned(extents, release)

    def heal(self, file: str) -> None:
        """Does what can be done about a damaged file of a topic while the journal is open.

        Small files are written anew. The segment that is written on is ended: like the others it
        is gone when its entries are discarded.
        """
        folder, _, name = file.rpartition("/")
        topic = self._topics.get(folder.rpartition("/")[2])
        if topic is None:
            return
        if name == SETTINGS:
            store_settings(self._disk, folder, topic.settings)
        elif name in (EARLIEST, EPOCHS):
            topic.writer.store_numbers()
        elif sequences := index_sequences([name]):
            topic.writer.seal_again(sequences.pop())
        else:
            topic.writer.end_segment(file)

    async def close(self) -> None:
        """Finishes what is waiting, refuses what comes after, and lets go of the files."""
        if self._closed:
            return
        self._closed = True
        for topic in self._topics.values():
            await topic.commit.landed()
            topic.commit.wake_all()
        self._let_go()

    def _open_topics(self) -> None:
        for name in self._disk.list(self._root):
            folder = f"{self._root}/{name}"
            settings = load_settings(self._disk, folder)
            if settings is None:
                continue
            if not are_settings_whole(self._disk, folder, settings):
                store_settings(self._disk, folder, settings)
            self._open_topic(name, settings)

    def _open_topic(self, name: str, settings: Settings) -> None:
        folder = f"{self._root}/{name}"
        writer = TopicWriter(
            self._disk,
            folder,
            recover(self._disk, folder, name, settings.partitions),
            self._clock,
            self._background,
            self._segment_bytes,
            self._poison,
            self._observer,
        )
        self._topics[name] = OpenTopic(settings, writer, GroupCommit(writer, self._committing))

    def _make_topic(self, folder: str, settings: Settings) -> None:
        """Makes a topic's files; the settings come last, and with them the topic is there."""
        self._disk.make_folder(folder)
        first_bytes = segment_capacity_bytes(1, self._segment_bytes)
        for name, size_bytes in (
            (segment_name(1), first_bytes),
            (DURABLE, MARK_BYTES),
            (EARLIEST, file_bytes(settings.partitions)),
            (EPOCHS, file_bytes(settings.partitions)),
        ):
            self._disk.create(f"{folder}/{name}", size_bytes).close()
        self._disk.sync_folder(folder)
        store_settings(self._disk, folder, settings)

    def _let_go(self) -> None:
        try:
            for topic in self._topics.values():
                topic.writer.close()
        finally:
            self._background.shutdown(wait=True)
            if self._committing is not None:
                self._committing.shutdown(wait=True)
            self._lock.release()

    def _topic(self, topic: str) -> OpenTopic:
        self._check_open()
        there = self._topics.get(topic)
        if there is None:
            raise unknown_topic(topic)
        return there

    def _view(self, topic: str) -> TopicView:
        return self._topic(topic).writer.view

    async def _wait_for_more(self, topic: str, partition: int, misses: int) -> None:
        await self._topic(topic).commit.wait_for(partition)


def _checked(topic: OpenTopic, append: Append) -> Staging:
    name, partition, entries, epoch, offset = append
    check_partition(name, partition, topic.settings.partitions)
    if epoch is None:
        epoch = ANY
    elif epoch != topic.writer.epochs[partition]:
        check_epoch(epoch)
    return _staging(partition, entries, epoch, ANY if offset is None else offset)


def _staging(
    partition: int, entries: Sequence[bytes], epoch: int = ANY, offset: int = ANY
) -> Staging:
    """An append whose entries are as many and as large as they may be."""
    lengths = list(map(len, entries))
    size_bytes = frame_bytes(lengths)
    if not lengths or size_bytes > ENTRY_BYTES_MAX:
        check_entries(entries)  # few are as large together as one may be
    return Staging(partition, entries, lengths, size_bytes, epoch, offset)


def _holder(clock: Clock) -> bytes:
    """Who takes the lock, to tell it to a second process."""
    return msgspec.json.encode(
        {
            "pid": os.getpid(),
            "host": socket.gethostname(),
            "command": " ".join(sys.argv)[:500],
            "since_ms": clock.now_ms(),
        }
    )
