"""docs/reference/tables.md: every table and column, from the schemas."""

from generator import markdown
from generator.markdown import code, table
from holdfast.pipeline.schema import TABLES, ColumnKind, Table

_TYPES = {
    ColumnKind.LONG: "64-bit integer",
    ColumnKind.INT: "32-bit integer",
    ColumnKind.TEXT: "text",
    ColumnKind.TIME: "timestamp, UTC",
    ColumnKind.FLAG: "boolean",
    ColumnKind.BYTES: "binary",
}


def page() -> str:
    """The tables in the order of the schema."""
    parts = [
        "The tables that [the pipeline](../how-to/ask-your-work-log.md) keeps: Delta tables in a"
        " folder, which Spark, DuckDB, polars and pandas can read.",
        "A table with a key has one row for each key, in its latest state. A history has a row for"
        " each record and only grows. Later versions may add columns at the end; no column is"
        " removed or changes its meaning.",
    ]
    for each in TABLES.values():
        parts += _section(each)
    return markdown.page("Tables", *parts)


def _section(each: Table) -> list[str]:
    kind = "A history." if each.is_history else f"Its key is {' and '.join(map(code, each.keys))}."
    rows = [(code(column.name), _TYPES[column.kind], column.about) for column in each.columns]
    about = each.about[0].upper() + each.about[1:]
    return [f"## {each.name}", f"{about}. {kind}", table(("Column", "Type", ""), rows)]
