"""The tables' logs: which files belong to them. The only module that imports deltalake."""

import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Schema, Transaction
from deltalake.exceptions import TableNotFoundError
from deltalake.transaction import AddAction, RemoveAction

from holdfast.pipeline.schema import Table
from holdfast.pipeline.tables.arrow import schema_of
from holdfast.pipeline.tables.files import Part, WrittenFile, part_of
from holdfast.pipeline.tables.listing import TableFile, files_of

APPLICATION = "holdfast"  # whose micro-batches the transactions are

_CONFIGURATION = {
    "delta.logRetentionDuration": "interval 1 hours",
    "delta.deletedFileRetentionDuration": "interval 1 hours",
    # A commit replays those since the last checkpoint: with 50 it takes twice as long as with 20.
    # With 10 it is no better where the table has replaced ten thousand files within the hour.
    "delta.checkpointInterval": "20",
}
_refreshing = ThreadPoolExecutor(2, "delta")


class DeltaLog:
    """One table's log.

    After a commit what is known of the table is refreshed, which takes as long as the commit. That
    is done in the background: whatever needs it waits.
    """

    def __init__(self, root: Path, table: Table) -> None:
        self.table = table
        self._refresh: Future[None] | None = None
        folder = root / table.name
        try:
            self._opened = DeltaTable(str(folder))
        except TableNotFoundError:
            folder.mkdir(parents=True, exist_ok=True)
            self._opened = DeltaTable.create(
                str(folder), schema_of(table), name=table.name, description=table.about,
                configuration=_CONFIGURATION,
            )  # fmt: skip
        self._add_columns()
        version = self._delta.transaction_version(APPLICATION)
        self._last_batch = -1 if version is None else version
        self._commits = folder / "_delta_log"
        self.version = self._delta.version()

    @property
    def _delta(self) -> DeltaTable:
        """What is known of the table, as of its last commit."""
        if self._refresh is not None:
            self._refresh.result()
            self._refresh = None
        return self._opened

    def _add_columns(self) -> None:
        """A table that an earlier version made gets the columns that came since, empty."""
        known = {field.name for field in self._delta.schema().fields}
        wanted = schema_of(self.table)
        new = [field for field in wanted if field.name not in known]
        if new:
            fields = Schema.from_arrow(pa.schema(new)).fields
            self._delta.alter.add_columns(fields)

    def parts(self) -> list[Part]:
        """The files that the table consists of now."""
        actions = self._delta.get_add_actions()
        return [part_of(path) for path in actions.column("path").to_pylist()]

    def rows_by_part(self) -> dict[Part, int]:
        """The files with the number of their rows."""
        actions = self._delta.get_add_actions()
        paths, rows = actions.column("path").to_pylist(), actions.column("num_records").to_pylist()
        return {part_of(path): count for path, count in zip(paths, rows, strict=True)}

    def tidy(self, keep_hours: int) -> int:
        """Removes files that no version of the last hours has; returns how many."""
        self._delta.create_checkpoint()
        self._delta.cleanup_metadata()
        removed = self._delta.vacuum(keep_hours, dry_run=False, enforce_retention_duration=False)
        self.version = self._delta.version()  # what was removed is in the table's log, too
        return len(removed)

    def last_batch(self) -> int:
        """The last micro-batch that is in the table; -1 for none."""
        return self._last_batch

    def commit(
        self, files: Sequence[WrittenFile], batch: int | None, *, changes: bool = True
    ) -> None:
        """Adds files, and takes away those that they replace, in one transaction.

        With the number of a micro-batch, which is then in the table for good: the same one again
        changes nothing.
        """
        now_ms = int(time.time() * 1000)
        actions: list[AddAction | RemoveAction] = [
            AddAction(each.path, each.size_bytes, {}, now_ms, changes, each.stats) for each in files
        ]
        actions += [RemoveAction(path, changes, now_ms) for each in files for path in each.replaces]
        properties = CommitProperties(
            app_transactions=[] if batch is None else [Transaction(APPLICATION, batch)]
        )
        delta = self._delta
        read = delta.version()
        delta.create_write_transaction(
            actions, "append", delta.schema(), commit_properties=properties
        )
        self._refresh = _refreshing.submit(delta.update_incremental)
        # Ours is the next version, unless somebody else has changed the table, too.
        self.version = read + 1
        if (self._commits / f"{self.version + 1:020}.json").exists():
            self.version = self._delta.version()
        if batch is not None:
            self._last_batch = batch


def files_at(root: Path, table: Table, version: int) -> list[TableFile]:
    """The files that a table consisted of at a version, for readers such as Spark and DuckDB."""
    folder = root / table.name
    delta = DeltaTable(str(folder), version=version)
    return files_of(folder, table, pa.table(delta.get_add_actions(flatten=True)))
