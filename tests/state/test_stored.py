"""Snapshots in a blob store count when they were read back; the newest two are kept."""

import msgspec
import pytest

from holdfast.blobs.memory import MemoryBlobs
from holdfast.errors import DataLoss, HoldfastError, InvalidState, Unavailable
from holdfast.state import PartitionState, Progress, Writing
from holdfast.state.families import partition_range
from holdfast.state.keys import U64
from holdfast.state.memory import MemoryStore
from holdfast.state.moving import has_rows
from holdfast.state.stored import StoredSnapshots

ROWS = 2_500
OFFSET = 100_000  # the journal counts in another way than records do


def write(store: MemoryStore, position: int, partition: int = 1) -> None:
    """Rows that stand for the log up to a position."""
    state = PartitionState(store, partition)
    family = state.family(1, U64, int)
    for number in range(ROWS):
        family.put(number, position)
    state.commit()
    progress = Progress(position - 1, position - 1, 0, position + OFFSET)
    Writing(store, [(state, progress)]).finish()


def take(stored: StoredSnapshots, store: MemoryStore, partition: int = 1) -> None:
    for _ in stored.take(store, partition):
        pass


def restore(
    stored: StoredSnapshots, earliest: int = 0, end: int = 2 * OFFSET, partition: int = 1
) -> tuple[MemoryStore, bool, list[str]]:
    store = MemoryStore()
    restoring = stored.restore(store, partition, earliest, end)
    while True:
        try:
            next(restoring)
        except StopIteration as ended:
            return store, *ended.value


def rows(store: MemoryStore) -> list[tuple[bytes, bytes]]:
    return list(store.scan(*partition_range(1)))


def positions(stored: StoredSnapshots, partition: int = 1) -> list[int]:
    return [each.position for each in stored.found(partition)]


def exports(blobs: MemoryBlobs) -> list[str]:
    return sorted(name for name in blobs.content if name.endswith(".export"))


@pytest.fixture
def blobs() -> MemoryBlobs:
    return MemoryBlobs()


@pytest.fixture
def stored(blobs: MemoryBlobs) -> StoredSnapshots:
    return StoredSnapshots(blobs)


def test_what_is_restored_is_the_newest_that_was_stored(stored: StoredSnapshots) -> None:
    store = MemoryStore()
    for position in (10, 20, 30):
        write(store, position)
        take(stored, store)
    found, is_there, done = restore(stored)
    assert is_there and rows(found) == rows(store)
    assert "00000000000000000030.export in memory:" in done[-1]


def test_the_newest_two_of_each_partition_are_kept(
    stored: StoredSnapshots, blobs: MemoryBlobs
) -> None:
    store = MemoryStore()
    assert stored.kept_from() == {}
    for position in (10, 20, 30, 30):
        for partition in (1, 2):
            write(store, position, partition)
            take(stored, store, partition)
        if position == 10:
            assert stored.kept_from() == {}  # the log is not cut behind one alone
    assert [positions(stored, each) for each in (1, 2, 3)] == [[20, 30], [20, 30], []]
    assert stored.kept_from() == {1: 20 + OFFSET, 2: 20 + OFFSET}
    assert len(blobs.content) == 2 * 2 * 2
    manifest = msgspec.json.decode(blobs.content[f"partitions/00002/{30:020}.json"])
    assert manifest == {
        "partition": 2,
        "position": 30,
        "offset": 30 + OFFSET,
        "rows": ROWS,
        "sizeBytes": len(blobs.content[f"partitions/00002/{30:020}.export"]),
    }


def test_a_partition_in_which_nothing_has_happened_is_not_stored(
    stored: StoredSnapshots, blobs: MemoryBlobs
) -> None:
    store = MemoryStore()
    write(store, 0)
    take(stored, store)
    assert blobs.content == {} and restore(stored)[1:] == (False, [])


def test_the_next_process_knows_what_the_one_before_has_stored(
    stored: StoredSnapshots, blobs: MemoryBlobs
) -> None:
    store = MemoryStore()
    for position in (10, 20):
        write(store, position)
        take(stored, store)
    later = StoredSnapshots(blobs)
    assert later.kept_from() == {}
    write(store, 30)
    take(later, store)
    assert later.kept_from() == {1: 20 + OFFSET}


