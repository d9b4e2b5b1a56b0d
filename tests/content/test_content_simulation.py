"""Publishers, a node and subscribers with crashes, losses, pauses, joins, clears and retries.

A failure names its seed; `HOLDFAST_SEED=n` runs that one alone.
"""

import os
from collections import Counter

import pytest
from content_simulated import story

from holdfast.testing.loop import run

SEED = os.environ.get("HOLDFAST_SEED")
HAPPENINGS = (
    "imported", "crashed", "crashed in a commit", "node crashed", "joined", "clear", "remove",
    "retried", "dropped",
)  # fmt: skip


def play(seeds: range) -> None:
    happened: Counter[str] = Counter()
    for seed in [int(SEED)] if SEED else seeds:
        try:
            happened += run(story(seed))
        except BaseException as error:
            raise AssertionError(f"replay it with HOLDFAST_SEED={seed}") from error
    print(dict(happened))
    assert SEED or all(happened[each] for each in HAPPENINGS)


def test_every_store_is_a_prefix_of_the_log_whatever_happens() -> None:
    play(range(20))


@pytest.mark.soak
@pytest.mark.timeout(7_200)
@pytest.mark.parametrize("batch", range(20))
def test_two_thousand_seeds_of_trouble(batch: int) -> None:
    play(range(batch * 100, batch * 100 + 100))
