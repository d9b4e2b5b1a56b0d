"""The life of one thing, as the log tells it: every record that names it, from its creation on.

The log has no index by key. It is read from the time at which the thing was made, a few megabytes
for each request, and a reader who wants more goes on from there. Records are recognised by the
bytes of the key in them, before anything is decoded.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Any, NamedTuple

import msgspec

from holdfast.engine.partition import DISPATCH, DOMAINS
from holdfast.engine.plain import as_json
from holdfast.errors import NotFound
from holdfast.gateway.rest.common import RestApi
from holdfast.limits import CONSOLE_LOG_BYTES_MAX, READ_BYTES_MAX
from holdfast.records import Record, RecordKind, ValueType, partition_of

_INTENTS = {
    (int(domain.value_type), int(intent)): intent.name
    for domain in DOMAINS
    for intent in domain.intents
}
# What is about the thing has a key of its own, which later records name instead.
_FOLLOWED = frozenset({ValueType.JOB, ValueType.INCIDENT})
_KEYS_MAX = 200


class LogEntry(NamedTuple):
    """A record of the log for people."""

    partition: int
    position: int
    time_ms: int
    kind: str
    value_type: str
    intent: str
    key: int
    source_position: int
    value: Any  # as JSON has it
    actor: str
    rejection: str


class LifePiece(NamedTuple):
    """Some of a life, and where the log goes on."""

    entries: list[LogEntry]
    keys: list[int]  # of the thing and of what was about it
    position: int | None  # to go on at; None: the log ends here


class _Raw(NamedTuple):
    position: int
    time_ms: int
    payload: bytes


_decode = msgspec.msgpack.Decoder(list[_Raw]).decode


async def life_of(
    api: RestApi, key: int, created: datetime | None, position: int | None, keys: Iterable[int]
) -> LifePiece:
    """What happened to a key, from its creation or from a position on."""
    partition = partition_of(key)
    known = dict.fromkeys((key, *keys))
    at = position
    if at is None:
        since = api.journal.bounds() if created is None else _since(api, created)
        bounds = {each.partition_id: each for each in (await since).partitions}
        at = bounds[partition].earliest
    entries: list[LogEntry] = []
    read_bytes = 0
    while read_bytes < CONSOLE_LOG_BYTES_MAX:
        try:
            piece = await api.journal.read(partition, at, READ_BYTES_MAX)
        except NotFound:  # it was cut meanwhile, or ends here
            return LifePiece(entries, list(known), None)
        found = _decode(piece)
        if not found:
            return LifePiece(entries, list(known), None)
        read_bytes += len(piece)
        entries += _about(partition, found, known)
        at = found[-1].position + 1
    return LifePiece(entries, list(known), at)


def _since(api: RestApi, created: datetime) -> Any:
    return api.journal.bounds_since(max(int(created.timestamp() * 1_000) - 1, 0))


def _about(partition: int, found: list[_Raw], known: dict[int, None]) -> Iterable[LogEntry]:
    needles = [each.to_bytes(8, "big") for each in known]
    for raw in found:
        if not any(each in raw.payload for each in needles):
            continue
        record = DISPATCH.codec.decode(raw.payload)
        is_new = record.value_type in _FOLLOWED and record.key and record.key not in known
        if is_new and len(known) < _KEYS_MAX:
            known[record.key] = None
            needles.append(record.key.to_bytes(8, "big"))
        yield entry_of(partition, record)


def entry_of(partition: int, record: Record) -> LogEntry:
    """A record as a page shows it."""
    rejection = record.rejection
    return LogEntry(
        partition, record.position, record.timestamp_ms, RecordKind(record.kind).name,
        ValueType(record.value_type).name, _INTENTS[record.value_type, record.intent], record.key,
        record.source_position, msgspec.json.decode(as_json(record.value)),
        str((record.claims or {}).get("sub", "")),
        f"{rejection.code}: {rejection.reason}" if rejection is not None else "",
    )  # fmt: skip
