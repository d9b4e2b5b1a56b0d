"""What the tables say while they fill: how many rows are in which state, and what is missing."""

from pathlib import Path

import msgspec

from holdfast.clock import SystemClock
from holdfast.pipeline.lag import lag_of
from holdfast.pipeline.log import Log
from holdfast.pipeline.report.states import States, states_in
from holdfast.pipeline.schema import (
    BATCH_OPERATION_ITEMS,
    CONTENT_DELIVERIES,
    CONTENT_PACKAGES,
    INCIDENTS,
    JOBS,
    PROCESS_INSTANCES,
    RECORDS,
    Table,
)
from holdfast.pipeline.tables.versions import Versions

LOOKED_AT = (PROCESS_INSTANCES, JOBS, INCIDENTS, BATCH_OPERATION_ITEMS)
COUNTED = (CONTENT_PACKAGES, CONTENT_DELIVERIES)  # have no states


class TablesLook(msgspec.Struct, frozen=True):
    """One moment of the tables."""

    states: dict[str, States]  # by table
    records: int
    behind_records: int
    behind_seconds: float
    content: dict[str, int] = {}  # rows, by table
    behind_messages: int = 0  # of content

    @property
    def is_behind(self) -> bool:
        return bool(self.behind_records or self.behind_messages)


class Looking:
    """The tables in one folder, looked at again and again: a file is read once."""

    def __init__(self, root: Path, log: Log) -> None:
        self._log = log
        self._versions = Versions(root)
        self._counted: dict[str, States] = {}  # by file, which never changes

    def look(self) -> TablesLook:
        """The tables at the versions that fit one another."""
        progress = self._versions.progress()
        lag = lag_of(progress, self._log.bounds(), SystemClock().now_ms())
        versions = progress.versions
        states = {table.name: self._states(table, versions.get(table.name)) for table in LOOKED_AT}
        content = {table.name: self._rows(table, versions.get(table.name)) for table in COUNTED}
        records = self._rows(RECORDS, versions.get(RECORDS.name))
        messages = lag_of(progress, self._log.stream_bounds(), 0).records
        return TablesLook(states, records, lag.records, lag.seconds, content, messages)

    def _rows(self, table: Table, version: int | None) -> int:
        files = [] if version is None else self._versions.files(table, version)
        return sum(file.rows for file in files)

    def _states(self, table: Table, version: int | None) -> States:
        found: States = {}
        for file in [] if version is None else self._versions.files(table, version):
            for state, count in self._states_in(file.path).items():
                found[state] = found.get(state, 0) + count
        return dict(sorted(found.items()))

    def _states_in(self, path: str) -> States:
        if path not in self._counted:
            self._counted[path] = states_in(path)
        return self._counted[path]
