"""Spans of time as people type them: 90, 90s, 1.5m, 2h, 250ms."""

import re

from holdfast.errors import InvalidArgument
from holdfast.limits import SPAN_MS_MAX

_UNITS_MS = {"": 1_000, "ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_SPAN = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d|)")

METAVAR = "SPAN"


def parse_span_ms(text: str) -> int:
    """The span in milliseconds; InvalidArgument if it is none."""
    found = _SPAN.fullmatch(text.strip())
    if found is None:
        raise InvalidArgument(
            f"Expected a span such as 250ms, 90s, 1.5m, 2h or 7d, but found {text!r}"
        )
    span_ms = float(found[1]) * _UNITS_MS[found[2]]
    if span_ms > SPAN_MS_MAX:
        raise InvalidArgument(
            f"Expected a span of at most {SPAN_MS_MAX // _UNITS_MS['d']}d, but found {text[:50]!r}"
        )
    return round(span_ms)


def maybe_span_ms(text: str | None) -> int | None:
    """Like `parse_span_ms`, for an option that was not given."""
    return None if text is None else parse_span_ms(text)
