"""How far a log is on enough disks."""

from collections.abc import Iterable


def quorum_of(replicas: int) -> int:
    """How many of so many replicas are a majority."""
    return replicas // 2 + 1


def quorum_offset(reports: Iterable[int], quorum: int) -> int | None:
    """The k-th largest of what disks report: at least k of them have all before it. None: too few.

    >>> quorum_offset([], 2), quorum_offset([10], 2), quorum_offset([10, 2, 4], 2)
    (None, None, 4)
    """
    assert quorum > 0
    ranked = sorted(reports, reverse=True)
    return ranked[quorum - 1] if len(ranked) >= quorum else None
