"""Families against a dict: put, insert, delete, scan, undo, commit, write, in any order."""

import copy
import tempfile
from collections import Counter
from itertools import product
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from holdfast.state import PartitionState, Progress, Store, Writing
from holdfast.state import families as families_module
from holdfast.state import family as family_module
from holdfast.state.keys import TEXT, TEXT_U32_U64, U64, U64_TEXT, U64_U8_U64, U64_U64
from holdfast.state.memory import MemoryStore
from holdfast.state.rocks import RocksStore

PARTITION = 7
Row = tuple[str, int, int]
names = st.sampled_from(["a", "ab", "ä"])
rows = st.tuples(names, st.integers(0, 1), st.integers(0, 1))  # few, so that they meet again
values = st.integers(0, 9)


def order(row: Row) -> tuple[bytes, int, int]:
    return row[0].encode(), row[1], row[2]


class Families(RuleBasedStateMachine):
    """One family of three-part keys and one of numbers, side by side, over a store."""

    def __init__(self) -> None:
        super().__init__()
        self.store: Store = self.new_store()
        self.written = 0
        self.writing: Writing | None = None  # under way
        self.before: list[tuple[bytes, bytes]] = []  # what the store had when it began
        self.model: dict[Row, int] = {}
        self.numbers: dict[int, int] = {}
        self.told: Counter[str] = Counter()
        self.marks: list[tuple[int, tuple[Any, ...]]] = []
        self.open()

    def new_store(self) -> Store:
        return MemoryStore()

    def open(self) -> None:
        """A partition over the store, with neighbours whose rows must never be seen."""
        self.state = PartitionState(self.store, PARTITION)
        self.neighbour = self.state.family(4, U64, int)
        self.family = self.state.family(3, TEXT_U32_U64, int)
        self.other = self.state.family(2, U64, int)
        self.tally = self.state.tally(7)

    # --- changes ------------------------------------------------------------------------------

    @rule(row=rows, value=values)
    def put(self, row: Row, value: int) -> None:
        self.family.put(row, value)
        self.model[row] = value

    @rule(row=rows, value=values)
    def insert(self, row: Row, value: int) -> None:
        if row not in self.model:
            self.family.insert(row, value)
            self.model[row] = value

    @rule(row=rows)
    def delete(self, row: Row) -> None:
        self.family.delete(row)
        self.model.pop(row, None)

    @rule(row=rows)
    def take(self, row: Row) -> None:
        assert self.family.take(row) == self.model.pop(row, None)

    @rule(name=names, by=st.integers(-2, 2))
    def tell(self, name: str, by: int) -> None:
        self.tally.add(name, by)
        self.told[name] += by

    @rule(number=st.integers(0, 2), by=st.integers(-2, 2))
    def add(self, number: int, by: int) -> None:
        self.numbers[number] = self.numbers.get(number, 0) + by
        assert self.other.add(number, by) == self.numbers[number]
        self.neighbour.put(number, self.numbers[number])

    @rule(number=st.integers(0, 2), value=values)
    def put_other(self, number: int, value: int) -> None:
        self.other.put(number, value)
        self.neighbour.put(number, value)
        self.numbers[number] = value

    @rule(number=st.integers(0, 2))
    def delete_other(self, number: int) -> None:
        self.other.delete(number)
        self.numbers.pop(number, None)

    # --- steps --------------------------------------------------------------------------------

    @rule()
    def mark(self) -> None:
        model = self.model, self.numbers, self.told
        self.marks.append((self.state.mark(), copy.deepcopy(model)))

    @precondition(lambda self: self.marks)
    @rule(back=st.integers(1, 3))
    def undo(self, back: int) -> None:
        mark, (self.model, self.numbers, self.told) = self.marks[-min(back, len(self.marks))]
        del self.marks[-min(back, len(self.marks)) :]
        self.state.undo_to(mark)

    @rule()
    def commit(self) -> None:
        self.state.commit()
        self.marks.clear()

    @precondition(lambda self: self.writing is None)
    @rule()
    def begin_to_write(self) -> None:
        self.commit()
        self.written += 1
        self.before = list(self.store.scan(b"", b"\xff"))
        self.writing = Writing(self.store, [(self.state, self.progress)])
        assert self.state.changed_rows() == 0

    @precondition(lambda self: self.writing is not None)
    @rule(rows=st.integers(1, 3))
    def write_a_slice(self, rows: int) -> None:
        if self.writing.go_on(rows):
            self.writing = None
            assert self.state.stored_progress == self.progress
        else:
            assert list(self.store.scan(b"", b"\xff")) == self.before, "a part was written"

    @rule(reopen=st.booleans())
    def write(self, reopen: bool) -> None:
        if self.writing is not None:
            self.writing.finish()
            self.writing = None
        self.begin_to_write()
        self.writing.finish()
        self.writing = None
        if reopen:
            self.open()
            assert self.state.stored_progress == self.progress

    @property
    def progress(self) -> Progress:
        return Progress(self.written, self.written, 5, is_counted=True)

    # --- reads --------------------------------------------------------------------------------

    @rule(row=rows, others=st.lists(rows, max_size=4))
    def get(self, row: Row, others: list[Row]) -> None:
        assert self.family.get(row) == self.model.get(row)
        assert self.family.get_many(others) == [self.model.get(other) for other in others]

    @rule(name=names, start=rows)
    def scan_prefix(self, name: str, start: Row) -> None:
        start = (name, *start[1:])
        found = list(self.family.scan((name,), start))
        assert found == self.expected(lambda row: row[0] == name and row >= start)

    @rule(name=names, start=rows, limit=st.integers(1, 4))
    def first_keys(self, name: str, start: Row, limit: int) -> None:
        start = (name, *start[1:])
        found = self.family.first_keys((name,), start, limit)
        expected = self.expected(lambda row: row[0] == name and row >= start)
        assert found == [row for row, _ in expected[:limit]]

    @rule(firsts=st.lists(names, max_size=3))
    def fetch_within(self, firsts: list[str]) -> None:
        """What is at hand from now on is what is in the store until it is written."""
        found = self.family.fetch_within(firsts)
        assert {row[0] for row in found} <= set(firsts)

    @rule(name=names, limit=st.integers(1, 4))
    def first_keys_of_all(self, name: str, limit: int) -> None:
        found = self.family.first_keys((name,), None, limit)
        expected = self.expected(lambda row: row[0] == name)
        assert found == [row for row, _ in expected[:limit]]

    @rule(start=rows)
    def scan_from(self, start: Row) -> None:
        found = list(self.family.scan(start=start))
        assert found == self.expected(lambda row: order(row) >= order(start))

    @invariant()
    def scan_all(self) -> None:
        assert list(self.family.scan()) == self.expected(lambda row: True)
        assert list(self.other.scan()) == sorted(self.numbers.items())

    @invariant()
    def rows_are_counted(self) -> None:
        assert dict(self.family.unordered()) == self.model
        told = {name: count for name, count in self.told.items() if count}
        assert {name: count for name, count in self.tally.counts.items() if count} == told
        kept = {raw[3:].decode(): value for raw, value in self.state.dump() if raw[2] == 7}
        assert kept == {name: msgspec.msgpack.encode(count) for name, count in told.items()}

    @invariant()
    def dump_is_what_a_store_would_hold(self) -> None:
        mine = [row for row in self.state.dump() if row[0][2] == 3]
        assert len(mine) == len(self.model)

    def expected(self, wanted: Any) -> list[tuple[Row, int]]:
        return [(row, self.model[row]) for row in sorted(self.model, key=order) if wanted(row)]


