"""A member of a new division, built from the logs and stores of the old one, and checked."""

import struct
from collections.abc import Iterator, Mapping
from hashlib import sha256
from heapq import merge
from pathlib import Path
from typing import NamedTuple

from holdfast.engine.kernel.recovery import TOPIC
from holdfast.errors import DataLoss, InvalidState
from holdfast.journal.api import Bounds
from holdfast.journal.local import JournalCopy, LocalJournal, WrittenAppend
from holdfast.limits import REBALANCE_READ_BYTES
from holdfast.rebalancing.switching import Told
from holdfast.state.copies import finish
from holdfast.state.families import partition_range
from holdfast.state.moving import export_partition, has_rows
from holdfast.state.portable import Row, pages
from holdfast.state.rocks import RocksStore
from holdfast.state.snapshots import Snapshots

WITH_OTHER_TOPICS = 1  # the process that has this partition has the node's other topics
_Log = tuple[str, int]  # topic and partition
_LENGTHS = struct.Struct(">QQ")
_APPEND = struct.Struct(">QQQQ")  # offset, time, epoch, entries


class Home(NamedTuple):
    """The files that have a partition."""

    journal: LocalJournal
    store: RocksStore


class Contents(NamedTuple):
    """All that a partition has, in short: two are equal if nothing is missing or changed."""

    bounds: Bounds
    epoch: int
    log: str  # digest
    rows: str  # digest
    entry_count: int
    row_count: int
    beside: str = ""  # digest of what is on other topics, which go with the first partition


class Member(NamedTuple):
    """A member to be built: its folder, its partitions, and where they are now."""

    folder: Path
    homes: Mapping[int, Home]
    segment_bytes: int


async def build(member: Member, told: Told) -> dict[int, Contents]:
    """Copies the partitions of a member into its new folder; what each of them has."""
    for partition, home in member.homes.items():
        check_state(partition, home)
    logs = await _copy_logs(member, told)
    rows = {each: _copied_rows(home.store, each) for each, home in member.homes.items()}
    _copy_rows(member, told)
    return {
        partition: Contents(
            home.journal.bounds(TOPIC, partition),
            home.journal.epoch(TOPIC, partition),
            *_contents(logs[TOPIC, partition], rows[partition]),
            beside_of(home.journal) if partition == WITH_OTHER_TOPICS else "",
        )
        for partition, home in member.homes.items()
    }


def check_state(partition: int, home: Home) -> None:
    """Refuses a partition whose state and log do not meet: a start restores what is missing."""
    bounds = home.journal.bounds(TOPIC, partition)
    offset = 0
    if has_rows(home.store, partition):
        offset = export_partition(home.store, partition)[0].offset
    if not bounds.earliest <= offset <= bounds.next:
        raise InvalidState(
            f"Expected the state of partition {partition} in {home.store.path} to stand for a place"
            f" in its log, but it stands for {offset} and the log has {bounds.earliest} to"
            f" {bounds.next}; start the node once, which restores the state, stop it and try again",
            partition=partition,
        )


async def _copy_logs(member: Member, told: Told) -> dict[_Log, "_Digest"]:
    """Copies logs in the order of time, in which a journal finds offsets by their time."""
    target = JournalCopy(member.folder / "journal", member.segment_bytes)
    sources: dict[_Log, LocalJournal] = {}
    for partition, (journal, _) in member.homes.items():
        sources[TOPIC, partition] = journal
        if partition == WITH_OTHER_TOPICS:
            sources |= dict.fromkeys(_other_logs(journal), journal)
    digests = {each: _Digest() for each in sources}
    try:
        for topic, journal in {topic: journal for (topic, _), journal in sources.items()}.items():
            target.create_topic(topic, journal.topics()[topic], journal.retention(topic))
        for (topic, partition), journal in sources.items():
            bounds = journal.bounds(topic, partition)
            is_empty = bounds.earliest == bounds.next
            epoch = journal.epoch(topic, partition) if is_empty else 0
            target.begin_at(topic, partition, bounds.earliest, epoch)
        streams = [_appends(journal, each) for each, journal in sources.items()]
        for _, log, written in merge(*streams, key=lambda each: each[:2]):
            await target.take(*log, written)
            told("copying", digests[log].add(written))
    finally:
        await target.close()
    return digests


