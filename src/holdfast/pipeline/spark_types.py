"""The tables' columns as Spark names them."""

from holdfast.pipeline.schema import Column, ColumnKind

NAMES = {
    ColumnKind.LONG: "bigint",
    ColumnKind.INT: "int",
    ColumnKind.TEXT: "string",
    ColumnKind.TIME: "timestamp",
    ColumnKind.FLAG: "boolean",
    ColumnKind.BYTES: "binary",
}


def ddl_of(columns: tuple[Column, ...]) -> str:
    """Columns as a schema that Spark reads."""
    return ", ".join(f"`{column.name}` {NAMES[column.kind]}" for column in columns)
