"""Refuses arguments of a wrong type where a program gives them, not where they reach the node."""

from datetime import timedelta
from math import isfinite
from typing import Any

from holdfast.errors import InvalidArgument

Span = float | timedelta  # seconds, or a timedelta
SPAN = (int, float, timedelta)
_TEXT_MAX = 80  # characters of a value that are shown


def expect(argument: str, value: Any, *kinds: type, named: str = "") -> None:
    """InvalidArgument unless the value is of one of the kinds; True and False are no numbers."""
    if isinstance(value, kinds) and not (isinstance(value, bool) and bool not in kinds):
        return
    wanted = named or " or ".join("None" if each is type(None) else each.__name__ for each in kinds)
    raise InvalidArgument(
        f"Expected {argument} to be {wanted}, but found {shown(value)} ({type(value).__name__})",
        field=argument,
    )


def span_ms(span: Span, argument: str) -> int:
    """A span in milliseconds; InvalidArgument where it is none, or negative."""
    if isinstance(span, timedelta):
        seconds = span.total_seconds()
    else:
        expect(argument, span, *SPAN, named="a number of seconds or a timedelta")
        seconds = span
    if not (isfinite(seconds) and seconds >= 0):
        raise InvalidArgument(
            f"Expected {argument} of at least 0 seconds, but found {shown(span)}", field=argument
        )
    return int(seconds * 1000)


def shown(value: Any) -> str:
    """A value in a message, cut where it is long."""
    text = repr(value)
    return text if len(text) <= _TEXT_MAX else text[:_TEXT_MAX] + "…"
