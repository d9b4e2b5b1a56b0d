"""What the tables say while they fill: how many rows are in which state, and what is missing."""

from pathlib import Path

import msgspec

from holdfast.clock import SystemClock
from holdfast.pipeline.lag import lag_of
from holdfast.pipeline.log import Log
from holdfast.pipeline.report.states import States, states_in
from holdfast.pipeline.schema import (
    BATCH_OPERATION_ITEMS,
    INCIDENTS,
    JOBS,
    PROCESS_INSTANCES,
    RECORDS,
    Table,
)
from holdfast.pipeline.tables.versions import Versions

LOOKED_AT = (PROCESS_INSTANCES, JOBS, INCIDENTS, BATCH_OPERATION_ITEMS)


class TablesLook(msgspec.Struct, frozen=True):
    """One moment of the tables."""

    states: dict[str, States]  # by table
    records: int
    behind_records: int
    behind_seconds: float


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
        version = versions.get(RECORDS.name)
        files = [] if version is None else self._versions.files(RECORDS, version)
        return TablesLook(states, sum(file.rows for file in files), lag.records, lag.seconds)

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
