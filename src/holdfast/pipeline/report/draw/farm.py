"""The picture of content distribution: who is how far behind, and what fails."""

from typing import Any

from holdfast.pipeline.report.draw.style import (
    BLUE,
    SMALL_POINTS,
    SOFT,
    TEXT_POINTS,
    VERMILION,
    head,
    lines,
    nothing,
)
from holdfast.pipeline.report.results import Rows
from holdfast.pipeline.report.words import count_text, cut

ROWS_MAX = 8
NAME_CHARACTERS_MAX = 32
REASON_CHARACTERS_MAX = 66


def draw_content(part: Any, title: str, rows: Rows) -> None:
    """A bar for each subscriber: how many packages it has still to take."""
    shown = [row for row in rows if row["subscriber"] is not None][:ROWS_MAX]
    if not shown:
        nothing(part, title)
        return
    head(part, title, _sum(rows))
    axes = part.add_subplot()
    for place, row in enumerate(shown):
        colour = VERMILION if row["failed"] or row["retries"] else BLUE
        axes.barh(place, row["lag"] or 0, height=0.34, color=colour)
        _label(axes, place, row, colour)
    axes.axis("off")
    axes.set_xlim(0, max(max(row["lag"] or 0 for row in shown), 1) * 1.08)
    lines(axes, len(shown))


def _sum(rows: Rows) -> str:
    """The whole farm in a line."""
    known = [row for row in rows if row["subscriber"] is not None]
    behind = sum(1 for row in known if row["lag"])
    failed = sum(row["failed"] or 0 for row in known)
    more = len(known) - ROWS_MAX
    return (
        f"subscribers: {count_text(len(known))}, behind: {count_text(behind)}; packages that were"
        f" given up on: {count_text(failed)}"
        + (f"; not shown: {more} that are closer" if more > 0 else "")
    )


def _label(axes: Any, place: int, row: dict[str, Any], colour: str) -> None:
    """Who it is above the bar, with what fails; the numbers at the right."""
    name = axes.annotate(
        cut(f"{row['subscriber']} of {row['publisher']}", NAME_CHARACTERS_MAX), (0, place - 0.22),
        xytext=(0, 1), textcoords="offset points", va="bottom", fontsize=TEXT_POINTS,
        fontweight="bold",
    )  # fmt: skip
    why = row["reason"] or row["failed_reason"] or ""
    axes.annotate(
        cut(why, REASON_CHARACTERS_MAX), (1, 0), xycoords=name, xytext=(10, 0),
        textcoords="offset points", va="bottom", fontsize=SMALL_POINTS, color=SOFT,
    )  # fmt: skip
    said = f"{count_text(row['lag'] or 0)} behind"
    if row["failed"]:
        said += f"  ·  {count_text(row['failed'])} failed"
    axes.annotate(
        said, (1.01, place), xycoords=("axes fraction", "data"), va="center",
        fontsize=SMALL_POINTS, color=colour if colour == VERMILION else SOFT,
    )  # fmt: skip
