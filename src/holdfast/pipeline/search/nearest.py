"""Which files have the first rows of an order, by the ends of the column that it begins with.

Tables grow at one end: a search for the newest rows, or for those with the lowest keys, finds a
page in a few files, and the ends of the others tell that they have nothing to add to it.
"""

from collections.abc import Iterator, Sequence

from holdfast.pipeline.search.paging import By
from holdfast.pipeline.tables.listing import TableFile

_ROWS_AT_FIRST = 1_000_000
_GROWTH = 4  # by which more rows are looked at when they had no whole page


def in_order(files: Sequence[TableFile], by: By, *, descending: bool) -> list[TableFile] | None:
    """The files in the order of their first rows; None if that is not known."""
    if not all(_is_known(file, by) for file in files):
        return None
    return sorted(files, key=lambda file: _first(file, by, descending=descending))


def prefixes(files: Sequence[TableFile]) -> Iterator[int]:
    """How many of the first files to look at, then how many more, but not all of them."""
    rows_wanted, rows = _ROWS_AT_FIRST, 0
    for number, file in enumerate(files, 1):
        rows += file.rows
        if rows >= rows_wanted and number < len(files):
            yield number
            rows_wanted = rows * _GROWTH


def can_come_before(file: TableFile, by: By, value: int | None, *, descending: bool) -> bool:
    """Whether a file can have a row that is not behind a value of the column."""
    name = by.column.name
    ends = file.ends.get(name)
    if descending:
        has_empty = file.nulls[name] > 0
        return has_empty or (value is not None and ends is not None and ends.high >= value)
    return value is None or (ends is not None and ends.low <= value)


def _is_known(file: TableFile, by: By) -> bool:
    empty = file.nulls.get(by.column.name)
    return empty is not None and (by.column.name in file.ends or empty == file.rows)


def _first(file: TableFile, by: By, *, descending: bool) -> tuple[bool, int]:
    """Where the first row of a file is: what is empty is the highest."""
    name = by.column.name
    ends = file.ends.get(name)
    if descending:
        has_empty = file.nulls[name] > 0
        return (not has_empty, 0 if ends is None else -ends.high)
    return (ends is None, 0 if ends is None else ends.low)
