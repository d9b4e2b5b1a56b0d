"""The log of a partition in words: `> ` before what is asked, `! ` before what is refused."""

from collections.abc import Callable
from typing import Any

from distribution_cluster import Cluster
from distribution_domain import NOTES, NoteIntent
from partition_driver import START_MS

from holdfast.engine.distribution.values import DistributionIntent
from holdfast.records import Record, RecordKind, counter_of, partition_of

_MARKS = {RecordKind.COMMAND: "> ", RecordKind.EVENT: "", RecordKind.REJECTION: "! "}


def name(key: int) -> str:
    """A key as partition.counter."""
    return f"{partition_of(key)}.{counter_of(key)}"


def transcript(cluster: Cluster, partition: int, *, times: bool = False) -> list[str]:
    """One line a record; with the seconds since the start if times matter."""
    lines: list[str] = []
    for record in cluster.nodes[partition].records():
        seconds = (record.timestamp_ms - START_MS) / 1_000
        lines.append((f"{seconds:g}s " if times else "") + _line(record))
    return lines


def _line(record: Record) -> str:
    is_note = record.value_type == NOTES
    intent = NoteIntent(record.intent) if is_note else DistributionIntent(record.intent)
    words = [_MARKS[record.kind] + intent.name]
    words += [name(record.key)] if record.key else []
    if record.rejection is not None:
        words.append(str(record.rejection.code))
    elif is_note:
        words.append(_note(record))
    else:
        words += _SAID[type(record.value).__name__](record.value)
    return " ".join(words)


def _note(record: Record) -> str:
    attempt = record.delivery.attempt if record.delivery is not None else 1
    again = f" (attempt {attempt})" if attempt > 1 else ""
    return f"= {record.value.number}{again}"


def _at(partitions: tuple[int, ...]) -> list[str]:
    return ["at", *map(str, partitions)] if partitions else []


def _resending(value: Any) -> list[str]:
    attempts = value.attempts or [""] * len(value.keys)
    pairs = zip(value.keys, attempts, strict=True)
    sent = [name(key) + (f" (attempt {attempt})" if attempt else "") for key, attempt in pairs]
    return [*_at((value.partition,)), *(["of", *sent] if sent else [])]


def _postponement(value: Any) -> list[str]:
    until = [f"until {(value.until_ms - START_MS) / 1_000:g}s"] if value.until_ms else []
    return [*_at((value.partition,)), "of", *map(name, value.keys), *until]


_SAID: dict[str, Callable[[Any], list[str]]] = {
    "Distribution": lambda value: [f"in {value.queue}"] * bool(value.queue) + _at(value.partitions),
    "Targets": lambda value: _at(value.partitions),
    "Resending": _resending,
    "Refusal": lambda value: [*_at((value.partition,)), f"for {value.reason!r}"],
    "Postponement": _postponement,
    "Decision": lambda value: [*_at(value.partitions), f"by {value.by}: {value.reason}"],
    "Continuation": lambda value: [f"after {value.queue}"],
    "ContinuationRef": lambda value: [f"after {value.queue}"],
    "QueueReceipt": lambda value: [f"in {value.queue}"],
}
