"""The tables' logs: which files belong to them. The only module that imports deltalake."""

import time
from collections.abc import Sequence
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
    "delta.checkpointInterval": "50",
}


class DeltaLog:
    """One table's log."""

    def __init__(self, root: Path, table: Table) -> None:
        self.table = table
        self._root = root
        folder = root / table.name
        try:
            self._delta = DeltaTable(str(folder))
        except TableNotFoundError:
            folder.mkdir(parents=True, exist_ok=True)
            self._delta = DeltaTable.create(
                str(folder), schema_of(table), name=table.name, description=table.about,
                configuration=_CONFIGURATION,
            )  # fmt: skip
        self._add_columns()

    def _add_columns(self) -> None:
        """A table that an earlier version made gets the columns that came since, empty."""
        known = {field.name for field in self._delta.schema().fields}
        wanted = schema_of(self.table)
        new = [field for field in wanted if field.name not in known]
        if new:
            fields = Schema.from_arrow(pa.schema(new)).fields
            self._delta.alter.add_columns(fields)

    @property
    def version(self) -> int:
        return self._delta.version()

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
        return len(self._delta.vacuum(keep_hours, dry_run=False, enforce_retention_duration=False))

    def last_batch(self) -> int:
        """The last micro-batch that is in the table; -1 for none."""
        version = self._delta.transaction_version(APPLICATION)
        return -1 if version is None else version

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
        self._delta.create_write_transaction(
            actions, "append", self._delta.schema(), commit_properties=properties
        )
        self._delta.update_incremental()


def files_at(root: Path, table: Table, version: int) -> list[TableFile]:
    """The files that a table consisted of at a version, for readers such as Spark and DuckDB."""
    folder = root / table.name
    delta = DeltaTable(str(folder), version=version)
    return files_of(folder, table, pa.table(delta.get_add_actions(flatten=True)))
