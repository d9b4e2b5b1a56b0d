"""Which records of the log a reader wants, so that the others are not even made into rows."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import TypeVar

import msgspec

from holdfast.errors import InvalidArgument
from holdfast.records import Record, RecordKind, ValueType

T = TypeVar("T")

OPTIONS = (
    "partition", "fromPosition", "toPosition", "kind", "valueType", "intent", "key", "since",
    "until", "behind", "upTo",
)  # fmt: skip

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_KINDS = {kind.name: (int(kind),) for kind in RecordKind}
_VALUE_TYPES = {value_type.name: (int(value_type),) for value_type in ValueType}


class Wanted(msgspec.Struct, frozen=True):
    """What a record has to be; None where it does not matter."""

    partitions: frozenset[int] | None = None
    start: int = 0  # the first position
    end: int | None = None  # the position after the last
    kinds: frozenset[int] | None = None
    value_types: frozenset[int] | None = None
    intents: frozenset[tuple[int, int]] | None = None  # with their value types
    keys: frozenset[int] | None = None
    since_ms: float | None = None
    until_ms: float | None = None  # not itself
    behind: dict[int, int] = {}  # by partition, the first position; others from the beginning
    upto: dict[int, int] | None = None  # by partition, the position after the last; others nothing

    def narrowed(self, partition: int, start: int, end: int) -> tuple[int, int] | None:
        """The part of a range that has to be read."""
        if self.partitions is not None and partition not in self.partitions:
            return None
        start = max(start, self.start, self.behind.get(partition, 0))
        end = self.ended(partition, end if self.end is None else min(end, self.end))
        return (start, end) if start < end else None

    def ended(self, partition: int, end: int) -> int:
        """Where a range ends that may be read, if everything is wanted up to some positions."""
        return end if self.upto is None else min(end, self.upto.get(partition, 0))

    def takes(self, record: Record) -> bool:
        return (
            (self.kinds is None or record.kind in self.kinds)
            and (self.value_types is None or record.value_type in self.value_types)
            and (self.intents is None or (record.value_type, record.intent) in self.intents)
            and (self.keys is None or record.key in self.keys)
            and (self.since_ms is None or record.timestamp_ms >= self.since_ms)
            and (self.until_ms is None or record.timestamp_ms < self.until_ms)
        )


def wanted_of(options: Mapping[str, str]) -> Wanted:
    """What options say; lists are separated by commas."""
    given = {name: options[name] for name in OPTIONS if options.get(name)}
    return Wanted(
        _numbers(given, "partition"),
        _number(given["fromPosition"], "fromPosition") if "fromPosition" in given else 0,
        _number(given["toPosition"], "toPosition") if "toPosition" in given else None,
        _named(given, "kind", _KINDS),
        _named(given, "valueType", _VALUE_TYPES),
        _named(given, "intent", _intents()) if "intent" in given else None,
        _numbers(given, "key"),
        _moment(given["since"], "since") if "since" in given else None,
        _moment(given["until"], "until") if "until" in given else None,
        _positions(given["behind"], "behind") if "behind" in given else {},
        _positions(given["upTo"], "upTo") if "upTo" in given else None,
    )


def _intents() -> dict[str, list[tuple[int, int]]]:
    """By name, with their value types: several of these have some of the names."""
    # Planning a query does not need the engine, unless it is told the names of intents.
    from holdfast.engine.partition import DOMAINS

    found: dict[str, list[tuple[int, int]]] = {}
    for domain in DOMAINS:
        for intent in domain.intents:
            found.setdefault(intent.name, []).append((int(domain.value_type), int(intent)))
    return found


def _parts(text: str) -> list[str]:
    return [part.strip() for part in text.split(",")]


def _number(text: str, field: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise InvalidArgument(
            f"Expected a whole number as {field}, but found {text!r}", field=field
        )
    return int(text)


def _numbers(given: Mapping[str, str], field: str) -> frozenset[int] | None:
    if field not in given:
        return None
    return frozenset(_number(part, field) for part in _parts(given[field]))


def _positions(text: str, field: str) -> dict[int, int]:
    """Positions by partition, as `1:200,2:170`."""
    pairs = [part.partition(":") for part in _parts(text)]
    return {_number(left, field): _number(right, field) for left, _, right in pairs}


def _named(
    given: Mapping[str, str], field: str, names: Mapping[str, Iterable[T]]
) -> frozenset[T] | None:
    if field not in given:
        return None
    parts = _parts(given[field])
    unknown = [part for part in parts if part not in names]
    if unknown:
        raise InvalidArgument(
            f"Expected {field} to be of {', '.join(sorted(names))}, but found {unknown[0]!r}",
            field=field,
        )
    return frozenset(number for part in parts for number in names[part])


def _moment(text: str, field: str) -> float:
    """A time as the log has it; without a time zone it is in UTC, as Spark shows it."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidArgument(
            f"Expected a time such as 2030-01-31T12:00:00Z as {field}, but found {text!r}",
            field=field,
        ) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return (moment - _EPOCH) // timedelta(microseconds=1) / 1000
