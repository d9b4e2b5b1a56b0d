"""What the gateway accepts: shapes become the engine's values here, or a clear error."""

from datetime import UTC, datetime
from enum import Enum
from functools import lru_cache
from typing import TypeVar

import msgspec

from holdfast.errors import InvalidArgument, NotFound
from holdfast.limits import (
    ERROR_CHARS_MAX,
    HEADERS_BYTES_MAX,
    HEADERS_MAX,
    KEY_COUNTER_BITS,
    NAME_CHARS_MAX,
    TIMESTAMP_MS_MAX,
)


def key_from(text: str, partitions: int, what: str) -> int:
    """The key in a string; NotFound where no partition of ours can have made it."""
    if len(text) <= 19 and text.isascii() and text.isdigit():
        key = int(text)
        if 1 <= key >> KEY_COUNTER_BITS <= partitions:
            return key
        raise NotFound(f"There is no {what} with key {text}", key=text)
    raise InvalidArgument(f"Expected the key of {_a(what)}, but found {text!r}")


def _a(what: str) -> str:
    return f"an {what}" if what[0] in "aeiou" else f"a {what}"


# All jobs of a report mostly have the same lease: what was looked at just now need not be again.
recent_key_from = lru_cache(maxsize=256)(key_from)


def text(value: str, what: str) -> str:
    """Any text, as against what a program may give in its place."""
    if not isinstance(value, str):
        raise InvalidArgument(f"Expected a text for {what}, but found {value!r}", field=what)
    return value


E = TypeVar("E", bound=Enum)


def kind(value: E, enum: type[E], what: str) -> E:
    """A member of an enum, or the word for it."""
    try:
        return enum(value)
    except ValueError:
        words = ", ".join(str(each.value) for each in enum)
        raise InvalidArgument(
            f"Expected one of {words} for {what}, but found {value!r}", field=what
        ) from None


def name(text: str, what: str) -> str:
    """A name that can be stored, listed and typed."""
    if not isinstance(text, str):
        raise InvalidArgument(f"Expected a {what}, but found {text!r}", field=what)
    if not text or len(text) > NAME_CHARS_MAX or not text.isprintable():
        raise InvalidArgument(
            f"Expected a {what} of 1 to {NAME_CHARS_MAX} printable characters,"
            f" but found {text[:50]!r}"
        )
    return text


def optional_name(text: str | None, what: str) -> str:
    """A name, or "" for none. An empty one is refused: its sender has lost the name."""
    return "" if text is None else name(text, what)


def key_after(text: str | None, partitions: int, what: str) -> int:
    """The key behind which a page begins; 0 for the first page."""
    return 0 if text is None else key_from(text, partitions, what)


def within(value: int, low: int, high: int, what: str) -> int:
    """A whole number inside its limits.

    A program that a node is embedded in may give anything. What is no int would be written, and
    could not be read again: True, 1.0 and numpy's integers are refused here.
    """
    if type(value) is not int:
        raise InvalidArgument(
            f"Expected a whole number for {what}, but found {value!r}", field=what
        )
    if not low <= value <= high:
        raise InvalidArgument(
            f"Expected {what} from {low} to {high}, but found {value}", field=what
        )
    return value


def headers(given: dict[str, str]) -> dict[str, str]:
    """The headers of a task or a process, within their limits."""
    if not isinstance(given, dict):
        raise InvalidArgument(f"Expected a dict of headers, but found {given!r}", field="headers")
    within(len(given), 0, HEADERS_MAX, "number of headers")
    for key, value in given.items():
        text(value, f"header {name(key, 'name of a header')!r}")
    try:
        size_bytes = headers_bytes(given)
    except UnicodeEncodeError as error:
        raise InvalidArgument(f"Expected headers in UTF-8, but {error}", field="headers") from None
    within(size_bytes, 0, HEADERS_BYTES_MAX, "bytes of headers")
    return dict(given)  # the caller may go on to change its own


def headers_bytes(given: dict[str, str]) -> int:
    """How much the names and values of headers are together."""
    return sum(len(key.encode()) + len(value.encode()) for key, value in given.items())


def shortened(error: str) -> str:
    """An error text of bearable length: its beginning and its end say most."""
    text(error, "error")
    if len(error) <= ERROR_CHARS_MAX:
        return error
    half = ERROR_CHARS_MAX // 2 - 10
    return f"{error[:half]}\n[...]\n{error[-half:]}"


def raw(json: bytes) -> msgspec.Raw:
    """JSON that goes out as it is."""
    return msgspec.Raw(json)


def moment(ms: int) -> datetime | None:
    """A stored time for people; None for 0, and for one that no date has.

    A row that an earlier version let in with such a time must not hide the others of its list.
    """
    return datetime.fromtimestamp(ms / 1000, UTC) if 0 < ms <= TIMESTAMP_MS_MAX else None
