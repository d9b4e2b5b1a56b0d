"""The rows that a fold has changed so far."""

from collections.abc import Callable
from typing import Any

import msgspec

from holdfast.pipeline.schema import TABLES, Table
from holdfast.records import Record

Row = dict[str, Any]
Key = Any  # an int, or a tuple where the key has several columns


class KnownDefinition(msgspec.Struct, frozen=True, array_like=True):
    """What has to be known of a definition to tell what happens in its instances."""

    process_id: str
    version: int
    name: str
    elements: tuple[tuple[str, str], ...]  # id and kind, by their place in the definition


class Rows:
    """What changed, by table and key; and what was added to the histories."""

    def __init__(self, partition: int, definitions: dict[int, KnownDefinition]) -> None:
        self.partition = partition
        self.definitions = definitions  # those of earlier folds; new ones are added
        self.deployed: dict[int, KnownDefinition] = {}
        self.changed: dict[str, dict[Key, Row]] = {
            table.name: {} for table in TABLES.values() if not table.is_history
        }
        self.history: dict[str, list[Row]] = {
            table.name: [] for table in TABLES.values() if table.is_history
        }
        self.ended_incidents: list[int] = []  # whose instance is in the table of incidents

    def row(self, table: Table, key: Key, record: Record) -> Row:
        """The row of a key, which this record changes."""
        rows = self.changed[table.name]
        row = rows.get(key)
        if row is None:
            row = rows[key] = {"partition_id": self.partition}
        row["position"] = record.position
        return row

    def definition(self, key: int) -> KnownDefinition:
        """A definition that an instance follows."""
        found = self.deployed.get(key) or self.definitions.get(key)
        assert found is not None, f"an instance follows definition {key}, which was never deployed"
        return found


Applier = Callable[[Rows, Record], None]
"""What an event changes in the rows."""


def add(row: Row, column: str, number: int = 1) -> None:
    """Counts a column up or down."""
    row[column] = row.get(column, 0) + number
