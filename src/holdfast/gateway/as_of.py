"""As of when an answer is that was read from the tables: noted by who reads, told by who sends."""

from contextvars import ContextVar
from datetime import datetime

import msgspec


class AsOf(msgspec.Struct, frozen=True):
    """Where the tables stood when they were asked."""

    time: datetime  # of the last record in them
    records_behind: int  # the log has so many more


_noted: ContextVar[AsOf | None] = ContextVar("tables_as_of", default=None)


def note_as_of(as_of: AsOf | None) -> None:
    """The request that is served now is answered from tables; None where nothing is known."""
    _noted.set(as_of)


def noted_as_of() -> AsOf | None:
    """Of the request that is served now; None if it asked no tables."""
    return _noted.get()
