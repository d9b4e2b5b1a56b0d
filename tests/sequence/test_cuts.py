"""Cuts: made from marks, followed, encoded, and refused where the bytes are not one."""

import contextlib
import random

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.errors import DataLoss
from holdfast.limits import CUT_SHARES
from holdfast.sequence.api import Cut, CutPositions, LogKey
from holdfast.sequence.cut_codec import decode_cut, encode_cut
from holdfast.sequence.cuts import (
    START,
    follow,
    follows,
    make_cut,
    restore,
    share_of,
)

R1, R2, C1 = LogKey("records", 1), LogKey("records", 2), LogKey("content", 1)


def make(before: CutPositions, marks: dict[LogKey, int], now_ms: int = 5) -> Cut:
    return make_cut(before, marks, "a", "n", now_ms)


def test_a_cut_names_only_what_grew_in_the_order_of_keys() -> None:
    first = make(START, {R2: 3, R1: 7, C1: 0})
    assert (first.number, list(first.grown.items())) == (1, [(R1, 7), (R2, 3)])
    second = make(follow(START, first), {R1: 7, R2: 4, C1: 2})
    assert (second.number, list(second.grown.items())) == (2, [(C1, 2), (R2, 1)])


def test_positions_and_time_never_go_back() -> None:
    at = follow(START, make(START, {R1: 7, R2: 3}, now_ms=9))
    older = make(at, {R1: 5, R2: 3}, now_ms=2)
    assert not older.grown
    assert older.time_ms == 9
    assert follow(at, older).offsets == {R1: 7, R2: 3}


def test_a_cut_goes_right_behind_the_latest_or_nowhere() -> None:
    cut = make(CutPositions(4), {})
    assert [latest for latest in range(8) if follows(latest, cut)] == [4]


def history(count: int) -> tuple[list[Cut], list[CutPositions]]:
    """Cuts in which 200 logs grow now and then, some for the first time late; where they led."""
    dice, marks, at, cuts = random.Random(count), dict[LogKey, int](), [START], list[Cut]()
    for number in range(count):
        for _ in range(dice.randrange(9)):
            key = LogKey(dice.choice(["records", "content"]), dice.randrange(1, 2 + number))
            marks[key] = marks.get(key, 0) + dice.randrange(4)
        cuts.append(make(at[-1], marks))
        at.append(follow(at[-1], cuts[-1]))
    return cuts, at


def test_a_reader_can_begin_with_any_64_cuts_in_a_row() -> None:
    cuts, at = history(5 * CUT_SHARES)
    for first in range(len(cuts) - CUT_SHARES):
        last = first + CUT_SHARES
        assert restore(cuts[first:last]) == at[last]
        assert restore(cuts[first : last + 3 :]) == at[min(last + 3, len(cuts))]
    assert restore(cuts[1:CUT_SHARES]) is None
    assert restore([]) is None


def test_a_reader_can_begin_with_all_cuts_since_the_first() -> None:
    cuts, at = history(CUT_SHARES + 9)
    assert [restore(cuts[:number]) for number in range(1, len(at))] == at[1:]


def test_a_cut_that_contradicts_the_cuts_before_it_is_an_error() -> None:
    before = CutPositions(share_of(R1) + CUT_SHARES - 1, 0, {R1: 10})
    cut = make(before, {R1: 12})
    assert cut.positions == {R1: 12}
    with pytest.raises(DataLoss, match="restored from a backup"):
        follow(CutPositions(before.number, 0, {R1: 11}), cut)


# --- as bytes -----------------------------------------------------------------------------------

names = st.text(max_size=20)
logs = st.dictionaries(
    st.builds(LogKey, names, st.integers(0, 4_095)), st.integers(1, 2**62 - 1), max_size=60
)


@st.composite
def cuts(draw: st.DrawFn) -> Cut:
    grown, number = draw(logs), draw(st.integers(1, 2**63 - 1))
    everything = {**draw(logs), **{key: 2**62 + value for key, value in grown.items()}}
    share = {key: at for key, at in everything.items() if share_of(key) == number % CUT_SHARES}
    return Cut(number, draw(names), draw(names), draw(st.integers(0, 2**63 - 1)), grown, share)