class FamiliesOnRocks(Families):
    """The same over RocksDB."""

    def new_store(self) -> Store:
        self.folder = tempfile.TemporaryDirectory()
        return RocksStore(Path(self.folder.name) / "store")

    def teardown(self) -> None:
        self.store.close()
        self.folder.cleanup()


@pytest.mark.parametrize(
    ("machine", "examples"), [(Families, 250), (FamiliesOnRocks, 25)], ids=["memory", "rocks"]
)
def test_families_behave_like_a_dict(machine: type[Families], examples: int) -> None:
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=60,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


@pytest.mark.parametrize(
    ("codec", "keys"),
    [
        (U64, [0, 1, 255, 256, 2**63, 2**64 - 1]),
        (U64_U64, [(0, 0), (0, 1), (1, 0), (256, 3)]),
        (U64_U8_U64, [(0, 1, 5), (0, 2, 0), (1, 0, 0), (2**40, 4, 7)]),
        (TEXT, ["", "a", "ab", "b", "ä"]),
        (U64_TEXT, [(0, "b"), (1, ""), (1, "a"), (256, "a")]),
        (TEXT_U32_U64, [("a", 0, 1), ("a", 1, 0), ("ab", 0, 0), ("b", 0, 0)]),
    ],
    ids=["U64", "U64_U64", "U64_U8_U64", "TEXT", "U64_TEXT", "TEXT_U32_U64"],
)
def test_the_bytes_of_keys_are_in_the_order_of_the_keys(codec: Any, keys: list[Any]) -> None:
    pack = codec.packer(b"abc")
    packed = [pack(key) for key in keys]
    assert packed == sorted(packed)
    assert [codec.unpack(raw) for raw in packed] == keys


