"""As of when the tables are: every answer from them says this, too."""

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from holdfast.journal import Bounds
from holdfast.pipeline.lag import lag_of
from holdfast.pipeline.select.presence import present
from holdfast.pipeline.tables.progress import TableProgress


class Freshness(msgspec.Struct, frozen=True, rename="camel"):
    """How old the tables are, and whether they get any newer."""

    as_of: datetime | None  # the time of the last record in them; None: there is none yet
    records_behind: int | None  # the log; None where the log is not at hand
    seconds_behind: float | None  # from that record to now; 0 when nothing is missing
    is_pipeline_running: bool


def freshness_of(
    root: Path, progress: TableProgress, ends: Mapping[int, Bounds] | None, now_ms: int
) -> Freshness:
    """Of tables that were read as they were at some progress; `ends` is how far the log is."""
    at = datetime.fromtimestamp(progress.timestamp_ms / 1_000, UTC)
    lag = None if ends is None else lag_of(progress, ends, now_ms)
    return Freshness(
        at if progress.timestamp_ms else None,
        None if lag is None else lag.records,
        None if lag is None else lag.seconds,
        present(root) is not None,
    )


def freshness_text(freshness: Freshness) -> str:
    """In words, in the reader's time zone."""
    if freshness.as_of is None:
        return "the tables have no record yet"
    at = f"as of {freshness.as_of.astimezone():%Y-%m-%d %H:%M:%S %Z}"
    records, seconds = freshness.records_behind, freshness.seconds_behind
    if records is None or seconds is None:
        return at
    if not records:
        return f"{at}, the end of the log"
    what = "record" if records == 1 else "records"
    return f"{at}, {records:,} {what} ({seconds:.1f} s) behind the log"


def standing_still(freshness: Freshness) -> str | None:
    """What to do where the tables lack something and nobody is there to add it."""
    if freshness.is_pipeline_running or not freshness.records_behind:
        return None
    return (
        f"no pipeline runs, so the tables lack the last {freshness.records_behind:,} records;"
        " start one with holdfast pipeline run, or the node with --pipeline"
    )
