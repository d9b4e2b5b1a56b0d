"""How many items of a batch operation are done at once."""

import pytest

from holdfast.runtime.batch_driver import Portion

MS = 0.001


def settled(portion: Portion, item_ms: float, around_ms: float = 0.0) -> list[int]:
    """How many items the later of many portions have, if an item costs so much."""
    sizes: list[int] = []
    for _ in range(100):
        sizes.append(portion.items)
        portion.took((around_ms + portion.items * item_ms) * MS, True, 2_048)
    return sizes[50:]


@pytest.mark.parametrize("first", [1, 8, 2_048])
def test_a_portion_takes_about_as_long_as_it_may(first: int) -> None:
    sizes = settled(Portion(first, ms_max=20), item_ms=0.04)
    assert min(sizes) >= 350 and max(sizes) <= 650  # 500 are 20 ms


def test_what_a_portion_costs_besides_its_items_does_not_keep_it_at_one() -> None:
    sizes = settled(Portion(1, ms_max=1), item_ms=0.03, around_ms=0.6)
    assert min(sizes) >= 8 and max(sizes) <= 20  # 13 are 0.4 ms


def test_items_that_take_longer_than_a_portion_may_are_done_one_by_one() -> None:
    assert settled(Portion(64, ms_max=1), item_ms=5) == [1] * 50


def test_one_long_portion_does_not_undo_what_many_have_shown() -> None:
    portion = Portion(400, ms_max=20)
    portion.took(5.0, True, 2_048)
    assert portion.items == 200


def test_a_portion_that_was_not_full_says_nothing_about_larger_ones() -> None:
    portion = Portion(64, ms_max=20)
    portion.took(0.001, False, 2_048)
    assert portion.items == 64