TEXTS = ["", " ", "A", "a", "a ", "aa", "ä", "a\u0308", "\U0001f600"]
NUMBERS = [0, 1, 255, 256, 2**31, 2**32 - 1]
MORE = [*NUMBERS, 2**32, 2**63, 2**64 - 1]


@pytest.mark.parametrize(
    ("codec", "parts"),
    [
        (U64, [MORE]),
        (U64_U64, [MORE, MORE]),
        (U64_U8_U64, [MORE, [0, 1, 255], MORE]),
        (TEXT, [TEXTS]),
        (U64_TEXT, [MORE, TEXTS]),
        (TEXT_U32_U64, [TEXTS, NUMBERS, MORE]),
    ],
    ids=["U64", "U64_U64", "U64_U8_U64", "TEXT", "U64_TEXT", "TEXT_U32_U64"],
)
def test_no_two_keys_have_the_same_bytes(codec: Any, parts: list[list[Any]]) -> None:
    """In memory they are two rows, so they must be two in the store, in the same order."""
    keys = sorted(product(*parts)) if len(parts) > 1 else parts[0]
    pack = codec.packer(b"abc")
    packed = [pack(key) for key in keys]
    assert len(set(packed)) == len(keys)
    if codec is TEXT:
        keys = sorted(keys)
    assert [codec.unpack(raw) for raw in sorted(packed)] == keys


def test_partitions_of_one_store_do_not_see_each_other() -> None:
    store = MemoryStore()
    states = [PartitionState(store, partition) for partition in (1, 2, 256)]
    families = [state.family(1, U64, int) for state in states]
    for number, (state, family) in enumerate(zip(states, families, strict=True)):
        family.put(number, number)
        state.commit()
        Writing(store, [(state, Progress())]).finish()
    assert [list(family.scan()) for family in families] == [[(0, 0)], [(1, 1)], [(2, 2)]]
    assert [len(state.dump()) for state in states] == [1, 1, 1]


def test_uncommitted_changes_never_reach_the_store() -> None:
    state = PartitionState(MemoryStore(), 1)
    state.family(1, U64, int).put(1, 1)
    with pytest.raises(AssertionError, match="only committed changes"):
        Writing(state.store, [(state, Progress())])


def test_a_row_that_was_born_and_died_in_between_never_reaches_the_store() -> None:
    state = PartitionState(MemoryStore(), 1)
    family = state.family(1, U64, int)
    family.insert(1, 1)
    state.commit()
    family.delete(1)
    state.commit()
    assert state.changed_rows() == 0


