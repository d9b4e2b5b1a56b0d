"""Whole members under every fault, with work to do; each seed is a run of 100 ticks."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cluster.planted_nodes import PLANTED, Plant
from tests.cluster.simulating import simulate

ROOT = Path(__file__).parents[2]
SOAK_SECONDS_MAX = 3_600  # a hundred runs are three minutes of work


def run_seeds(first: int, end: int, hash_seed: int = 0) -> list[str]:
    """What the runs of these seeds say of themselves, in a process of their own."""
    command = [sys.executable, "-m", "tests.cluster.simulating", str(first), str(end)]
    env = {**os.environ, "PYTHONHASHSEED": str(hash_seed)}
    ran = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout.splitlines()


def test_every_answer_stays_true_whatever_happens_to_the_members() -> None:
    run_seeds(0, 4)


@pytest.mark.soak
@pytest.mark.timeout(SOAK_SECONDS_MAX)
@pytest.mark.parametrize("hundred", range(20))
def test_every_answer_stays_true_in_2000_runs(hundred: int) -> None:
    run_seeds(hundred * 100, hundred * 100 + 100)


def test_the_same_seed_gives_the_same_bytes_on_the_wire_in_every_process() -> None:
    after_another, alone = run_seeds(2, 4, hash_seed=1), run_seeds(3, 4, hash_seed=2)
    assert after_another[-1] == alone[-1]
    assert " trace " in alone[-1]


@pytest.mark.soak
@pytest.mark.timeout(SOAK_SECONDS_MAX)
@pytest.mark.parametrize("plant", PLANTED, ids=lambda each: each.__name__)
def test_a_planted_fault_is_found(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    with pytest.raises(AssertionError):
        for seed in range(60):
            simulate(seed)
