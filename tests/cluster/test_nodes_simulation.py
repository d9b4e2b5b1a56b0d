"""Whole members under every fault, with work to do; each seed is a run of 100 ticks.

Seeds run in a process of their own, in which sets have the same order every time: a seed that
fails there fails again when it is replayed.
"""

import subprocess
import sys
from pathlib import Path

import pytest
from tests.cluster.planted_nodes import PLANTED, Plant
from tests.cluster.simulating import simulate

ROOT = Path(__file__).parents[2]


def run_seeds(first: int, end: int) -> None:
    command = [sys.executable, "-m", "tests.cluster.simulating", str(first), str(end)]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_every_answer_stays_true_whatever_happens_to_the_members() -> None:
    run_seeds(0, 4)


@pytest.mark.soak
@pytest.mark.parametrize("hundred", range(20))
def test_every_answer_stays_true_in_2000_runs(hundred: int) -> None:
    run_seeds(hundred * 100, hundred * 100 + 100)


def test_the_same_seed_gives_the_same_run_of_whole_members() -> None:
    one, other = simulate(13, ticks=40), simulate(13, ticks=40)
    assert one.story == other.story
    assert one.load.answers == other.load.answers
    assert one.cluster.network.sent == other.cluster.network.sent


@pytest.mark.soak
@pytest.mark.parametrize("plant", PLANTED, ids=lambda each: each.__name__)
def test_a_planted_fault_is_found(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    with pytest.raises(AssertionError):
        for seed in range(60):
            simulate(seed)
