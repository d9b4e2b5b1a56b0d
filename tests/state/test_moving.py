"""The state of a partition leaves a store whole, and comes into another whole or not at all."""

import os
import signal
import subprocess
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from holdfast.errors import (
    AlreadyExists,
    DataLoss,
    HoldfastError,
    InvalidArgument,
    InvalidState,
    NotFound,
)
from holdfast.limits import EXPORT_BLOCK_ROWS, MIB
from holdfast.state import PartitionState, Progress, Store, Writing
from holdfast.state.families import partition_range
from holdfast.state.keys import U64
from holdfast.state.memory import MemoryStore
from holdfast.state.moving import export_partition, has_rows, import_partition
from holdfast.state.portable import ExportReader, Header, written
from holdfast.state.rocks import RocksStore

PROGRESS = Progress(applied_position=41, processed_position=39, key_counter=7)


@pytest.fixture(params=["memory", "rocks"])
def open_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[str], Store]]:
    opened: list[Store] = []

    def open_one(name: str) -> Store:
        store = MemoryStore() if request.param == "memory" else RocksStore(tmp_path / name)
        opened.append(store)
        return store

    yield open_one
    for store in opened:
        store.close()


def fill(store: Store, partition: int, rows: int, value: bytes = b"") -> None:
    """Rows in two families, with the progress they stand for."""
    state = PartitionState(store, partition)
    first, second = state.family(1, U64, bytes), state.family(200, U64, bytes)
    for number in range(rows):
        (first if number % 2 else second).insert(number, value or b"row %d" % number)
    state.commit()
    Writing(store, [(state, PROGRESS)]).finish()


def rows_of(store: Store, partition: int) -> list[tuple[bytes, bytes]]:
    return list(store.scan(*partition_range(partition)))


def export(store: Store, partition: int) -> bytes:
    return b"".join(export_partition(store, partition)[1])


def take_in(store: Store, content: bytes, partition: int | None = None) -> Header:
    pieces = import_partition(store, in_pieces(content), "file.export", partition)
    while True:
        try:
            next(pieces)
        except StopIteration as end:
            return end.value.header


def in_pieces(content: bytes, size: int = 700) -> Iterator[bytes]:
    for at in range(0, len(content), size):
        yield content[at : at + size]


@pytest.mark.parametrize("rows", [0, 1, EXPORT_BLOCK_ROWS, 2 * EXPORT_BLOCK_ROWS + 1])
def test_what_is_imported_is_what_was_exported(
    open_store: Callable[[str], Store], rows: int
) -> None:
    one, other = open_store("one"), open_store("other")
    for partition in (1, 2, 3):
        fill(one, partition, rows + partition)
    fill(other, 1, 5)
    neighbour = rows_of(other, 1)
    header = take_in(other, export(one, 2))
    assert rows_of(other, 2) == rows_of(one, 2) and len(rows_of(other, 2)) == rows + 3
    assert (header.partition, header.position, header.offset) == (2, 42, PROGRESS.replay_from)
    assert PartitionState(other, 2).stored_progress == PROGRESS
    assert rows_of(other, 1) == neighbour and not has_rows(other, 3)


def test_an_export_shows_the_moment_at_which_it_began(open_store: Callable[[str], Store]) -> None:
    store = open_store("one")
    fill(store, 1, 5 * EXPORT_BLOCK_ROWS)
    before = rows_of(store, 1)
    _, stream = export_partition(store, 1)
    pieces = [next(stream), next(stream)]
    store.write(
        [(key, b"changed") for key, _ in before[::3]] + [(b"\0\1\xfenew", b"")],
        [key for key, _ in before[1::3]],
    )
    store.flush()
    content = b"".join([*pieces, *stream])
    other = open_store("other")
    take_in(other, content)
    assert rows_of(other, 1) == before != rows_of(store, 1)


def test_a_partition_without_state_cannot_be_exported(open_store: Callable[[str], Store]) -> None:
    store = open_store("one")
    fill(store, 1, 3)
    fill(store, 3, 3)
    with pytest.raises(NotFound, match="state of partition 2"):
        export_partition(store, 2)


