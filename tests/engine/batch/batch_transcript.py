"""The log of a partition in words: `> ` before what is asked, `! ` before what is refused.

Only what is about batch operations is told, and what is done with their items if that is wanted.
"""

from collections.abc import Callable
from typing import Any

from batch_cluster import BatchCluster

from holdfast.engine.partition import DISPATCH
from holdfast.records import Record, RecordKind, ValueType, counter_of, partition_of

BATCH = {
    ValueType.BATCH_OPERATION: "",
    ValueType.BATCH_OPERATION_CHUNK: "CHUNK ",
    ValueType.BATCH_OPERATION_EXECUTION: "",
}
_MARKS = {RecordKind.COMMAND: "> ", RecordKind.EVENT: "", RecordKind.REJECTION: "! "}


def name(key: int) -> str:
    """A key as partition.counter."""
    return f"{partition_of(key)}.{counter_of(key)}"


def transcript(
    cluster: BatchCluster, partition: int, *others: ValueType, about: int = 0
) -> list[str]:
    """One line a record; of one operation if it is named."""
    told = {**BATCH, **{each: f"{each.name} " for each in others}}
    return [
        _line(record, told[ValueType(record.value_type)])
        for record in cluster.nodes[partition].records()
        if record.value_type in told and (not about or _is_about(record, about))
    ]


def _is_about(record: Record, key: int) -> bool:
    return key in (record.key, getattr(record.value, "operation", 0))


def _line(record: Record, room: str) -> str:
    intent = DISPATCH.intent(record.value_type, record.intent).name
    words = [f"{_MARKS[record.kind]}{room}{intent}"]
    if record.rejection is not None:
        words.append(str(record.rejection.code))
    else:
        words += _SAID.get(type(record.value).__name__, lambda _: [])(record.value)
    return " ".join(words)


def _counts(value: Any) -> str:
    return f"{value.total}={value.completed}+{value.failed}+{value.skipped}+{value.canceled}"


def _failure(value: Any) -> list[str]:
    until = f"again in attempt {value.attempts + 1}" if value.due_ms else "for ever"
    return [value.type, *([until] if value.attempts else [])]


def _executed(value: Any) -> list[str]:
    outcomes = ("completed", "failed", "skipped", "canceled")
    return [f"{len(keys)} {outcome}" for outcome in outcomes if (keys := getattr(value, outcome))]


def _change(value: Any) -> list[str]:
    said = {"throttle": value.throttle, "priority": value.priority}
    return [f"{word}={number}" for word, number in said.items() if number is not None]


def _page(value: Any) -> list[str]:
    end = "the last" if value.is_last else f"then {value.next_cursor!r}"
    return [f"at {value.cursor!r}", end, f"by {value.page_items}"]


_SAID: dict[str, Callable[[Any], list[str]]] = {
    "BatchOperation": lambda value: [value.type],
    "Change": _change,
    "Initialization": _page,
    "InitializationFailure": _failure,
    "PartitionReport": lambda value: [
        f"of {value.partition}: {_counts(value.counts)}",
        *([value.error.type] if value.error else []),
    ],
    "OperationEnd": lambda value: [value.state, _counts(value.counts)],
    "Chunk": lambda value: [f"{value.number}: {len(value.items)} at {value.cursor!r}"],
    "Execute": lambda value: [f"{value.limit}"] if value.limit else [],
    "Executed": _executed,
}
