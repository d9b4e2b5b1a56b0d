"""The pause before a retry."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.engine.jobs.backoff import pause_ms
from holdfast.engine.jobs.values import Backoff, BackoffKind
from holdfast.limits import RETRIES_MAX, SPAN_MS_MAX
from holdfast.records import key_of


@pytest.mark.parametrize(
    ("kind", "pauses"),
    [
        (BackoffKind.FIXED, [100, 100, 100, 100, 100]),
        (BackoffKind.LINEAR, [100, 200, 300, 400, 500]),
        (BackoffKind.EXPONENTIAL, [100, 200, 400, 800, 1_000]),
    ],
)
def test_the_pause_grows_by_its_kind_up_to_its_cap(kind: BackoffKind, pauses: list[int]) -> None:
    backoff = Backoff(kind, base_ms=100, cap_ms=1_000, jitter_percent=0)
    assert [pause_ms(backoff, failures, 7) for failures in range(1, 6)] == pauses


@given(
    st.builds(
        Backoff,
        st.sampled_from(BackoffKind),
        st.integers(1, SPAN_MS_MAX),
        st.integers(1, SPAN_MS_MAX),
        st.integers(0, 100),
    ),
    st.integers(1, RETRIES_MAX + 1),
    st.integers(1, 2**50),
)
def test_the_pause_stays_within_its_jitter(backoff: Backoff, failures: int, counter: int) -> None:
    without = Backoff(backoff.kind, backoff.base_ms, backoff.cap_ms, 0)
    longest = pause_ms(without, failures, 0)
    pause = pause_ms(backoff, failures, key_of(1, counter))
    assert longest <= backoff.cap_ms
    assert longest * (100 - backoff.jitter_percent) // 100 <= pause <= longest


def test_jobs_that_fail_together_are_spread_over_the_jitter() -> None:
    backoff = Backoff(BackoffKind.FIXED, 1_000, 1_000, 50)
    pauses = sorted(pause_ms(backoff, 1, key_of(1, counter)) for counter in range(1_000))
    assert pauses[0] < 520 and pauses[-1] > 980
    gaps = [after - before for before, after in pairwise(pauses)]
    assert max(gaps) < 20, "no hole in the spread"


def test_failures_of_one_job_have_different_jitter() -> None:
    backoff = Backoff(BackoffKind.FIXED, 100_000, 100_000, 50)
    assert len({pause_ms(backoff, failures, 7) for failures in range(1, 20)}) == 19