def test_rows_are_never_mixed_with_those_that_are_there(
    open_store: Callable[[str], Store],
) -> None:
    one, other = open_store("one"), open_store("other")
    fill(one, 1, 10)
    other.write([(b"\0\1\xc8one row", b"x")], [])
    before = rows_of(other, 1)
    with pytest.raises(AlreadyExists, match="state of partition 1 where"):
        take_in(other, export(one, 1))
    assert rows_of(other, 1) == before


def test_an_export_of_another_partition_is_refused(open_store: Callable[[str], Store]) -> None:
    one = open_store("one")
    fill(one, 3, 10)
    with pytest.raises(InvalidArgument, match="but it is of 3"):
        take_in(one, export(one, 3), partition=2)


def test_a_partition_goes_on_in_another_journal_if_it_needs_nothing_of_its_own() -> None:
    one, other = MemoryStore(), MemoryStore()
    fill(one, 1, 10)
    for end, is_whole in ((PROGRESS.replay_from + 1, False), (PROGRESS.replay_from, True)):
        header, stream = export_partition(one, 1, end=end, partitions=4)
        assert (header.is_whole, header.partitions) == (is_whole, 4)
        importing = import_partition(other, stream, "file.export", offset=7)
        if is_whole:
            list(importing)
        else:
            with pytest.raises(InvalidState, match="commands there wait"):
                list(importing)
    moved = PartitionState(other, 1).stored_progress
    assert moved == msgspec.structs.replace(PROGRESS, replay_offset=7)
    assert rows_of(other, 1)[1:] == rows_of(one, 1)[1:]


# --- what is not whole ------------------------------------------------------------------------


def filled() -> MemoryStore:
    store = MemoryStore()
    fill(store, 1, 6)
    return store


def small() -> bytes:
    return export(filled(), 1)


def refused(content: bytes) -> HoldfastError:
    """The error; nothing was taken in."""
    store = MemoryStore()
    with pytest.raises(HoldfastError) as caught:
        take_in(store, content)
    assert not has_rows(store, 1)
    assert "file.export" in caught.value.message
    return caught.value


def test_an_export_that_is_cut_short_anywhere_is_refused() -> None:
    content = small()
    for length in range(len(content)):
        error = refused(content[:length])
        assert isinstance(error, DataLoss if length >= 19 else InvalidArgument), length
    assert "it ends in the middle" in refused(content[:-1]).message


def test_an_export_with_one_bit_turned_is_refused_wherever_it_is() -> None:
    content = small()
    for at in range(len(content)):
        for bit in (0, 7):
            changed = bytearray(content)
            changed[at] ^= 1 << bit
            assert isinstance(refused(bytes(changed)), DataLoss | InvalidArgument), at


def test_blocks_that_are_left_out_doubled_exchanged_or_added_are_found() -> None:
    store = MemoryStore()
    fill(store, 1, 3 * EXPORT_BLOCK_ROWS)
    header, one, two, three, end = list(export_partition(store, 1)[1])
    for blocks in (
        [header, one, three, end],
        [header, one, one, two, three, end],
        [header, two, one, three, end],
        [header, one, two, three],
        [header, one, two, three, end, end],
        [header, end],
        [header, header, one, two, three, end],
    ):
        assert isinstance(refused(b"".join(blocks)), DataLoss)


def test_rows_that_are_not_in_order_are_found() -> None:
    header, *_ = export_partition(filled(), 1)
    for keys in ([b"\2", b"\1"], [b"\1", b"\1"], [b"\0"]):
        content = b"".join(written(header, [[(key, b"")] for key in keys]))
        assert isinstance(refused(content), DataLoss)


def test_an_export_of_a_later_version_is_refused_by_its_number() -> None:
    class Later(msgspec.Struct):
        version: int = 9
        something_else: str = ""

    error = refused(b"".join(written(Later(), [])))  # type: ignore[arg-type]
    assert isinstance(error, InvalidArgument) and "its version is 9" in error.message


def test_a_file_that_is_something_else_is_refused() -> None:
    for content in (b"", b"hello", b"PK\3\4" * 100):
        error = refused(content)
        assert isinstance(error, InvalidArgument) and "begins otherwise" in error.message


def test_an_end_that_does_not_match_the_rows_is_found() -> None:
    store = MemoryStore()
    fill(store, 1, 6)
    header, rows, _ = list(export_partition(store, 1)[1])
    other = MemoryStore()
    fill(other, 1, 6, b"other")
    *_, end = list(export_partition(other, 1)[1])
    assert "another checksum" in refused(header + rows + end).message


