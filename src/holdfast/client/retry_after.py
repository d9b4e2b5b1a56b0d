"""When a server that refuses wants to be asked again: the header `Retry-After`."""

from email.utils import parsedate_to_datetime
from http import HTTPStatus

from holdfast.clock import Clock
from holdfast.errors import HoldfastError, Internal, ResourceExhausted, Unavailable
from holdfast.limits import SPAN_MS_MAX

_SECONDS_MAX = SPAN_MS_MAX // 1000
_DIGITS_MAX = 12  # more seconds than anything is kept for


def span_ms_of(header: str, clock: Clock) -> int:
    """From now, by seconds or by a date of HTTP; 0 for anything else."""
    if header.isascii() and header.isdigit():
        return min(int(header[:_DIGITS_MAX]), _SECONDS_MAX) * 1000
    try:
        moment_ms = int(parsedate_to_datetime(header).timestamp() * 1000)
    except (ValueError, OverflowError):
        return 0
    return min(max(moment_ms - clock.now_ms(), 0), SPAN_MS_MAX)


def foreign_error(status: int, message: str, retry_after_ms: int | None) -> HoldfastError:
    """The error of a server that is no node: a proxy before one, or another at its place.

    With 429 and 503 it may say when to come back: it has not passed the request on.
    """
    fields = {} if retry_after_ms is None else {"retry_after_ms": retry_after_ms}
    match status:
        case HTTPStatus.TOO_MANY_REQUESTS:
            return ResourceExhausted(message, **fields)
        case HTTPStatus.SERVICE_UNAVAILABLE:
            return Unavailable(message, **fields)
        case _:
            return Internal(message)
