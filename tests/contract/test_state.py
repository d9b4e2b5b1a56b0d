"""What every store of state promises: the same suite over memory and RocksDB."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from holdfast.errors import DataLoss
from holdfast.state import Store
from holdfast.state.memory import MemoryStore
from holdfast.state.rocks import RocksStore


class Backend:
    """How a test opens a store, closes it, and opens it again."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self._path = folder / "store"
        self._memory = MemoryStore()

    def open(self) -> Store:
        return self._memory if self.name == "memory" else RocksStore(self._path)

    def open_checkpoint(self, path: Path) -> Store:
        if self.name == "memory":
            return MemoryStore(self._memory.checkpoints[path])
        return RocksStore(path)


@pytest.fixture(params=["memory", "rocks"])
def backend(request: pytest.FixtureRequest, tmp_path: Path) -> Backend:
    return Backend(request.param, tmp_path)


@pytest.fixture
def store(backend: Backend) -> Iterator[Store]:
    opened = backend.open()
    yield opened
    opened.close()


ROWS = {b"%c%d" % (letter, number): b"v%d" % number for letter in b"abc" for number in range(5)}


def test_a_row_is_there_after_its_write_and_gone_after_its_delete(store: Store) -> None:
    assert store.get(b"a") is None
    store.write([(b"a", b"1")], [])
    assert store.get(b"a") == b"1"
    store.write([(b"a", b"2")], [])
    assert store.get(b"a") == b"2"
    store.write([], [b"a", b"never there"])
    assert store.get(b"a") is None


def test_an_empty_value_is_a_value(store: Store) -> None:
    store.write([(b"a", b"")], [])
    assert store.get(b"a") == b""
    assert list(store.scan(b"a", b"b")) == [(b"a", b"")]


def test_many_rows_are_got_in_the_order_that_was_asked_for(store: Store) -> None:
    store.write(ROWS.items(), [])
    asked = [b"c4", b"missing", b"a0", b"c4"]
    assert store.get_many(asked) == [b"v4", None, b"v0", b"v4"]
    assert store.get_many([]) == []


def test_a_scan_is_in_the_order_of_the_bytes(store: Store) -> None:
    keys = [bytes([a, b]) for a in (0, 1, 127, 128, 255) for b in (0, 255)]
    store.write([(key, key) for key in reversed(keys)], [])
    assert [key for key, _ in store.scan(b"", b"\xff\xff\xff")] == sorted(keys)


@pytest.mark.parametrize(
    ("start", "end"),
    [(b"a0", b"c9"), (b"a2", b"b2"), (b"a", b"b"), (b"b0", b"b0"), (b"b00", b"b1"), (b"x", b"z")],
)
def test_a_scan_begins_at_its_start_and_ends_before_its_end(
    store: Store, start: bytes, end: bytes
) -> None:
    store.write(ROWS.items(), [])
    expected = [(key, value) for key, value in sorted(ROWS.items()) if start <= key < end]
    assert list(store.scan(start, end)) == expected
    assert list(store.scan_once(start, end)) == expected
    assert store.first(start, end, 100) == expected
    assert store.first_keys(start, end, 100) == [key for key, _ in expected]


@pytest.mark.parametrize("limit", [1, 63, 64, 199, 200, 201])
@pytest.mark.parametrize("start", [0, 10, 200])
def test_the_first_rows_of_a_scan_are_as_many_as_asked_for(
    store: Store, start: int, limit: int
) -> None:
    rows = [(b"%03d" % number, b"%d" % number) for number in range(200)]
    store.write([*rows, (b"200", b"")], [b"200"])
    expected = rows[start : start + limit]
    assert store.first(b"%03d" % start, b"a", limit) == expected
    assert store.first_keys(b"%03d" % start, b"a", limit) == [key for key, _ in expected]


def test_a_scan_keeps_its_bounds_for_as_long_as_it_runs(store: Store) -> None:
    store.write(ROWS.items(), [])
    for number in range(200):
        scan = store.scan(b"a%d" % 0, b"c%d" % 5)  # bytes that nobody else holds
        others = [b"%c%d" % (letter, number) for letter in b"ab"]
        assert len(list(scan)) == len(ROWS), others


def test_a_scan_shows_the_rows_of_when_it_began(store: Store) -> None:
    store.write(ROWS.items(), [])
    scan = store.scan(b"a", b"d")
    first = next(scan)
    store.write([(b"b9", b"new")], [b"c0", b"c1"])
    assert dict([first, *scan]) == ROWS


def test_a_write_that_fails_in_the_middle_changes_nothing(store: Store) -> None:
    store.write([(b"a", b"1")], [])

    def puts() -> Iterator[tuple[bytes, bytes]]:
        yield b"a", b"2"
        yield b"b", b"2"
        raise RuntimeError("the caller had a bug")

    with pytest.raises(RuntimeError):
        store.write(puts(), [b"a"])
    assert list(store.scan(b"", b"\xff")) == [(b"a", b"1")]


def test_a_batch_is_seen_when_it_is_written_and_its_last_change_of_a_row_counts(
    store: Store,
) -> None:
    store.write([(b"a", b"1"), (b"b", b"1")], [])
    batch = store.batch()
    batch.delete(b"a")
    batch.put(b"a", b"2")
    batch.put(b"b", b"2")
    batch.delete(b"b")
    assert list(store.scan(b"", b"\xff")) == [(b"a", b"1"), (b"b", b"1")]
    store.write_batch(batch)
    assert list(store.scan(b"", b"\xff")) == [(b"a", b"2")]