def _other_logs(journal: LocalJournal) -> list[_Log]:
    """What a journal has beside the records of partitions, such as the packages of publishers."""
    return sorted(
        (topic, each)
        for topic, count in journal.topics().items()
        for each in range(1, count + 1)
        if topic != TOPIC
    )


def beside_of(journal: LocalJournal) -> str:
    """All of that in short; "" if there is none."""
    digest = _Digest()
    names: list[str] = []
    for log in _other_logs(journal):
        names.append(f"{log} {journal.bounds(*log)} {journal.epoch(*log)}")
        for _, _, written in _appends(journal, log):
            digest.add(written)
    return f"{names} {digest.text()}" if names else ""


def _appends(journal: LocalJournal, log: _Log) -> Iterator[tuple[int, _Log, WrittenAppend]]:
    """A partition's appends with their times.

    They are read a piece at a time: many logs are read at once, and none keeps a file open.
    """
    offset, end = journal.bounds(*log)
    while offset < end:
        for written in journal.appends(*log, offset, REBALANCE_READ_BYTES):
            yield written.timestamp_ms, log, written
            offset = written.offset + len(written.entries)


def _copy_rows(member: Member, told: Told) -> None:
    """Copies the rows of all partitions as they are; their progress is among them."""

    def rows() -> Iterator[list[Row]]:
        for partition, (_, store) in sorted(member.homes.items()):
            for page in pages(store.scan_once(*partition_range(partition))):
                told("copying", sum(len(key) + len(value) for key, value in page))
                yield page

    store, _ = Snapshots(member.folder / "state").open_store()
    try:
        if any(has_rows(home.store, each) for each, home in member.homes.items()):
            for _ in store.ingest(rows()):
                pass
    finally:
        store.close()


async def check(member: Member, expected: dict[int, Contents], told: Told) -> None:
    """Opens what was built as a start does, compares every entry and row, and takes a snapshot.

    DataLoss names a partition that differs.
    """
    journal = LocalJournal.open(member.folder / "journal", segment_bytes=member.segment_bytes)
    snapshots = Snapshots(member.folder / "state")
    try:
        store, repairs = snapshots.open_store()
        try:
            for partition, contents in expected.items():
                log = _Digest()
                for _, _, written in _appends(journal, (TOPIC, partition)):
                    told("checking", log.add(written))
                found = Contents(
                    journal.bounds(TOPIC, partition),
                    journal.epoch(TOPIC, partition),
                    *_contents(log, _copied_rows(store, partition)),
                    beside_of(journal) if partition == WITH_OTHER_TOPICS else "",
                )
                if found != contents or repairs:
                    raise DataLoss(
                        f"Expected the copy of partition {partition} in {member.folder} to be as"
                        f" its source, but found {found} instead of {contents}; the folder is as it"
                        " was; check the disk",
                        partition=partition,
                    )
            stored = [each for each in expected if expected[each].row_count]
            if stored:
                positions = {each: export_partition(store, each)[0].offset for each in stored}
                finish(snapshots.take(store, positions))
        finally:
            store.close()
    finally:
        await journal.close()


class _Digest:
    """Of a log, or of rows, and how many there were."""

    def __init__(self) -> None:
        self._sha = sha256()
        self.count = 0

    def add(self, written: WrittenAppend) -> int:
        """Takes an append up; how large it is."""
        offset, timestamp_ms, epoch, entries = written
        sha = self._sha
        sha.update(_APPEND.pack(offset, timestamp_ms, epoch, len(entries)))
        size_bytes = 0
        for each in entries:
            sha.update(_LENGTHS.pack(0, len(each)) + each)
            size_bytes += len(each)
        self.count += len(entries)
        return size_bytes

    def add_row(self, key: bytes, value: bytes) -> None:
        self._sha.update(_LENGTHS.pack(len(key), len(value)) + key + value)
        self.count += 1

    def text(self) -> str:
        return self._sha.hexdigest()


def _copied_rows(store: RocksStore, partition: int) -> _Digest:
    digest = _Digest()
    for key, value in store.scan_once(*partition_range(partition)):
        digest.add_row(key, value)
    return digest


def _contents(log: _Digest, rows: _Digest) -> tuple[str, str, int, int]:
    return log.text(), rows.text(), log.count, rows.count
