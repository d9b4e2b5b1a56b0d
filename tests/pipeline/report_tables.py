"""Tables with rows that a test has thought up, as the pipeline would have written them."""

from pathlib import Path
from typing import Any

from holdfast.pipeline.schema import TABLES
from holdfast.pipeline.tables.arrow import rows_as_arrow
from holdfast.pipeline.tables.delta import DeltaLog
from holdfast.pipeline.tables.files import write_part
from holdfast.pipeline.tables.progress import TableProgress, store_progress

Rows = dict[str, list[dict[str, Any]]]  # by table; times in milliseconds


def write_tables(root: Path, rows: Rows) -> None:
    """Each table in one file, at a version that the progress names."""
    versions: dict[str, int] = {}
    for name, table in TABLES.items():
        log = DeltaLog(root, table)
        if rows.get(name):
            written = write_part(root, table, 1, 0, 1, rows_as_arrow(table, rows[name]))
            log.commit([written], 0)
        versions[name] = log.version
    last = max((row["timestamp"] for row in rows.get("records", ())), default=0)
    store_progress(root, TableProgress(0, {1: 1}, versions, timestamp_ms=last))