@settings(deadline=None)
@given(cuts())
def test_a_cut_comes_back_as_it_was(cut: Cut) -> None:
    decoded = decode_cut(encode_cut(cut))
    assert decoded == cut
    assert list(decoded.grown) == sorted(cut.grown)


@settings(deadline=None)
@given(st.binary(max_size=300))
def test_bytes_of_anybody_are_a_cut_or_are_refused(data: bytes) -> None:
    for hostile in (data, b"\x01\x00" + data, b"\x01\x01" + zstandard.compress(data)):
        with contextlib.suppress(DataLoss):
            assert encode_cut(decode_cut(hostile))


@settings(deadline=None)
@given(cuts(), st.data())
def test_a_changed_cut_is_another_cut_or_is_refused(cut: Cut, data: st.DataObject) -> None:
    encoded = bytearray(encode_cut(cut))
    place = data.draw(st.integers(0, len(encoded) - 1))
    encoded[place] ^= data.draw(st.integers(1, 255))
    for hostile in (bytes(encoded), bytes(encoded[:place]), bytes(encoded) + b"\0"):
        try:
            decoded = decode_cut(hostile)
        except DataLoss:
            continue
        assert decode_cut(encode_cut(decoded)) == decoded


def test_a_small_frame_cannot_fill_the_memory() -> None:
    bomb = zstandard.compress(b"\x00" * 200_000_000)
    with pytest.raises(DataLoss, match="larger than"):
        decode_cut(b"\x01\x01" + bomb)
    sizeless = zstandard.ZstdCompressor(write_content_size=False).compress(b"\x00" * 200_000_000)
    with pytest.raises(DataLoss, match="larger than"):
        decode_cut(b"\x01\x01" + sizeless)


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"", "index out of range"),
        (b"\x01\x00\x01a\x01n\x00", "index out of range"),  # it ends before it says positions
        (b"\x00\x00\x01a\x01n\x00\x00", "whole body"),  # number 0
        (b"\x01\x00\x01a\x01n\x00\x00\x00", "whole body"),  # something behind it
        (b"\x81\x00\x00\x01a\x01n\x00\x00", "longer than it needs"),
        (b"\xff" * 9 + b"\x01", "too large"),
        (b"\x01\x00\x01a\x01n\x7f\x00", "more is announced"),
        (b"\x01\x00\x01a\x01n\x01\x01r\x01\x01\x00\x00", "has nothing"),
        (b"\x01\x00\x01a\x01n\x01\x01r\x00\x00\x00\x00", "has nothing"),
        (b"\x01\x00\x01a\x01n\x01\x01r\x01\x80\x20\x01\x00", "no partition 4096"),
        (b"\x01\x00\x01a\x01n\x02\x01r\x01\x01\x01\x01r\x01\x01\x01\x00", "not in order"),
        (b"\x01\x00\x01\xff\x01n\x00\x00", "utf-8"),
        (b"\x01\x00\x7fa", "too long"),
        # Partition 1 of the topic without a name is in share 1, and so in cut 1; 2 is not.
        (b"\x01\x00\x01a\x01n\x01\x00\x01\x01\x05\x01\x00\x01\x01\x04", "knows nothing of"),
        (b"\x01\x00\x01a\x01n\x00\x01\x00\x01\x02\x04", "knows nothing of"),
        (b"\x01\x00\x01a\x01n\x01\x00\x01\x01\x05\x00", "does not say where"),
    ],
)
def test_what_is_not_exactly_a_cut_is_refused(body: bytes, why: str) -> None:
    with pytest.raises(DataLoss, match=why):
        decode_cut(b"\x01\x00" + body)
    with pytest.raises(DataLoss, match="is this member older"):
        decode_cut(b"\x02\x00" + body)


@pytest.mark.parametrize("rate", [10, 100, 1_000, 8_000])
def test_a_cut_in_which_4096_logs_grew_takes_less_than_12_kb(rate: int) -> None:
    dice = random.Random(rate)
    before = CutPositions(
        7, 1, {LogKey("records", each): dice.randrange(10**9) for each in range(4096)}
    )
    marks = {key: offset + dice.randrange(1, 2 * rate) for key, offset in before.offsets.items()}
    cut = make_cut(before, marks, "f3a90c11d2e4", "5a" * 8, 1_800_000_000_000)
    assert len(cut.grown) == 4096
    assert len(encode_cut(cut)) <= 12_000
