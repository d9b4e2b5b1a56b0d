"""Groups in virtual time: whatever is lost, doubled, late or dead, nothing has two owners."""

import os
import time
from functools import cache

import pytest
from tests.groups.planted_groups import PLANTED, Plant
from tests.groups.simulated_groups import SMALL, SimulatedGroup, Sizes

SEEDS = range(12)
PLANTED_SEEDS = range(40)  # until the fault is found: mostly by the first ones
FULL = Sizes()


def play(seed: int, sizes: Sizes = SMALL) -> SimulatedGroup:
    group = SimulatedGroup(seed, sizes)
    try:
        group.run()
    except AssertionError as error:
        error.add_note(
            f"at {group.now:.0f} ms; to replay it:\n  HOLDFAST_SEED={seed}"
            f" HOLDFAST_SIZE={'full' if sizes is FULL else 'small'}"
            " pytest tests/groups/test_group_simulation.py -k replayed"
        )
        raise
    return group


@cache
def played(seed: int) -> SimulatedGroup:
    return play(seed)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_group_in_trouble_keeps_its_promises(seed: int) -> None:
    group = played(seed)
    assert group.checks.epochs > 1
    assert group.checks.kept == group.checks.owned


def test_all_kinds_of_trouble_happen() -> None:
    counts: dict[str, int] = {}
    verdicts: set[str] = set()
    for seed in SEEDS:
        group = played(seed)
        counts = {each: counts.get(each, 0) + count for each, count in group.counts.items()}
        verdicts |= {each.value for each in group.checks.verdicts}
    assert all(counts.values()), counts
    assert verdicts >= {"accepted", "duplicate", "gap", "stale", "rebalancing", "old generation"}


def test_the_same_seed_gives_the_same_log() -> None:
    first, second, other = played(3), play(3), played(4)
    assert first.log.messages == second.log.messages != other.log.messages


@pytest.mark.parametrize("plant", PLANTED, ids=lambda plant: plant.__name__)
def test_a_planted_fault_is_found(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    with pytest.raises((AssertionError, KeyError)):  # by a check, or by its own confusion
        for seed in PLANTED_SEEDS:
            play(seed)


@pytest.mark.skipif("HOLDFAST_SEED" not in os.environ, reason="there is no seed to replay")
def test_a_seed_is_replayed() -> None:
    sizes = FULL if os.environ.get("HOLDFAST_SIZE") == "full" else SMALL
    play(int(os.environ["HOLDFAST_SEED"]), sizes)


@pytest.mark.soak
@pytest.mark.timeout(0)
def test_two_thousand_large_groups_keep_their_promises() -> None:
    """32 members, 500 partitions, 100 joins and leaves; HOLDFAST_SEEDS=100:200 runs a piece."""
    first, _, last = os.environ.get("HOLDFAST_SEEDS", "0:2000").partition(":")
    for seed in range(int(first), int(last)):
        began = time.process_time()
        group = play(seed, FULL)
        took = time.process_time() - began
        print(
            f"seed {seed}: {group.checks.epochs} epochs, {len(group.log.messages)} messages,"
            f" survivors kept {group.checks.kept} of {group.checks.owned}, {took:.1f} s",
            flush=True,
        )
