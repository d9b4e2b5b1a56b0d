"""What all shapes of the API have in common.

A shape goes over the wire as JSON, and in and out of a client in Python. Field names are camelCase
in JSON. Keys are strings, because they do not fit a JavaScript number. Unknown fields are refused.
"""

from enum import StrEnum

import msgspec


class Shape(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """What all shapes have in common. An answer may gain fields that an older client overlooks.

    Shapes are trees: the garbage collector, which looks for cycles, need not know of them. In a
    worker it took a tenth of the processor time.
    """


class Question(Shape, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What is sent to a node: a field that it does not know is an error, never overlooked."""


_EMPTY = msgspec.Raw(b"{}")


def no_variables() -> msgspec.Raw:
    """No variables as a default."""
    return _EMPTY


class Problem(Shape, frozen=True, omit_defaults=True):
    """An error as RFC 9457 problem JSON."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    instance: str | None = None
    retry_after_ms: int | None = None
    fields: dict[str, str | int | float | None] = {}  # further fields of the error, such as a key


class ListScope(StrEnum):
    """Which things a list has."""

    OPEN = "OPEN"  # those that have not ended
    ENDED = "ENDED"  # those that ended recently
    ALL = "ALL"  # both, the open ones first
