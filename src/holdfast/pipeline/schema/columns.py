"""What a table and its columns are."""

from enum import StrEnum

import msgspec


class ColumnKind(StrEnum):
    """What a column holds."""

    LONG = "long"
    INT = "int"
    TEXT = "text"
    TIME = "time"  # a point in time, in UTC, to the millisecond
    FLAG = "flag"
    BYTES = "bytes"


class Column(msgspec.Struct, frozen=True):
    """One column of a table."""

    name: str
    kind: ColumnKind
    about: str
    is_sum: bool = False  # changes are added up; of any other column the last one counts


class Table(msgspec.Struct, frozen=True):
    """One table. Its first column says which partition a row belongs to: by key, or by log."""

    name: str
    about: str
    columns: tuple[Column, ...]
    is_history: bool = False  # rows are only ever added; otherwise there is one for each key
    key_columns: int = 1  # the first so many columns are the key

    @property
    def keys(self) -> tuple[str, ...]:
        return self.names[: self.key_columns]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    def column(self, name: str) -> Column | None:
        return next((column for column in self.columns if column.name == name), None)


def text(name: str, about: str) -> Column:
    return Column(name, ColumnKind.TEXT, about)


def long(name: str, about: str) -> Column:
    return Column(name, ColumnKind.LONG, about)


def whole(name: str, about: str, *, is_sum: bool = False) -> Column:
    return Column(name, ColumnKind.INT, about, is_sum)


def time(name: str, about: str) -> Column:
    return Column(name, ColumnKind.TIME, about)
