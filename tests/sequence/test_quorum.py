"""Quorum offsets and requests for what is missing."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.sequence.gaps import missing
from holdfast.sequence.quorum import quorum_of, quorum_offset


@pytest.mark.parametrize(
    ("reports", "expected"), [([], None), ([10], None), ([10, 2, 4], 4), ([3, 3], 3), ([0, 9], 0)]
)
def test_the_second_largest_report_is_on_two_disks(
    reports: list[int], expected: int | None
) -> None:
    assert quorum_offset(reports, 2) == expected


@settings(deadline=None)
@given(st.lists(st.integers(0, 50), max_size=7), st.integers(1, 5))
def test_a_quorum_has_all_before_the_offset_and_none_has_more(
    reports: list[int], quorum: int
) -> None:
    offset = quorum_offset(reports, quorum)
    if offset is None:
        assert len(reports) < quorum
    else:
        assert sum(report >= offset for report in reports) >= quorum
        assert sum(report >= offset + 1 for report in reports) < quorum


def test_two_majorities_always_meet() -> None:
    assert [quorum_of(count) for count in range(1, 8)] == [1, 2, 2, 3, 3, 4, 4]


def test_a_member_asks_around_what_it_holds() -> None:
    assert missing(1, [5, 6], 8) == [(2, 4), (7, 8)]
    assert missing(8, [], 8) == missing(9, [11], 8) == []
    assert missing(0, [], 3) == [(1, 3)]
    assert missing(4, [5, 6, 9], 8) == [(7, 8)]


@settings(deadline=None)
@given(st.integers(-1, 20), st.sets(st.integers(0, 30)), st.integers(-1, 30))
def test_what_is_asked_for_is_exactly_what_is_missing(
    upto: int, beyond: set[int], peer: int
) -> None:
    asked = [number for gap in missing(upto, beyond, peer) for number in range(gap[0], gap[1] + 1)]
    assert asked == [each for each in range(upto + 1, peer + 1) if each not in beyond]