def test_rows_that_wait_are_told_without_counting_and_never_too_few_or_many_too_many() -> None:
    state = PartitionState(MemoryStore(), 1)
    family = state.family(1, U64, int)
    told: list[int] = []
    for number in range(1_000):
        family.insert(number, number)
        if number % 3:
            family.delete(number)
        state.commit()
        told.append(state.changed_rows_at_most() - len(list(family.scan())))
    assert min(told) >= 0, "rows were missed"
    assert 1 < max(told) <= families_module._UNCOUNTED_MAX, "it counts never, or always"
    for number in range(5_000, 6_000):
        family.insert(number, number)
    state.undo_log.clear()
    state.replayed()
    assert state.changed_rows_at_most() == state.changed_rows()
    Writing(state.store, [(state, Progress())])
    assert state.changed_rows_at_most() == 0


def test_a_row_that_was_read_is_kept_over_writes_until_it_changes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store = MemoryStore()
    state = PartitionState(store, 1)
    family = state.family(1, U64, int)
    family.insert(1, 10)
    family.insert(2, 20)

    def write() -> None:
        state.commit()
        Writing(store, [(state, Progress())]).finish()

    write()
    write()  # from now on only the store has them
    assert family.get_many([1, 2]) == [10, 20]
    read: list[bytes] = []
    get = store.get
    monkeypatch.setattr(store, "get", lambda raw: read.append(raw) or get(raw))
    write()
    assert [family.get(1), family.get(2), *family.get_many([1, 2])] == [10, 20, 10, 20]
    assert read == [], "a write does not make it forget what it read"
    family.put(1, 11)
    family.delete(2)
    write()
    write()
    assert [family.get(1), family.get(2)] == [11, None]
    assert len(read) == 2


def test_rows_that_were_read_are_kept_up_to_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(family_module, "_READ_ROWS_MAX", 3)
    store = MemoryStore()
    state = PartitionState(store, 1)
    family = state.family(1, U64, int)
    for number in range(9):
        family.insert(number, number)
    for _ in range(2):
        state.commit()
        Writing(store, [(state, Progress())]).finish()
    assert family.get_many(list(range(9))) == [family.get(n) for n in range(9)] == list(range(9))
    assert len(family._read) == 3


def test_a_deleted_row_that_comes_back_by_undo_is_scanned_again() -> None:
    state = PartitionState(MemoryStore(), 1)
    family = state.family(1, U64, int)
    family.put(1, 10)
    family.put(2, 20)
    state.commit()
    family.delete(1)
    assert list(family.scan()) == [(2, 20)], "the first scan: from now on there is an order"
    state.undo_to(0)
    assert list(family.scan()) == [(1, 10), (2, 20)]
    assert family.first_keys((), None, 9) == [1, 2]
    family.delete(2)
    state.commit()
    family.put(2, 21)
    assert list(family.scan()) == [(1, 10), (2, 21)]
    state.undo_to(0)
    assert list(family.scan()) == [(1, 10)]


def test_the_next_keys_of_the_store_are_known_until_it_is_written() -> None:
    store = _Looked()
    state = PartitionState(store, 1)
    family = state.family(1, U64, int)
    for number in range(1, 13):
        family.insert(number, number)
    state.commit()
    Writing(store, [(state, Progress())]).finish()
    assert family.first_keys((), 3, 1) == [3]
    looks = store.looks
    assert [family.first_keys((), start, 1) for start in (3, 4, 5)] == [[3], [4], [5]]
    family.delete(4)
    assert family.first_keys((), 4, 1) == [5]
    assert store.looks == looks, "the keys behind the first were known"
    assert family.first_keys((), 1, 2) == [1, 2], "what comes before them was not known"
    for number in range(3, 9):
        family.delete(number)
    assert family.first_keys((), 3, 2) == [9, 10], "none of those that were known is there"
    family.insert(4, 40)
    state.commit()
    assert family.first_keys((), 3, 2) == [4, 9]
    Writing(store, [(state, Progress())]).finish()
    assert family.first_keys((), 3, 2) == [4, 9]
    assert family.first_keys((), 9, 9) == family.first_keys((), 9, 9) == [9, 10, 11, 12]


class _Looked(MemoryStore):
    """Counts how often somebody looks for first keys."""

    looks = 0

    def first_keys(self, start: bytes, end: bytes, limit: int) -> list[bytes]:
        self.looks += 1
        return super().first_keys(start, end, limit)
