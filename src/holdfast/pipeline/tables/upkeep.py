"""Keeping the tables small in files: neighbours are put together, what nobody needs is removed."""

from collections.abc import Iterable, Iterator
from itertools import groupby, pairwise
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from holdfast.pipeline.schema import Table
from holdfast.pipeline.tables.arrow import schema_of
from holdfast.pipeline.tables.files import Part, WrittenFile, write_part

ROWS_PER_FILE = 500_000  # some seconds to write anew when one of its rows changes after all
FILES_PER_RUN = 16  # of neighbours; fewer are not worth the work
HOT_PARTS = 2  # the last files of each partition, which the next changes are in, are left alone
KEEP_HOURS = 1  # for how long files stay that a reader of an earlier version may need

# Small files are put together to larger ones, those to even larger ones: so a row is written anew
# only as often as there are sizes, and most of the time little is written at once.
_SIZES = (0, 4_000, 60_000, ROWS_PER_FILE)


def compacted(root: Path, table: Table, rows: dict[Part, int]) -> list[WrittenFile]:
    """Neighbouring files put together, where there are enough of them; to be committed.

    The smallest first, and no others then: the stream waits meanwhile.
    """
    for low, high in pairwise(_SIZES):
        runs = list(runs_of(rows, table.is_history, low, high))
        if runs:
            return [_put_together(root, table, run) for run in runs]
    return []


def runs_of(rows: dict[Part, int], is_history: bool, low: int, high: int) -> Iterator[list[Part]]:
    """Neighbours of one partition that are smaller than a size, and enough of them not too small.

    Those that are too small do not count, or a large file would be written anew for each few of
    them.
    """
    ordered = sorted(rows, key=lambda part: (part.partition, part.first))
    for _, group in groupby(ordered, key=lambda part: part.partition):
        parts = list(group)
        cold = parts if is_history else parts[:-HOT_PARTS]
        for is_small, neighbours in groupby(cold, key=lambda part: rows[part] < high):
            if is_small:
                yield from _runs(neighbours, rows, low)


def _runs(parts: Iterable[Part], rows: dict[Part, int], low: int) -> Iterator[list[Part]]:
    run: list[Part] = []
    size = 0
    for part in parts:
        if run and size + rows[part] > ROWS_PER_FILE:
            if len(run) > 1:
                yield run
            run, size = [], 0
        run.append(part)
        size += rows[part]
    if sum(rows[part] >= low for part in run) >= FILES_PER_RUN:
        yield run


def _put_together(root: Path, table: Table, run: list[Part]) -> WrittenFile:
    schema = schema_of(table)
    tables = [_fitted(pq.read_table(root / table.name / part.path), schema) for part in run]
    rows = pa.concat_tables(tables).combine_chunks()
    first, last = run[0], run[-1]
    written = write_part(root, table, first.partition, first.first, last.last, rows)
    return msgspec.structs.replace(written, replaces=tuple(part.path for part in run))


def _fitted(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """A file that is older than a column has it empty."""
    for field in schema:
        if field.name not in rows.column_names:
            rows = rows.append_column(field, pa.nulls(rows.num_rows, field.type))
    return rows.select(schema.names)
