"""The record: everything that is asked, everything that happened, everything that was refused."""

from enum import IntEnum
from typing import Any

import msgspec

from holdfast.errors import Code


class RecordKind(IntEnum):
    """Commands ask (imperative), events tell (past tense), rejections answer what cannot be done."""

    COMMAND = 0
    EVENT = 1
    REJECTION = 2


class Rejection(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Why a command was not done."""

    code: Code
    reason: str


class Record(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One record of a partition's log. On the wire it is an array: fields are only added at the end."""

    position: int  # its offset in the partition's log
    kind: RecordKind
    value_type: int  # a ValueType
    intent: int  # an intent of that value type
    key: int  # what the record is about; 0 for a command that makes something new
    source_position: int  # the command that led to this record; -1 for a command from outside
    timestamp_ms: int
    value: Any  # the struct that the domain's VALUES table names for this intent
    claims: dict[str, Any] | None = None  # who asks, for commands from outside
    rejection: Rejection | None = None
