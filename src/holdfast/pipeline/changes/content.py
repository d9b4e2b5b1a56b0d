"""What the messages of content distribution add to the tables."""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from holdfast.content.messages import (
    Discovery,
    ImportOutcome,
    PackageAction,
    decode_announcement,
    decode_package,
    decode_status,
)
from holdfast.content.topics import ContentTopic
from holdfast.journal import Entry
from holdfast.pipeline.changes.rows import Row, Rows
from holdfast.pipeline.schema import (
    CONTENT_DELIVERIES,
    CONTENT_PACKAGES,
    CONTENT_SUBSCRIBERS,
    QUARANTINE,
)

_encode = msgspec.json.Encoder().encode


def fold_content(topic: ContentTopic, entries: Sequence[Entry], rows: Rows) -> None:
    """Takes messages of a topic into the rows; what is no message goes into quarantine."""
    add = _ADDERS[topic]
    for entry in entries:
        try:
            add(rows, entry)
        except (msgspec.MsgspecError, ValueError) as error:
            rows.history[QUARANTINE.name].append(
                {
                    "position": entry.offset,
                    "partition_id": rows.partition,
                    "bytes": entry.payload,
                    "error": f"no message of {topic.topic}: {error}",
                    "timestamp": entry.timestamp_ms,
                }
            )


def _package(rows: Rows, entry: Entry) -> None:
    package = decode_package(entry.payload)
    rows.history[CONTENT_PACKAGES.name].append(
        {
            "position": entry.offset,
            "publisher": package.publisher,
            "number": package.number,
            "package_id": package.package_id,
            "action": PackageAction(package.action).name,
            "paths": _encode(package.paths).decode(),
            "deep_paths": _encode(package.deep_paths).decode(),
            "size_bytes": package.size_bytes,
            "binaries": len(package.binaries),
            "blob": package.blob,
            "user": package.user,
            "metadata": _encode(package.metadata).decode(),
            "published": entry.timestamp_ms,
        }
    )


def _delivery(rows: Rows, entry: Entry) -> None:
    status = decode_status(entry.payload)
    rows.history[CONTENT_DELIVERIES.name].append(
        {
            "position": entry.offset,
            "subscriber": status.subscriber,
            "publisher": status.publisher,
            "package_position": status.offset,
            "number": status.number,
            "package_id": status.package_id,
            "outcome": ImportOutcome(status.outcome).name,
            "reason": status.reason or None,
            "attempts": status.attempts,
            "ended": status.at_ms or entry.timestamp_ms,
        }
    )


def _subscriber(rows: Rows, entry: Entry) -> None:
    heard = decode_announcement(entry.payload)
    if isinstance(heard, Discovery):  # what was remembered was heard before
        rows.history[CONTENT_SUBSCRIBERS.name] += _standings(heard, entry)


def _standings(heard: Discovery, entry: Entry) -> list[Row]:
    """A row for each publisher that the subscriber takes packages of."""
    same: dict[str, Any] = {
        "position": entry.offset,
        "subscriber": heard.subscriber,
        "editable": heard.editable,
        "retries_max": heard.retries_max,
        "ready": heard.ready,
        "imported": heard.imported,
        "imported_bytes": heard.imported_bytes,
        "import_ms": heard.import_ms,
        "host": heard.host or None,
        "heard": entry.timestamp_ms,
    }
    return [
        same
        | {
            "publisher": each.publisher,
            "package_position": each.offset,
            "number": each.number,
            "retries": each.retries,
            "reason": each.reason or None,
        }
        for each in heard.progress
    ]


_ADDERS: dict[ContentTopic, Callable[[Rows, Entry], None]] = {
    ContentTopic.PACKAGES: _package,
    ContentTopic.STATUSES: _delivery,
    ContentTopic.DISCOVERIES: _subscriber,
}
