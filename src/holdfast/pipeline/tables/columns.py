"""One column of a few thousand rows, read from the files that can have them."""

# pyarrow makes most of its functions while it is imported: a type checker does not see them.
# pyright: reportAttributeAccessIssue=false

from bisect import bisect_left, bisect_right
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from holdfast.pipeline.schema import Table
from holdfast.pipeline.tables.listing import TableFile


def column_of_keys(
    table: Table, files: list[TableFile], keys: list[int], column: str
) -> dict[int, Any]:
    """By key what a column has; `keys` are in their order."""
    name = table.keys[0]
    found: dict[int, Any] = {}
    for file in files:
        ends = file.ends.get(name)
        low = 0 if ends is None else bisect_left(keys, ends.low)
        high = len(keys) if ends is None else bisect_right(keys, ends.high)
        if low == high:
            continue
        wanted = pa.array(keys[low:high], pa.int64())
        rows = pq.read_table(file.path, columns=[name, column])
        rows = rows.filter(pc.is_in(rows.column(0), value_set=wanted))
        found.update(zip(rows.column(0).to_pylist(), rows.column(1).to_pylist(), strict=True))
    return found
