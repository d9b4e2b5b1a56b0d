"""What to ask a peer for: the entries that it has and this member lacks."""

from collections.abc import Iterable
from typing import NamedTuple


class MissingEntries(NamedTuple):
    """Entries in a row that are missing, both ends included."""

    first: int
    last: int


def missing(upto: int, beyond: Iterable[int], peer: int) -> list[MissingEntries]:
    """What is missing where all up to `upto` is here, and some beyond, and the peer is at `peer`.

    >>> [tuple(each) for each in missing(1, [5, 6], 8)]
    [(2, 4), (7, 8)]
    """
    found: list[MissingEntries] = []
    expected = upto + 1
    for number in sorted(set(beyond)):
        if number > peer:
            break
        if number > expected:
            found.append(MissingEntries(expected, number - 1))
        expected = max(expected, number + 1)
    if expected <= peer:
        found.append(MissingEntries(expected, peer))
    return found
