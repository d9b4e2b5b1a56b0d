"""Transactions over members: all or none while partitions move and members crash.

A failure names its seed; `HOLDFAST_SEED=n` runs that one alone.
"""

import os
from collections import Counter

import pytest

from holdfast.testing.loop import run

from .transacting import transacting

SEED = os.environ.get("HOLDFAST_SEED")


def play(seeds: range) -> Counter[str]:
    happened: Counter[str] = Counter()
    for seed in [int(SEED)] if SEED else seeds:
        try:
            happened += run(transacting(seed))
        except BaseException as error:
            raise AssertionError(f"replay it with HOLDFAST_SEED={seed}") from error
    print(dict(happened))
    return happened


def test_transactions_are_whole_whatever_moves_and_crashes() -> None:
    happened = play(range(3))
    wanted = ("COMMITTED", "ABORTED", "drained", "taken", "crashed", "reset")
    assert SEED or all(happened[each] for each in wanted), happened


@pytest.mark.soak
@pytest.mark.timeout(7_200)
@pytest.mark.parametrize("batch", range(10))
def test_a_thousand_seeds_of_transactions(batch: int) -> None:
    play(range(batch * 100, batch * 100 + 100))
