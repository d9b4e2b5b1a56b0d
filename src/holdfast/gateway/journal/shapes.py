"""The shapes of the API about the log itself."""

from datetime import datetime
from enum import StrEnum
from typing import Any

import msgspec

from holdfast.gateway.numbers import Limit, Partition, Position, ReadBytes, TimestampMs
from holdfast.gateway.shapes import Question, Shape
from holdfast.limits import READ_BYTES_MAX


class PartitionBounds(Shape, frozen=True):
    """The positions of a partition that can be read: earliest <= position < next."""

    partition_id: int
    earliest: int
    next: int


class JournalBounds(Shape, frozen=True):
    """What can be read of the log now, by partition."""

    partitions: list[PartitionBounds]


class JournalSince(Question, frozen=True):
    """Since when."""

    since_ms: TimestampMs  # since the epoch


class JournalQuery(Question, frozen=True):
    """Which part of the log to read."""

    partition: Partition
    position: Position
    bytes_max: ReadBytes = READ_BYTES_MAX  # about so much, but one entry at least


# --- records ----------------------------------------------------------------------------------


class RecordType(StrEnum):
    """What a record is."""

    COMMAND = "COMMAND"  # asks for something
    EVENT = "EVENT"  # something happened
    REJECTION = "REJECTION"  # a command was refused


class RecordEnd(StrEnum):
    """At which end of the log a list of records begins."""

    NEWEST = "NEWEST"
    OLDEST = "OLDEST"


class RecordFilter(Question, frozen=True, kw_only=True):
    """Which records to list: those that match every given field."""

    partition: Partition | None = None
    type: RecordType | None = None
    value_type: str | None = None  # such as JOB
    intent: str | None = None  # such as COMPLETED, of one value type or of all that have it
    key: str | None = None  # the record is about it, or its value names it
    source_position: Position | None = None  # of the command that led to it; needs the partition
    since_ms: TimestampMs | None = None  # records written at or after this time
    until_ms: TimestampMs | None = None  # written at or before this time


class RecordPageQuery(Question, frozen=True):
    """Which page of a list of records to return."""

    limit: Limit = 50
    start: RecordEnd = RecordEnd.NEWEST  # without a cursor
    older_than: str | None = None  # the older cursor of a page
    newer_than: str | None = None  # the newer cursor of a page


class RecordQuery(Question, frozen=True):
    """Which records to list, and which part of them."""

    filter: RecordFilter = RecordFilter()
    page: RecordPageQuery = RecordPageQuery()


class RecordRejection(Shape, frozen=True):
    """Why a command was refused."""

    code: str
    reason: str


class RecordDelivery(Shape, frozen=True):
    """How a command from another partition was delivered."""

    partition_id: int  # the one that sent it
    queue: str  # the ordered queue; "": none
    attempt: int  # 1 for the first


class RecordView(Shape, frozen=True, kw_only=True):
    """A record of the log."""

    partition_id: int
    position: int
    type: RecordType
    value_type: str
    intent: str
    key: str | None  # what it is about; None: a command that makes something new
    source_position: int | None  # of the command that led to it; None: it came from outside
    timestamp: datetime
    value: msgspec.Raw  # its fields by name
    claims: dict[str, Any] | None = None  # who asked
    rejection: RecordRejection | None = None
    delivery: RecordDelivery | None = None


class RecordPage(Shape, frozen=True):
    """Some records, the newest first.

    One request looks at a bounded part of the log: a page may be short, or empty, while there is
    more. Several partitions are in the order of their times.
    """

    items: list[RecordView]
    newer_cursor: str  # newer records are behind it, now or later
    older_cursor: str
    has_newer: bool  # there was more when the page was made
    has_older: bool
    looked_at: int  # how many records were read for it
    looked_to: datetime | None = None  # when the last of them was written


class RecordTrace(Shape, frozen=True):
    """What led to a record, and what came of it."""

    causes: list[RecordView]  # each led to the next; the record itself is the last
    effects: list[RecordView]  # of the first cause, in the order of the log; among them the others
    is_whole: bool  # the log was read to its end for them
    looked_to: int  # else up to this position
