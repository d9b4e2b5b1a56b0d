"""Journals of three to five members under every fault; each seed is a run of 100 ticks."""

import pytest
from tests.journal.cluster.checking import Violation
from tests.journal.cluster.simulating import simulate

from holdfast.journal.cluster import sending
from holdfast.journal.cluster.owner import OwnerRange
from holdfast.journal.cluster.replica import ReplicaRules

SOAK_SECONDS_MAX = 3_600


@pytest.mark.parametrize("seed", range(10))
def test_nothing_acknowledged_is_lost_whatever_happens(seed: int) -> None:
    assert simulate(seed).logs.acknowledged > 100


@pytest.mark.soak
@pytest.mark.timeout(SOAK_SECONDS_MAX)
@pytest.mark.parametrize("hundred", range(20))
def test_nothing_acknowledged_is_lost_whatever_happens_in_2000_runs(hundred: int) -> None:
    runs = [simulate(seed) for seed in range(hundred * 100, hundred * 100 + 100)]
    assert sum(each.left for each in runs) > 10, "partitions are given up now and then"


def test_the_same_seed_gives_the_same_run() -> None:
    one, other = simulate(4), simulate(4)
    assert (one.wire.crc, one.wire.sent, one.story) == (
        other.wire.crc,
        other.wire.sent,
        other.story,
    )


# --- the simulation finds what is broken ---


class EarlyOwner(OwnerRange):
    """Acknowledges after one report."""

    def __init__(self, opened) -> None:
        super().__init__(opened)
        self.quorum = 1


def test_an_acknowledgement_without_a_quorum_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sending, "OwnerRange", EarlyOwner)
    found_by_some_seed(30)


def test_reports_after_a_promise_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ReplicaRules, "is_bound", lambda self, epoch: False)
    found_by_some_seed(30)


def found_by_some_seed(seeds: int) -> None:
    for seed in range(seeds):
        try:
            simulate(seed)
        except (Violation, AssertionError):
            return
    raise AssertionError("no seed has found it")
