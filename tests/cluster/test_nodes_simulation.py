"""Whole members under every fault, with work to do; each seed is a run of 100 ticks."""

import pytest
from tests.cluster.simulating import simulate


@pytest.mark.parametrize("seed", range(4))
def test_every_answer_stays_true_whatever_happens_to_the_members(seed: int) -> None:
    assert simulate(seed).load.answers > 20


@pytest.mark.soak
@pytest.mark.parametrize("hundred", range(20))
def test_every_answer_stays_true_in_2000_runs(hundred: int) -> None:
    for seed in range(hundred * 100, hundred * 100 + 100):
        simulate(seed)


def test_the_same_seed_gives_the_same_run_of_whole_members() -> None:
    one, other = simulate(13, ticks=40), simulate(13, ticks=40)
    assert one.story == other.story
    assert one.cluster.network.crc == other.cluster.network.crc
