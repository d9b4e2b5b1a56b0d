"""The picture of incidents: which there are most of, and what became of them."""

from typing import Any

from holdfast.pipeline.report.draw.style import (
    GREEN,
    INK,
    PALE,
    SMALL_POINTS,
    SOFT,
    TEXT_POINTS,
    VERMILION,
    head,
    lines,
    nothing,
)
from holdfast.pipeline.report.results import Rows
from holdfast.pipeline.report.words import count_text, cut, span_text

ROWS_MAX = 8
NAME_CHARACTERS_MAX = 32
ERROR_CHARACTERS_MAX = 66
_STATES = (("open", "open", VERMILION), ("resolved", "resolved", GREEN),
           ("discarded", "given up", PALE))  # fmt: skip


def draw_incidents(part: Any, title: str, rows: Rows) -> None:
    """A bar for each kind of incident: how many are open, resolved and given up."""
    if not rows:
        nothing(part, title)
        return
    head(part, title, _sum(rows))
    shown = rows[:ROWS_MAX]
    axes = part.add_subplot()
    for place, row in enumerate(shown):
        start = 0
        for name, _, colour in _STATES:
            axes.barh(place, row[name], left=start, height=0.34, color=colour)
            start += row[name]
        _label(axes, place, row)
    axes.axis("off")
    axes.set_xlim(0, max(row["total"] for row in shown) * 1.08)
    lines(axes, len(shown))
    _legend(axes, rows)


def _sum(rows: Rows) -> str:
    opened = sum(row["open"] for row in rows)
    resolved = sum(row["resolved"] for row in rows)
    said = f"{count_text(opened)} open, {count_text(resolved)} resolved"
    if resolved:
        spent = sum(row["resolved"] * (row["resolve_mean_ms"] or 0) for row in rows)
        said += f" after {span_text(spent / resolved)} on average"
    more = len(rows) - ROWS_MAX
    return said + (f"; not shown: {more} more kinds" if more > 0 else "")


def _label(axes: Any, place: int, row: dict[str, Any]) -> None:
    """What happened where, above the bar; numbers behind it."""
    where = " / ".join(filter(None, (row["process_id"], row["element_id"]))) or row["type"]
    name = axes.annotate(
        cut(where or "", NAME_CHARACTERS_MAX), (0, place - 0.22), xytext=(0, 1),
        textcoords="offset points", va="bottom", fontsize=TEXT_POINTS, fontweight="bold",
    )  # fmt: skip
    reason = (row["reason"] or "").replace("_", " ").lower()
    what = ": ".join(filter(None, (reason, row["error"])))
    axes.annotate(
        cut(what, ERROR_CHARACTERS_MAX), (1, 0), xycoords=name, xytext=(10, 0),
        textcoords="offset points", va="bottom", fontsize=SMALL_POINTS, color=SOFT,
    )  # fmt: skip
    axes.annotate(
        count_text(row["total"]), (row["total"], place), xytext=(5, 0),
        textcoords="offset points", va="center", fontsize=SMALL_POINTS, color=INK,
    )  # fmt: skip
    said = f"{count_text(row['open'])} open"
    if row["resolve_mean_ms"] is not None:
        said += f"  ·  {span_text(row['resolve_mean_ms'])} to resolve"
    axes.annotate(
        said, (1.01, place), xycoords=("axes fraction", "data"), va="center",
        fontsize=SMALL_POINTS, color=VERMILION if row["open"] else SOFT,
    )  # fmt: skip


def _legend(axes: Any, rows: Rows) -> None:
    from matplotlib.patches import Patch

    handles = [
        Patch(color=colour, label=words)
        for name, words, colour in _STATES
        if any(row[name] for row in rows)
    ]
    axes.legend(
        handles=handles, loc="lower right", bbox_to_anchor=(1, 1), ncols=3, frameon=False,
        fontsize=SMALL_POINTS, labelcolor=INK, handlelength=1, handleheight=1, borderpad=0,
    )  # fmt: skip
