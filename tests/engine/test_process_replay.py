"""Random processes, random stories: what is started again after every step goes on the same way."""

import os

import pytest
from random_scripts import Story

SEEDS, SOAK_SEEDS, CHUNK = 30, 1_000, 50


def check_seed(seed: int) -> None:
    """The same story twice: uninterrupted, and with a restart behind each step."""
    told = Story(seed)
    try:
        told.tell()
        again = Story(seed, restarting=True)
        again.tell()
        assert [entry.payload for entry in again.log] == [entry.payload for entry in told.log]
        assert again.dump() == told.dump()
    except BaseException:
        story = "\n".join(f"  {line}" for line in told.told[-5:])
        print(f"\nseed {seed} fails; the story ended with\n{story}\nto replay it:")
        print(f"  HOLDFAST_SEED={seed} pytest tests/engine/test_process_replay.py -k one_seed")
        raise


def chunks(seeds: int) -> list[range]:
    return [range(first, min(first + CHUNK, seeds)) for first in range(0, seeds, CHUNK)]


@pytest.mark.parametrize("seeds", chunks(SEEDS), ids=str)
def test_a_partition_that_restarts_after_every_step_writes_the_same_log(seeds: range) -> None:
    for seed in seeds:
        check_seed(seed)


@pytest.mark.soak
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("seeds", chunks(SOAK_SEEDS), ids=str)
def test_a_thousand_random_processes_write_the_same_log(seeds: range) -> None:
    for seed in seeds:
        check_seed(seed)


@pytest.mark.skipif("HOLDFAST_SEED" not in os.environ, reason="for replaying a seed that failed")
def test_one_seed_writes_the_same_log() -> None:
    check_seed(int(os.environ["HOLDFAST_SEED"]))
