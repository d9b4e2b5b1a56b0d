"""Random runs of the pure protocol: one order, whatever is lost, doubled, paused or away."""

import os

import pytest
from tests.sequence import test_small_scope as planted
from tests.sequence.random_runs import RandomRun
from tests.sequence.small_scope import Rules

RUN_TICKS = 2_000


def play(seed: int, ticks_count: int = RUN_TICKS, rules: Rules | None = None) -> RandomRun:
    run = RandomRun(seed, rules, members=3 + seed % 3)
    try:
        run.run(ticks_count)
    except AssertionError as error:
        error.add_note(
            f"to replay it:\n  HOLDFAST_SEED={seed} HOLDFAST_TICKS={ticks_count} "
            "pytest tests/sequence/test_random_runs.py -k replayed"
        )
        raise
    return run


@pytest.mark.parametrize("seed", range(4))
def test_a_random_run_keeps_the_order(seed: int) -> None:
    run = play(seed)
    assert run.cuts > RUN_TICKS / 4
    assert all(run.outcomes.values()), run.outcomes  # everything happened


def test_the_same_seed_gives_the_same_trace() -> None:
    first, second, other = (play(seed, 400) for seed in (7, 7, 8))
    assert first.trace == second.trace != other.trace


@pytest.mark.skipif("HOLDFAST_SEED" not in os.environ, reason="there is no seed to replay")
def test_a_seed_is_replayed() -> None:
    play(int(os.environ["HOLDFAST_SEED"]), int(os.environ.get("HOLDFAST_TICKS", RUN_TICKS)))


@pytest.mark.soak
@pytest.mark.timeout(3_600)
def test_a_million_ticks_keep_the_order() -> None:
    first = int.from_bytes(os.urandom(3), "big")
    print(f"seeds from {first}")
    runs = [play(first + each, 20_000) for each in range(50)]
    assert sum(run.cuts for run in runs) > 250_000


@pytest.mark.parametrize(
    ("rules", "found"),
    [
        (Rules(follows=planted._unguarded), "two cuts with the number"),
        (Rules(unknown=planted._assumed), "believes in a cut that is not"),
        (Rules(make_cut=planted._going_back), "positions go back"),
        (Rules(make_cut=planted._beyond_marks), "not acknowledged"),
        (Rules(ordered=planted._another_for_each_caller()), "two orders"),
    ],
    ids=["unguarded", "assumed", "going back", "beyond marks", "order by arrival"],
)
def test_a_planted_fault_is_found_by_chance(rules: Rules, found: str) -> None:
    with pytest.raises(AssertionError, match=found) as caught:
        for seed in range(20):
            play(seed, 1_000, rules)
    assert "to replay it" in caught.value.__notes__[0]
