"""A store whose files are damaged says so for every kind of read; it never says "not there"."""

from pathlib import Path

import pytest

from holdfast.errors import DataLoss, Unavailable
from holdfast.state import PartitionState
from holdfast.state.keys import U64
from holdfast.state.rocks import RocksStore

ROWS = [(b"%06d" % number, b"value %d" % number) for number in range(3_000)]


def flip(path: Path, position: int, bit: int = 0) -> None:
    """Turns one bit of a file, as a failing disk might."""
    with path.open("r+b") as file:
        file.seek(position)
        byte = file.read(1)[0]
        file.seek(position)
        file.write(bytes([byte ^ (1 << bit)]))


@pytest.fixture
def damaged(tmp_path: Path) -> RocksStore:
    """A store with a bad block in the middle of its only file."""
    store = RocksStore(tmp_path / "store")
    store.write(ROWS, [])
    store.close()
    (table,) = (tmp_path / "store").glob("*.sst")
    flip(table, table.stat().st_size // 3)
    return RocksStore(tmp_path / "store")


def unreadable(store: RocksStore) -> set[bytes]:
    found: set[bytes] = set()
    for key, value in ROWS:
        try:
            assert store.get(key) == value
        except DataLoss:
            found.add(key)
    return found


def test_a_row_in_a_bad_block_is_data_loss(damaged: RocksStore) -> None:
    bad = unreadable(damaged)
    assert 0 < len(bad) < len(ROWS)
    assert damaged.damage is not None and "checksum" in damaged.damage.message


def test_many_rows_with_one_in_a_bad_block_are_data_loss(damaged: RocksStore) -> None:
    bad = unreadable(damaged)
    good = [key for key, _ in ROWS if key not in bad]
    assert None not in damaged.get_many(good)
    with pytest.raises(DataLoss):
        damaged.get_many([*good[:3], min(bad)])


def test_a_scan_into_a_bad_block_is_data_loss_not_an_early_end(damaged: RocksStore) -> None:
    with pytest.raises(DataLoss):
        list(damaged.scan(b"", b"\xff"))
    with pytest.raises(DataLoss):
        list(damaged.scan(min(unreadable(damaged)), b"\xff"))


def test_the_first_rows_up_to_a_bad_block_are_data_loss_if_more_were_asked_for(
    damaged: RocksStore,
) -> None:
    before = [key for key, _ in ROWS].index(min(unreadable(damaged)))
    assert damaged.first(b"", b"\xff", before) == ROWS[:before]
    for first in (damaged.first, damaged.first_keys):
        for start in (b"", ROWS[before - 1][0], ROWS[before][0]):
            for limit in (10, len(ROWS)):
                if limit > before or start:
                    with pytest.raises(DataLoss):
                        first(start, b"\xff", limit)


def test_a_walk_finds_a_bad_block_and_tells_who_wants_to_know(damaged: RocksStore) -> None:
    told: list[DataLoss] = []
    damaged.on_damage = told.append
    with pytest.raises(DataLoss):
        list(damaged.walk())
    assert len(told) == 1


@pytest.mark.parametrize("rows", [0, 1, 999, 1_000, 1_001, 2_500])
def test_a_walk_reads_every_row(tmp_path: Path, rows: int) -> None:
    store = RocksStore(tmp_path / "store")
    store.write(ROWS[:rows], [])
    assert sum(store.walk()) == rows
    store.close()


def test_a_row_that_does_not_decode_is_data_loss(tmp_path: Path) -> None:
    store = RocksStore(tmp_path / "store")
    family = PartitionState(store, 1).family(2, U64, int)
    store.write([(b"\0\1\2" + bytes(7) + b"\1", b"\xc1 is nothing")], [])
    with pytest.raises(DataLoss):
        family.get(1)
    with pytest.raises(DataLoss):
        family.get_many([1])
    with pytest.raises(DataLoss):
        list(family.scan())
    store.close()


def test_a_missing_table_is_data_loss(tmp_path: Path) -> None:
    store = RocksStore(tmp_path / "store")
    store.write(ROWS, [])
    store.close()
    next((tmp_path / "store").glob("*.sst")).unlink()
    with pytest.raises(DataLoss):
        list(RocksStore(tmp_path / "store").walk())


def test_a_closed_store_is_not_a_damaged_one(tmp_path: Path) -> None:
    store = RocksStore(tmp_path / "store")
    told: list[DataLoss] = []
    store.on_damage = told.append
    store.close()
    for use in (
        lambda: store.get(b"a"),
        lambda: store.get_many([b"a"]),
        lambda: list(store.scan(b"", b"b")),
        lambda: list(store.walk()),
        lambda: store.write([(b"a", b"b")], []),
        store.flush,
        lambda: store.checkpoint(tmp_path / "copy"),
    ):
        with pytest.raises(Unavailable):
            use()
    assert told == [] and store.damage is None
