"""Which records are entries, and who has a partition: by the order of the log alone."""

from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.journal.kafka.following import Cursor
from holdfast.journal.kafka.marks import BARRIER, EXPECTED, PLAIN, Raw, pack, unpack
from holdfast.journal.kafka.sieve import Reign, Sieve, anchor, flight_start


def flight(kind: int, epoch: int, where: int, count: int, name: bytes = b"e") -> list[bytes]:
    return [pack(kind, epoch, where, place, count) + name for place in range(count)]


def log(*records: bytes) -> list[Raw]:
    """Records in a log that begins at 0; the key is what is before the payload."""
    return [
        Raw(offset, 1_000 + offset, each[:21], each[21:]) for offset, each in enumerate(records)
    ]


def entries(records: list[Raw], start: int = 0) -> list[int]:
    return [each.offset for each in Sieve(start).add(records[start:])]


def test_a_flight_counts_where_it_was_expected_and_nowhere_else() -> None:
    there = flight(EXPECTED, 1, 0, 2)
    elsewhere = flight(EXPECTED, 1, 2, 2)
    assert entries(log(*there, *elsewhere)) == [0, 1, 2, 3]
    assert entries(log(*there, b"x" * 21, *elsewhere)) == [0, 1]


def test_a_former_owners_flight_behind_a_barrier_is_void() -> None:
    barrier = pack(BARRIER, 2, 77, 0, 1)
    late, new = flight(EXPECTED, 1, 1, 2), flight(EXPECTED, 2, 4, 1)
    records = log(*flight(EXPECTED, 1, 0, 1), barrier, *late, *new)
    assert entries(records) == [0, 4]


def test_a_flight_that_is_not_whole_is_held_back_and_void_once_something_else_comes() -> None:
    begun = flight(EXPECTED, 1, 0, 3)[:2]
    sieve = Sieve(0)
    assert sieve.add(log(*begun)) == []
    assert sieve.settled == 0
    more = log(*begun, *flight(PLAIN, 0, 9, 1))[2:]
    assert [each.offset for each in sieve.add(more)] == [2]
    assert sieve.settled == 3


def test_one_that_follows_is_told_no_further_than_where_all_is_decided() -> None:
    records = log(*flight(EXPECTED, 1, 0, 1), *flight(EXPECTED, 1, 1, 3))
    cursor = Cursor(0)
    added = cursor.add(records[:3])
    assert added is not None
    assert ([each.offset for each in added[0]], added[1], cursor.next) == ([0], 1, 3)
    added = cursor.add(records[3:])
    assert added is not None
    assert ([each.offset for each in added[0]], added[1]) == ([1, 2, 3], 4)


def test_two_plain_flights_that_mix_are_both_void() -> None:
    one, two = flight(PLAIN, 0, 1, 2), flight(PLAIN, 0, 2, 2)
    assert entries(log(one[0], two[0], one[1], two[1])) == []
    assert entries(log(*one, *two)) == [0, 1, 2, 3]


def test_what_somebody_else_wrote_to_the_topic_is_not_an_entry() -> None:
    foreign = [Raw(0, 1, None, b"?"), Raw(1, 1, b"key", b"?"), Raw(2, 1, b"\x09" * 21, b"?")]
    assert Sieve(0).add(foreign) == []


def test_reading_from_the_middle_goes_back_to_where_the_flight_begins() -> None:
    records = log(*flight(PLAIN, 0, 5, 1), *flight(EXPECTED, 1, 1, 4))
    assert flight_start(records[3]) == 1
    assert flight_start(records[0]) == 0
    void = log(*flight(PLAIN, 0, 5, 1), *flight(EXPECTED, 1, 7, 2))
    assert flight_start(void[2]) == 2, "it does not stand where it was expected"


def test_the_epoch_is_that_of_the_first_barrier_that_is_newer() -> None:
    barriers = [pack(BARRIER, epoch, number, 0, 1) for number, epoch in ((1, 5), (2, 7), (3, 6))]
    reign = Reign()
    reign.add(log(*barriers, pack(BARRIER, 7, 4, 0, 1)))
    assert (reign.epoch, reign.barrier) == (7, 2), "6 came too late, and so did the second 7"


def test_a_barrier_alone_does_not_prove_its_epoch_and_an_entry_does() -> None:
    records = log(pack(BARRIER, 3, 1, 0, 1), *flight(EXPECTED, 3, 1, 1), pack(BARRIER, 2, 2, 0, 1))
    assert anchor(records) == 1
    assert anchor(records[2:]) is None


Writer = st.tuples(st.integers(1, 3), st.integers(1, 4), st.booleans())


@settings(max_examples=200, deadline=None)
@given(st.lists(Writer, max_size=30), st.data())
def test_every_reader_sees_the_same_from_any_start_and_in_pieces_of_any_size(
    writes: list[tuple[int, int, bool]], data: st.DataObject
) -> None:
    """Owners that come and go, some of whom know the end of the log and some of whom do not."""
    records: list[bytes] = []
    epoch = 0
    for count, step, knows in writes:
        if step == 4:
            epoch += 1
            records.append(pack(BARRIER, epoch, epoch, 0, 1))
            continue
        where = len(records) if knows else max(len(records) - step, 0)
        sent = flight(EXPECTED, epoch if knows else max(epoch - 1, 0), where, count)
        records += sent[: data.draw(st.integers(1, count))]  # some of them die in the middle
    whole = log(*records)
    expected = entries(whole)
    pieces = Sieve(0)
    found: list[int] = []
    rest = whole
    while rest:
        size = data.draw(st.integers(1, len(rest)))
        found += [each.offset for each in pieces.add(rest[:size])]
        rest = rest[size:]
    assert found == expected
    if whole:
        start = data.draw(st.integers(0, len(whole) - 1))
        begin = flight_start(whole[start])
        seen = [each for each in entries(whole, begin) if each >= start]
        assert seen == [each for each in expected if each >= start]


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 3), st.integers(0, 2**32 - 1), st.integers(0, 2**63), st.integers(1, 9))
def test_a_mark_comes_back_as_it_was(kind: int, epoch: int, where: int, count: int) -> None:
    assert unpack(pack(kind, epoch, where, count - 1, count)) == (
        kind, epoch, where, count - 1, count,
    )  # fmt: skip
    assert unpack(pack(kind, epoch, where, count, count)) is None
