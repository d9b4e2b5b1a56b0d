"""The order: every entry has one sequence id, and every member derives the same."""

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.sequence.api import Cut, CutPositions, LogKey
from holdfast.sequence.cuts import START, follow, make_cut
from holdfast.sequence.order import Ordered, TotalOrder, first_id, ordered

A1, A2, B1 = LogKey("a", 1), LogKey("a", 2), LogKey("b", 1)


def cuts_of(*marks: dict[LogKey, int]) -> list[Cut]:
    at, cuts = START, []
    for each in marks:
        cuts.append(make_cut(at, each, "m", "n", 0))
        at = follow(at, cuts[-1])
    return cuts


def order_of(cuts: list[Cut], before: CutPositions = START) -> TotalOrder:
    order = TotalOrder(before)
    for cut in cuts:
        order.extend(cut)
    return order


def test_ids_go_by_cut_then_by_log_then_by_offset() -> None:
    order = order_of(cuts_of({B1: 1, A2: 2}, {A1: 1, A2: 3, B1: 2}))
    ids = [order.entry_of(each) for each in range(7)]
    assert ids == [(A2, 0), (A2, 1), (B1, 0), (A1, 0), (A2, 2), (B1, 1), None]
    assert order.entry_of(-1) is None


def test_the_first_id_of_a_cut_is_the_sum_of_all_positions_before_it() -> None:
    cuts = cuts_of({A1: 4, B1: 2}, {A1: 4, A2: 5, B1: 2})
    at = follow(START, cuts[0])
    assert first_id(at) == 6
    assert list(ordered(at, cuts[1])) == [Ordered(A2, 0, 5, 6, 2)]


@st.composite
def histories(draw: st.DrawFn) -> list[Cut]:
    marks: dict[LogKey, int] = {}
    moves = st.dictionaries(st.sampled_from([A1, A2, B1]), st.integers(0, 4))
    steps = []
    for move in draw(st.lists(moves, max_size=8)):
        marks = {key: marks.get(key, 0) + move.get(key, 0) for key in {*marks, *move}}
        steps.append(marks)
    return cuts_of(*steps)


@settings(deadline=None)
@given(histories(), st.randoms(use_true_random=False))
def test_ids_have_no_gaps_and_lead_back_to_their_entries(
    cuts: list[Cut], dice: random.Random
) -> None:
    order = order_of(cuts)
    entries = [(key, offset) for key, end in order.at.offsets.items() for offset in range(end)]
    dice.shuffle(entries)
    found = {order.id_of(*entry): entry for entry in entries}
    assert sorted(each for each in found if each is not None) == list(range(len(entries)))
    assert all(order.entry_of(number or 0) == entry for number, entry in found.items())
    for key, end in order.at.offsets.items():
        ids = [order.id_of(key, offset) or 0 for offset in range(end)]
        assert ids == sorted(ids)
        assert order.id_of(key, end) is None


@settings(deadline=None)
@given(histories(), st.integers(0, 8))
def test_who_begins_later_derives_the_same_ids(cuts: list[Cut], start: int) -> None:
    whole = order_of(cuts)
    late = order_of(cuts[start:], order_of(cuts[:start]).at)
    assert list(late.spans()) == [span for span in whole.spans() if span.cut > start]
    for span in late.spans():
        assert late.span_of(span.key, span.offset) == whole.span_of(span.key, span.offset)
        assert late.entry_of(span.id) == (span.key, span.offset)
    assert late.id_of(A1, 0) is None or late.id_of(A1, 0) == whole.id_of(A1, 0)
