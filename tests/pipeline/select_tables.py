"""Tables that are made by hand, as the projection makes them."""

from pathlib import Path
from typing import Any

from holdfast.pipeline.schema import INCIDENTS, PROCESS_INSTANCES, RECORDS, TABLES, VARIABLES, Table
from holdfast.pipeline.tables.delta import DeltaLog
from holdfast.pipeline.tables.files import add_history, merge_changes
from holdfast.pipeline.tables.progress import TableProgress, store_progress

BASE = 1 << 51  # the first key of a partition, times its number
SPREAD = 20_000  # between the keys of rows: a few in each bucket, which is a file
START_MS = 1_760_000_000_000

Row = dict[str, Any]


class Tables:
    """The tables in one folder, changed batch by batch."""

    def __init__(self, root: Path) -> None:
        self.root = root
        root.mkdir(parents=True, exist_ok=True)
        self._logs = {name: DeltaLog(root, table) for name, table in TABLES.items()}
        self._batch = -1
        self._positions: dict[int, int] = {}

    def put(self, table: Table, partition: int, rows: dict[Any, Row]) -> None:
        """Changes rows, or adds them; nobody sees it before `publish`."""
        log = self._logs[table.name]
        complete = {key: {"partition_id": partition} | row for key, row in rows.items()}
        if table.is_history:
            listed = [{table.keys[0]: key, **row} for key, row in complete.items()]
            files = add_history(self.root, table, partition, listed)
        else:
            parts = [part for part in log.parts() if part.partition == partition]
            files = merge_changes(self.root, table, partition, complete, parts)
        log.commit(files, None)

    def publish(self, positions: dict[int, int] | None = None) -> None:
        self._batch += 1
        self._positions |= positions or {}
        versions = {name: log.version for name, log in self._logs.items()}
        store_progress(self.root, TableProgress(self._batch, self._positions, versions, 0, 0, {}))


def instance(number: int) -> Row:
    """One of many, different from its neighbours."""
    state = ("ACTIVE", "COMPLETED", "COMPLETED", "CANCELED")[number % 4]
    ended = None if state == "ACTIVE" else START_MS + number * 1000 + 500
    return {
        "process_id": f"process-{number % 7}",
        "version": number % 3,
        "state": state,
        "started": START_MS + number * 1000,
        "ended": ended,
        "incidents": number % 2,
        "position": number,
    }


def instances(partition: int, count: int) -> dict[int, Row]:
    base = partition * BASE
    return {base + number * SPREAD: instance(number) for number in range(1, count + 1)}


def with_instances(root: Path, partitions: int = 3, count: int = 40) -> Tables:
    tables = Tables(root)
    for partition in range(1, partitions + 1):
        tables.put(PROCESS_INSTANCES, partition, instances(partition, count))
    tables.publish(dict.fromkeys(range(1, partitions + 1), count + 1))
    return tables


__all__ = [
    "BASE", "INCIDENTS", "PROCESS_INSTANCES", "RECORDS", "SPREAD", "START_MS", "VARIABLES", "Row",
    "Tables", "instance", "instances", "with_instances",
]  # fmt: skip
