"""Back-pressure: how long publishing waits for subscribers that are behind."""

from holdfast.limits import CONTENT_BACKLOG_FREE, CONTENT_BACKLOG_FULL, CONTENT_DELAY_MS_MAX


def delay_ms(backlog: int) -> int:
    """How long a package is held back when the slowest subscriber that counts is so far behind.

    >>> [delay_ms(backlog) for backlog in (0, 1_000, 1_500, 2_000, 9_000)]
    [0, 0, 10000, 20000, 20000]
    """
    over = min(max(backlog - CONTENT_BACKLOG_FREE, 0), CONTENT_BACKLOG_FULL - CONTENT_BACKLOG_FREE)
    return over * CONTENT_DELAY_MS_MAX // (CONTENT_BACKLOG_FULL - CONTENT_BACKLOG_FREE)
