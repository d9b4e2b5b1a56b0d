"""The record: everything that is asked, everything that happened, everything that was refused."""

from enum import IntEnum
from typing import Any, Generic

import msgspec
from typing_extensions import TypeVar

from holdfast.errors import Code

V = TypeVar("V", default=Any)


class RecordKind(IntEnum):
    """Commands ask (imperative), events tell (past tense), rejections refuse."""

    COMMAND = 0
    EVENT = 1
    REJECTION = 2


class Value(msgspec.Struct, frozen=True, array_like=True, gc=False, tag_field="tag"):
    """What all values of records have in common.

    Each has a tag, a number that is on disk and is never changed: `class NewJob(Value, frozen=True,
    tag=1)`.
    """


class Rejection(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Why a command was not done."""

    code: Code
    reason: str


class Delivery(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """How a command came that another partition distributed."""

    queue: str = ""  # the ordered queue; "": none
    attempt: int = 1  # which sending this is: 1 for the first


class Record(msgspec.Struct, Generic[V], frozen=True, array_like=True, gc=False):
    """One record of a partition's log: an array on disk, to whose end fields may be added."""

    position: int  # its offset in the partition's log
    kind: RecordKind
    value_type: int  # a ValueType
    intent: int  # an intent of that value type
    key: int  # what the record is about; 0 for a command that makes something new
    source_position: int  # the command that led to this record; -1 for a command from outside
    timestamp_ms: int
    value: V  # the struct that the domain's VALUES table names for this intent
    claims: dict[str, Any] | None = None  # the caller's claims, for commands from outside
    rejection: Rejection | None = None
    delivery: Delivery | None = None  # for a command from another partition's distribution
