"""What of the topics somebody needs, so that retention does not drop it."""

from collections.abc import Iterable


def first_needed(done: Iterable[int], next_offset: int, too_old: int) -> int:
    """The first package that is kept, whatever its age.

    `done` are the offsets that subscribers are done with. Nobody holds what stands before
    `too_old`: one that is stuck must not fill the disk.

    >>> first_needed([70, 20], next_offset=100, too_old=0), first_needed([], 100, too_old=0)
    (21, 100)
    >>> first_needed([20], next_offset=100, too_old=60)
    60
    """
    slowest = min((offset + 1 for offset in done), default=next_offset)
    return min(max(slowest, too_old), next_offset)
