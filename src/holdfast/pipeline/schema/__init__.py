"""The tables: their columns, and what each means. The reference is generated from here."""

from holdfast.pipeline.schema.columns import Column, ColumnKind, Table
from holdfast.pipeline.schema.content import (
    CONTENT_DELIVERIES,
    CONTENT_PACKAGES,
    CONTENT_SUBSCRIBERS,
)
from holdfast.pipeline.schema.engine import (
    BATCH_OPERATION_ITEMS,
    BATCH_OPERATION_PARTITIONS,
    BATCH_OPERATIONS,
    DISTRIBUTIONS,
    ELEMENT_INSTANCES,
    INCIDENTS,
    JOBS,
    MESSAGES,
    PROCESS_DEFINITIONS,
    PROCESS_INSTANCES,
    QUARANTINE,
    RANGES,
    RECORDS,
    TRANSACTIONS,
    VARIABLES,
)

TABLES = {
    table.name: table
    for table in (
        RECORDS, PROCESS_DEFINITIONS, PROCESS_INSTANCES, ELEMENT_INSTANCES, JOBS, VARIABLES,
        INCIDENTS, MESSAGES, DISTRIBUTIONS, TRANSACTIONS, BATCH_OPERATIONS,
        BATCH_OPERATION_PARTITIONS, BATCH_OPERATION_ITEMS, QUARANTINE, CONTENT_PACKAGES,
        CONTENT_DELIVERIES, CONTENT_SUBSCRIBERS,
    )
}  # fmt: skip

__all__ = [
    "BATCH_OPERATIONS",
    "BATCH_OPERATION_ITEMS",
    "BATCH_OPERATION_PARTITIONS",
    "CONTENT_DELIVERIES",
    "CONTENT_PACKAGES",
    "CONTENT_SUBSCRIBERS",
    "DISTRIBUTIONS",
    "ELEMENT_INSTANCES",
    "INCIDENTS",
    "JOBS",
    "MESSAGES",
    "PROCESS_DEFINITIONS",
    "PROCESS_INSTANCES",
    "QUARANTINE",
    "RANGES",
    "RECORDS",
    "TABLES",
    "TRANSACTIONS",
    "VARIABLES",
    "Column",
    "ColumnKind",
    "Table",
]
