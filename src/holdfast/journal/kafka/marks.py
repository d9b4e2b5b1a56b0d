"""The mark that each record carries as its key: by it every reader judges the record alike.

All that is appended to a partition together is a flight: so many records in a row. A record tells
its flight, and its place in it:

    plain      may begin anywhere; `where` is a number that no other flight has
    expected   counts only if it begins at the offset `where`
    barrier    a record of its own, which begins `epoch`; readers never see it

A flight that does not begin where it was expected, or of which a record is missing, is void: it was
written behind somebody who has taken the partition, or by somebody who died. Nothing has to be
taken back, for the order of the log itself says so to everybody.
"""

import struct
from typing import NamedTuple

_LAYOUT = struct.Struct(">BIQII")
MARK_BYTES = _LAYOUT.size

PLAIN, EXPECTED, BARRIER = 1, 2, 3  # on the log: never changed


class Mark(NamedTuple):
    """What a record says of itself."""

    kind: int
    epoch: int  # in which the flight was written; 0: in none
    where: int
    place: int  # of the record in its flight, from 0 on
    records: int  # of the flight


class Raw(NamedTuple):
    """A record as the broker hands it out."""

    offset: int
    timestamp_ms: int
    key: bytes | None
    payload: bytes


pack = _LAYOUT.pack


def unpack(key: bytes | None) -> Mark | None:
    """The mark of a record; None if it is not one of ours."""
    if key is None or len(key) != MARK_BYTES:
        return None
    mark = Mark._make(_LAYOUT.unpack(key))
    is_sound = PLAIN <= mark.kind <= BARRIER and mark.place < mark.records
    return mark if is_sound else None


def stands(mark: Mark, offset: int) -> bool:
    """Whether a record is at its place, as far as it can tell by itself."""
    return mark.kind == PLAIN or (mark.kind == EXPECTED and offset - mark.place == mark.where)
