"""Three members, twelve partitions: moves, crashes in mid-move, lost connections, unknown appends.

A failure names its seed; `HOLDFAST_SEED=n` runs that one alone.
"""

import os
from collections import Counter

import pytest

from holdfast.testing.loop import run

from .simulated import story

SEED = os.environ.get("HOLDFAST_SEED")


def play(seeds: range) -> None:
    happened: Counter[str] = Counter()
    for seed in [int(SEED)] if SEED else seeds:
        try:
            happened += run(story(seed))
        except BaseException as error:
            raise AssertionError(f"replay it with HOLDFAST_SEED={seed}") from error
    print(dict(happened))
    assert SEED or all(happened[each] for each in ("drained", "taken", "crashed", "reset"))


def test_what_is_acknowledged_survives_moves_and_crashes() -> None:
    play(range(3))


@pytest.mark.soak
@pytest.mark.timeout(7_200)
@pytest.mark.parametrize("batch", range(20))
def test_two_thousand_seeds_of_moves_and_crashes(batch: int) -> None:
    play(range(batch * 100, batch * 100 + 100))
