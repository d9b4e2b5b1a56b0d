"""Pictures of how long things take: by process, element and job, and by partition."""

from typing import Any

from holdfast.pipeline.report.draw.style import (
    BLUE,
    GREEN,
    INK,
    LINE,
    ORANGE,
    PALE,
    SMALL_POINTS,
    SOFT,
    TEXT_POINTS,
    VERMILION,
    bare,
    head,
    lines,
    nothing,
    spans_axis,
)
from holdfast.pipeline.report.results import Rows
from holdfast.pipeline.report.words import count_text, cut, span_text

ROWS_MAX = 6  # of each group; the others are faster
PARTITIONS_MAX = 12
SLOW_FROM = 1.5  # so many times the fastest partition's, from which on it is coloured
NAME_CHARACTERS_MAX = 32
_SPANS_WORDS = "how long jobs take: half (dot), 9 of 10 (bar), 99 of 100 (tick)"
_GROUPS = {
    "process": ("processes, from start to completion", BLUE),
    "element": ("elements of processes, from start to completion", GREEN),
    "waiting": ("jobs, waiting for a worker", ORANGE),
    "running": ("jobs, running", VERMILION),
}


def draw_latency(part: Any, title: str, rows: Rows) -> None:
    """Groups of lines: a dot where the half is, a bar to 9 of 10, a thin line to the slowest."""
    shown = [row for row in rows if row["max_ms"] > 0]  # gateways and the like take no time
    if not shown:
        nothing(part, title)
        return
    head(
        part,
        title,
        "dot: half take no longer · bar: 9 of 10 · tick: 99 of 100 · thin line: the slowest",
    )
    axes = part.add_subplot()
    bare(axes, grid="x")
    ticks: dict[int, str] = {}
    place = 0
    for subject, (words, colour) in _GROUPS.items():
        group = [row for row in shown if row["subject"] == subject]
        if not group:
            continue
        more = len(group) - ROWS_MAX
        words += f"; not shown: {more} faster" if more > 0 else ""
        axes.text(
            0, place, words, transform=axes.get_yaxis_transform(), va="center", fontweight="bold",
            fontsize=TEXT_POINTS,
        )  # fmt: skip
        if place == 0:
            _beside(axes, place, "half  ·  99 of 100")
        for row in group[:ROWS_MAX]:
            place += 1
            ticks[place] = _name(row)
            _draw_span(axes, place, row, colour)
        place += 2
    spans_axis(axes, min(row["p50_ms"] for row in shown), max(row["max_ms"] for row in shown))
    axes.set_yticks(list(ticks), list(ticks.values()), color=INK)
    lines(axes, place - 1)


def _name(row: dict[str, Any]) -> str:
    names = [name for name in (row["process_id"], row["name"]) if name]
    return cut(" / ".join(names), NAME_CHARACTERS_MAX)


def _draw_span(axes: Any, place: int, row: dict[str, Any], colour: str) -> None:
    p50, p90, p99, most = (max(row[f"{name}_ms"], 1) for name in ("p50", "p90", "p99", "max"))
    axes.hlines(place, p50, most, color=PALE, linewidth=1.2, zorder=2)
    axes.hlines(place, p50, p90, color=colour, linewidth=6, alpha=0.45, zorder=3)
    axes.plot([p99], [place], "|", color=colour, markersize=11, markeredgewidth=2, zorder=4)
    axes.plot([p50], [place], "o", color=colour, markersize=7, zorder=5)
    _beside(axes, place, f"{span_text(row['p50_ms'])}  ·  {span_text(row['p99_ms'])}")


def _beside(axes: Any, place: float, words: str) -> None:
    """Words at the right of a line."""
    axes.annotate(
        words, (1.01, place), xycoords=("axes fraction", "data"), va="center",
        fontsize=SMALL_POINTS, color=SOFT,
    )  # fmt: skip


def draw_partitions(part: Any, title: str, rows: Rows) -> None:
    """A line for each partition in three columns: records, jobs, and how long jobs took."""
    if not rows:
        nothing(part, title)
        return
    shown = rows[:PARTITIONS_MAX]
    more = len(rows) - len(shown)
    said = _gap(rows) + (f"; not shown: {more} faster" if more else "")
    head(part, title, said)
    records, jobs, spans = part.subplots(1, 3, sharey=True, width_ratios=(1, 1, 1.8))
    places = range(len(shown))
    _bars(records, "records", [row["records"] for row in shown])
    _bars(jobs, "jobs done", [row["jobs"] for row in shown])
    bare(spans, grid="x")
    spans.set_title(_SPANS_WORDS, loc="left", fontsize=TEXT_POINTS)
    timed = [row for row in shown if row["job_p50_ms"] is not None]
    for place, row in enumerate(timed):  # those without a job are the last
        is_slow = row["job_p90_ms"] >= SLOW_FROM * max(timed[-1]["job_p90_ms"], 1)
        _draw_span(spans, place, _span_of_jobs(row), VERMILION if is_slow else BLUE)
    if timed:
        low = min(row["job_p50_ms"] for row in timed)
        spans_axis(spans, low, max(row["job_p99_ms"] for row in timed))
    else:
        spans.set_xticks([])
    records.set_yticks(places, [f"partition {row['partition_id']}" for row in shown], color=INK)
    lines(records, len(shown))


def _span_of_jobs(row: dict[str, Any]) -> dict[str, Any]:
    """A partition's percentiles under the names that a span is drawn from."""
    spans = {f"p{part}_ms": row[f"job_p{part}_ms"] for part in (50, 90, 99)}
    return spans | {"max_ms": row["job_p99_ms"]}


def _gap(rows: Rows) -> str:
    """How far the slowest is from the fastest."""
    timed = [row for row in rows if row["job_p90_ms"] is not None]
    if len(timed) < 2 or not timed[-1]["job_p90_ms"]:
        return "the slowest at the top"
    times = timed[0]["job_p90_ms"] / timed[-1]["job_p90_ms"]
    return (
        f"9 of 10 jobs of partition {timed[0]['partition_id']} end within"
        f" {span_text(timed[0]['job_p90_ms'])}: {times:.1f} times what it takes the fastest"
    )


def _bars(axes: Any, words: str, values: list[int]) -> None:
    bare(axes, grid="x")
    axes.set_title(words, loc="left", fontsize=TEXT_POINTS)
    axes.barh(range(len(values)), values, height=0.62, color=LINE)
    for place, value in enumerate(values):
        axes.annotate(
            count_text(value), (0, place), xytext=(5, 0), textcoords="offset points",
            va="center", fontsize=SMALL_POINTS, color=INK,
        )  # fmt: skip
    axes.set_xticks([])
    axes.spines["bottom"].set_visible(False)