def test_a_row_that_is_put_and_deleted_in_one_write_is_gone(store: Store) -> None:
    store.write([(b"a", b"1")], [b"a"])
    assert store.get(b"a") is None


def test_rows_outlive_a_close(backend: Backend) -> None:
    store = backend.open()
    store.write(ROWS.items(), [b"a0"])
    store.close()
    again = backend.open()
    assert dict(again.scan(b"", b"\xff")) == {k: v for k, v in ROWS.items() if k != b"a0"}
    again.close()


def test_rows_that_are_taken_in_are_all_there_at_the_end_and_none_before(store: Store) -> None:
    store.write([(b"a", b"1"), (b"z", b"1")], [])
    pages = [[(b"b%03d" % n, b"x" * n) for n in range(first, first + 10)] for first in (0, 10, 20)]
    ingesting = store.ingest(iter(pages))
    for _ in pages:
        next(ingesting)
        assert [key for key, _ in store.scan(b"", b"\xff")] == [b"a", b"z"]
    list(ingesting)
    rows = [row for page in pages for row in page]
    assert list(store.scan(b"b", b"c")) == rows and store.get(b"b010") == b"x" * 10
    store.write([(b"b010", b"later")], [b"b011"])
    assert store.get(b"b010") == b"later" and store.get(b"b011") is None


def test_a_range_of_rows_is_removed_and_others_may_come_in_its_place(store: Store) -> None:
    store.write([(bytes([each]), b"old") for each in range(10)], [])
    store.flush()
    store.write([(b"\x04\x01", b"old")], [])
    scan = store.scan(b"", b"\xff")
    store.remove(b"\x03", b"\x07")
    assert len(list(scan)) == 11, "a scan shows the rows of when it began"
    assert [key[0] for key, _ in store.scan(b"", b"\xff")] == [0, 1, 2, 7, 8, 9]
    for _ in store.ingest(iter([[(b"\x05", b"new")]])):
        pass
    assert store.get(b"\x05") == b"new" and store.get(b"\x04") is None
    assert len(list(store.scan(b"", b"\xff"))) == 7


def test_what_was_taken_in_is_durable_at_once() -> None:
    store = MemoryStore()
    list(store.ingest(iter([[(b"a", b"1")]])))
    assert store.crash().get(b"a") == b"1"


def test_a_checkpoint_is_a_store_of_its_own(backend: Backend, tmp_path: Path) -> None:
    store, path = backend.open(), tmp_path / "snapshots" / "1"
    store.write(ROWS.items(), [])
    store.checkpoint(path)
    store.write([(b"later", b"1")], [b"a0"])
    copy = backend.open_checkpoint(path)
    assert dict(copy.scan(b"", b"\xff")) == ROWS
    copy.write([(b"other", b"1")], [])
    assert store.get(b"other") is None
    copy.close()
    store.close()


def test_a_folder_that_is_no_store_is_data_loss_that_names_it(tmp_path: Path) -> None:
    RocksStore(tmp_path / "store").close()
    (tmp_path / "store" / "CURRENT").write_text("nonsense")
    with pytest.raises(DataLoss) as caught:
        RocksStore(tmp_path / "store")
    assert caught.value.fields["path"] == str(tmp_path / "store")


# --- power loss -------------------------------------------------------------------------------

WRITES = 400
FLUSH_EVERY = 90


def write_numbered(store: Store, count: int, wrote: Callable[[int], None]) -> None:
    """Write n puts row n and the counter and deletes row n - 10: a torn write would show."""
    for number in range(count):
        puts = [(b"row%06d" % number, b"x" * 4_000), (b"counter", b"%d" % number)]
        store.write(puts, [b"row%06d" % (number - 10)])
        if number % FLUSH_EVERY == FLUSH_EVERY - 1:
            store.flush()
            wrote(number)


def check_is_a_beginning(store: Store, flushed: int) -> int:
    """The rows are those after some write n, and n is not before the last flush; returns n."""
    counter = store.get(b"counter")
    last = -1 if counter is None else int(counter)
    assert last >= flushed, f"flushed up to {flushed}, found {last}"
    rows = [int(key[3:]) for key, _ in store.scan(b"row", b"rox")]
    assert rows == list(range(max(0, last - 9), last + 1))
    return last


@pytest.mark.parametrize("writes", [1, FLUSH_EVERY, FLUSH_EVERY + 1, WRITES])
def test_memory_falls_back_to_its_last_flush(writes: int) -> None:
    store, flushes = MemoryStore(), [-1]
    write_numbered(store, writes, flushes.append)
    assert check_is_a_beginning(store.crash(), flushes[-1]) == flushes[-1]


CHILD = """
import sys
from pathlib import Path
from holdfast.state.rocks import RocksStore
sys.path.insert(0, sys.argv[1])
from test_state import write_numbered
write_numbered(RocksStore(Path(sys.argv[2])), 1_000_000, lambda number: print(number, flush=True))
"""


@pytest.mark.parametrize("flushes", [1, 4, 60])
def test_rocksdb_killed_in_the_middle_holds_a_beginning_of_its_writes(
    tmp_path: Path, flushes: int
) -> None:
    path = tmp_path / "store"
    here = str(Path(__file__).parent)
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, here, str(path)],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        text=True,
    )
    assert child.stdout is not None
    flushed = -1
    for _ in range(flushes):
        flushed = int(child.stdout.readline())
    child.send_signal(signal.SIGKILL)
    flushed = max([flushed, *map(int, child.stdout.read().split())])
    child.wait()
    store = RocksStore(path)
    check_is_a_beginning(store, flushed)
    store.close()
