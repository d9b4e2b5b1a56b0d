"""Pictures of what changes over time: what gets done, and what is still to do."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from holdfast.pipeline.report.draw.style import (
    BLUE,
    GREEN,
    INK,
    SMALL_POINTS,
    SOFT,
    TEXT_POINTS,
    VERMILION,
    bare,
    head,
    nothing,
    over_time,
)
from holdfast.pipeline.report.results import Rows
from holdfast.pipeline.report.throughput import peak_per_minute, shown_pieces
from holdfast.pipeline.report.words import count_text, span_text


def draw_throughput(part: Any, title: str, rows: Rows) -> None:
    """A strip for each measure, on the same axis of time; each has a scale of its own."""
    shown = shown_pieces(rows)
    if not shown:
        nothing(part, title)
        return
    step = timedelta(seconds=shown[0]["seconds"])
    times = [row["time"] for row in shown] + [shown[-1]["time"] + step]
    said = f"completed or written per minute, in steps of {span_text(step.total_seconds() * 1000)}"
    head(part, title, said)
    strips = part.subplots(3, 1, sharex=True)
    measures = (("jobs", "jobs", BLUE), ("instances", "process instances", GREEN),
                ("records", "records of the log", SOFT))  # fmt: skip
    for axes, (name, words, colour) in zip(strips, measures, strict=True):
        values = [row[f"{name}_per_minute"] for row in shown]
        total = sum(row[name] for row in rows)
        axes.stairs(values, times, fill=True, color=colour, alpha=0.25, linewidth=0)
        axes.stairs(values, times, color=colour, linewidth=1.6, baseline=None)
        _strip(axes, words, f"{count_text(total)} in all", colour)
        middles = [(time + step / 2) for time in times[:-1]]
        _mark_peak(axes, middles, values, peak_per_minute(rows, name), "/min")
    over_time(strips[-1], times)


def draw_backlog(part: Any, title: str, rows: Rows) -> None:
    """Jobs, with those that wait for a person apart, over running instances."""
    if not rows:
        nothing(part, title)
        return
    times = [row["time"] for row in rows]
    last = rows[-1]
    said = f"at the end {count_text(last['jobs'])} jobs"
    strips = [("jobs", "jobs: waiting, scheduled or active", BLUE)]
    if any(row["jobs_at_incident"] for row in rows):
        said += f", {count_text(last['jobs_at_incident'])} more at incidents,"
        strips.append(("jobs_at_incident", "jobs that wait for a person, at incidents", VERMILION))
    strips.append(("instances", "process instances that run", GREEN))
    head(part, title, f"{said} and {count_text(last['instances'])} instances")
    drawn = part.subplots(len(strips), 1, sharex=True)
    for axes, (name, words, colour) in zip(drawn, strips, strict=True):
        values = [row[name] for row in rows]
        axes.fill_between(times, values, color=colour, alpha=0.25, linewidth=0)
        axes.plot(times, values, color=colour, linewidth=1.6)
        _strip(axes, words, f"{count_text(values[-1])} at the end", colour)
        _mark_peak(axes, times, values, max(values), "")
    over_time(drawn[-1], times)


def _strip(axes: Any, words: str, beside: str, colour: str) -> None:
    """The dress of one strip: its name in its colour, a total beside it, few lines."""
    from matplotlib.ticker import MaxNLocator

    bare(axes, grid="y")
    axes.set_title(words, loc="left", fontsize=TEXT_POINTS, fontweight="bold", color=colour)
    axes.set_title(beside, loc="right", fontsize=SMALL_POINTS, color=SOFT)
    axes.yaxis.set_major_locator(MaxNLocator(3, integer=True))
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.set_ylim(bottom=0)


def _mark_peak(
    axes: Any, times: Sequence[Any], values: Sequence[float], peak: float, unit: str
) -> None:
    """The highest point with its number, on the side on which there is room."""
    if peak <= 0:
        axes.set_ylim(0, 1)
        return
    at = values.index(peak)
    axes.set_ylim(0, peak * 1.28)
    is_late = at > len(values) * 0.8
    axes.plot([times[at]], [peak], "o", color=INK, markersize=4, clip_on=False)
    axes.annotate(
        f"{count_text(peak)}{unit} at most",
        (times[at], peak),
        xytext=(-6 if is_late else 6, 3),
        textcoords="offset points",
        ha="right" if is_late else "left",
        fontsize=SMALL_POINTS,
        color=INK,
    )
