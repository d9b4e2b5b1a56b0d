"""The tables' columns as Spark names them."""

from holdfast.pipeline.schema import Column, Kind

NAMES = {
    Kind.LONG: "bigint",
    Kind.INT: "int",
    Kind.TEXT: "string",
    Kind.TIME: "timestamp",
    Kind.FLAG: "boolean",
    Kind.BYTES: "binary",
}


def ddl_of(columns: tuple[Column, ...]) -> str:
    """Columns as a schema that Spark reads."""
    return ", ".join(f"`{column.name}` {NAMES[column.kind]}" for column in columns)
