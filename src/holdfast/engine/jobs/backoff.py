"""The pause before a retry: pure arithmetic, the jitter drawn from the job's own key."""

from holdfast.engine.jobs.values import Backoff, BackoffKind

_MIX = 0x9E37_79B9_7F4A_7C15  # 2^64 / golden ratio: spreads neighbouring keys evenly
_WORD = (1 << 64) - 1


def pause_ms(backoff: Backoff, failures: int, key: int) -> int:
    """How long to wait after the n-th failure (1, 2, ...) of a job, at most `cap_ms`."""
    match backoff.kind:
        case BackoffKind.FIXED:
            pause = backoff.base_ms
        case BackoffKind.LINEAR:
            pause = backoff.base_ms * failures
        case BackoffKind.EXPONENTIAL:
            pause = backoff.base_ms << min(failures - 1, 40)  # 2^40 s is past every cap
    pause = min(pause, backoff.cap_ms)
    return pause - pause * backoff.jitter_percent * _share(key, failures) // (100 << 16)


def _share(key: int, failures: int) -> int:
    """A number from 0 to 2^16 that differs between jobs and between failures of one job."""
    mixed = ((key ^ failures << 32) * _MIX) & _WORD
    return mixed >> 48