class Altering(MemoryBlobs):
    """A store that changes what it is given."""

    def get(self, name: str, start: int = 0, end: int | None = None):
        content = bytearray(b"".join(super().get(name, start, end)))
        content[len(content) // 2] ^= 1
        return iter([bytes(content)])


def test_a_snapshot_that_cannot_be_read_back_does_not_count() -> None:
    blobs, store = Altering(), MemoryStore()
    stored = StoredSnapshots(blobs)
    for position in (10, 20):
        write(store, position)
        with pytest.raises(DataLoss):
            take(stored, store)
    assert positions(stored) == [] and stored.kept_from() == {}
    assert restore(stored)[1:] == (False, [])


def test_what_failed_before_is_cleaned_up_by_the_next_that_is_good(
    stored: StoredSnapshots, blobs: MemoryBlobs
) -> None:
    store = MemoryStore()
    write(store, 10)
    taking = stored.take(store, 1)
    for _ in range(4):
        next(taking)
    blobs.failure = Unavailable("the network is gone")
    with pytest.raises(Unavailable):
        list(taking)
    blobs.failure = None
    assert positions(stored) == []
    write(store, 20)
    take(stored, store)
    assert exports(blobs) == [f"partitions/00001/{20:020}.export"]


def test_at_every_point_at_which_it_fails_the_one_before_is_still_good(
    stored: StoredSnapshots, blobs: MemoryBlobs
) -> None:
    store = MemoryStore()
    write(store, 10)
    take(stored, store)
    before = rows(store)
    write(store, 20)
    for pieces in range(100):
        taking = stored.take(store, 1)
        if sum(1 for _, _ in zip(range(pieces), taking, strict=False)) < pieces:
            break
        blobs.failure = Unavailable("the network is gone")
        with pytest.raises(HoldfastError):
            list(taking)
        blobs.failure = None
        assert rows(restore(stored)[0]) == before
    assert pieces > 8
    assert rows(restore(stored)[0]) == rows(store)


@pytest.mark.parametrize("kind", [".export", ".json"])
def test_a_snapshot_that_is_damaged_later_is_passed_over(
    stored: StoredSnapshots, blobs: MemoryBlobs, kind: str
) -> None:
    store = MemoryStore()
    write(store, 10)
    take(stored, store)
    older = rows(store)
    write(store, 20)
    take(stored, store)
    name = f"partitions/00001/{20:020}{kind}"
    if kind == ".json":
        del blobs.content[name]
    else:
        blobs.content[name] = blobs.content[name][:-1]
    found, is_there, done = restore(stored)
    assert is_there and rows(found) == older
    assert kind == ".json" or (name in done[0] and "ends in the middle" in done[0])


def test_a_snapshot_from_which_the_log_does_not_go_on_is_not_used(stored: StoredSnapshots) -> None:
    store = MemoryStore()
    write(store, 10)
    take(stored, store)
    found, is_there, done = restore(stored, earliest=OFFSET + 11)
    assert not is_there and not has_rows(found, 1)
    assert "ends before the log begins, at 100011" in done[0]
    assert restore(stored, earliest=OFFSET + 10)[1]


def test_a_log_that_ends_before_a_snapshot_has_lost_records(stored: StoredSnapshots) -> None:
    store = MemoryStore()
    write(store, 10)
    take(stored, store)
    with pytest.raises(DataLoss, match="log of partition 1 to reach to 100010"):
        restore(stored, end=OFFSET + 9)
    assert restore(stored, end=OFFSET + 10)[1]


def test_the_snapshots_of_another_node_are_not_mixed_with_ones_own(
    stored: StoredSnapshots, blobs: MemoryBlobs
) -> None:
    store, other = MemoryStore(), MemoryStore()
    write(store, 500)
    take(stored, store)
    before = dict(blobs.content)
    write(other, 10)
    with pytest.raises(InvalidState, match="up to record 500, and this node has 10"):
        take(StoredSnapshots(blobs), other)
    assert blobs.content == before