# --- in the middle ----------------------------------------------------------------------------


def test_an_import_that_is_given_up_leaves_nothing(tmp_path: Path) -> None:
    one = MemoryStore()
    fill(one, 1, 5 * EXPORT_BLOCK_ROWS)
    store = RocksStore(tmp_path / "store")
    pieces = import_partition(store, in_pieces(export(one, 1)), "file.export")
    for _ in range(3):
        next(pieces)
    assert not has_rows(store, 1)
    pieces.close()
    assert not has_rows(store, 1)
    assert [each.name for each in tmp_path.iterdir()] == ["store"]
    take_in(store, export(one, 1))
    assert rows_of(store, 1) == rows_of(one, 1)
    store.close()


CHILD = """
import sys
from pathlib import Path
from holdfast.state.moving import import_partition
from holdfast.state.rocks import RocksStore
store = RocksStore(Path(sys.argv[1]))
store.write([(bytes([0, 2, 0]), b"a neighbour")], [])
store.flush()
for number, _ in enumerate(import_partition(store, [Path(sys.argv[2]).read_bytes()], "export")):
    print(number, flush=True)
    if number == int(sys.argv[3]):
        sys.stdin.read()
print("whole", flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("after", [0, 2, 1_000])
def test_an_import_that_is_killed_is_whole_or_was_never_there(tmp_path: Path, after: int) -> None:
    one = MemoryStore()
    fill(one, 1, 5 * EXPORT_BLOCK_ROWS)
    (tmp_path / "export").write_bytes(export(one, 1))
    path = tmp_path / "state" / "live"
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, str(path), str(tmp_path / "export"), str(after)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    assert child.stdout is not None
    awaited = "whole" if after == 1_000 else str(after)
    while (line := child.stdout.readline().strip()) != awaited:
        assert line, "the child has failed"
    if after != 1_000:
        assert (tmp_path / "state" / "live.importing").exists()
    child.send_signal(signal.SIGKILL)
    child.communicate()
    store = RocksStore(path)
    assert rows_of(store, 1) == (rows_of(one, 1) if after == 1_000 else [])
    assert store.get(b"\0\2\0") == b"a neighbour"
    assert not (tmp_path / "state" / "live.importing").exists()
    if after != 1_000:
        take_in(store, (tmp_path / "export").read_bytes())
        assert rows_of(store, 1) == rows_of(one, 1)
    store.close()


def test_a_damaged_export_does_not_make_the_store_a_damaged_one(tmp_path: Path) -> None:
    store = RocksStore(tmp_path / "store")
    with pytest.raises(DataLoss):
        take_in(store, small()[:-1])
    assert store.damage is None and not has_rows(store, 1)
    store.close()


def test_damage_in_the_store_that_is_exported_is_data_loss(tmp_path: Path) -> None:
    store = RocksStore(tmp_path / "store")
    fill(store, 1, 5_000)
    store.close()
    (table,) = (tmp_path / "store").glob("*.sst")
    content = bytearray(table.read_bytes())
    content[len(content) // 2] ^= 1
    table.write_bytes(content)
    damaged = RocksStore(tmp_path / "store")
    with pytest.raises(DataLoss):
        export(damaged, 1)
    damaged.abandon()


def test_exporting_and_importing_take_little_memory(tmp_path: Path) -> None:
    one, other = RocksStore(tmp_path / "one"), RocksStore(tmp_path / "other")
    rows, value = 20_000, os.urandom(2_000)  # 40 MB
    for first in range(0, rows, 2_000):
        one.write([(b"\0\1\1%010d" % n, value) for n in range(first, first + 2_000)], [])
    one.write([(b"\0\1\0", msgspec.msgpack.encode(PROGRESS))], [])
    tracemalloc.start()
    for _ in import_partition(other, export_partition(one, 1)[1], "export"):
        pass
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * MIB
    assert sum(1 for _ in other.scan(*partition_range(1))) == rows + 1
    one.close()
    other.close()


def test_an_export_says_what_it_is_before_its_rows_are_read() -> None:
    reader = ExportReader(in_pieces(small()), "file.export")
    assert (reader.header.partition, reader.header.position) == (1, 42)
    assert sum(map(len, reader.pages())) == reader.rows == 6
