"""The pages: one for each report, and one with all of them."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from holdfast.pipeline.report.draw.farm import draw_content
from holdfast.pipeline.report.draw.series import draw_backlog, draw_throughput
from holdfast.pipeline.report.draw.spans import draw_latency, draw_partitions
from holdfast.pipeline.report.draw.style import (
    BLUE,
    INK,
    SMALL_POINTS,
    SOFT,
    VERMILION,
    new_figure,
)
from holdfast.pipeline.report.draw.troubles import draw_incidents
from holdfast.pipeline.report.results import Result, Rows
from holdfast.pipeline.report.words import count_text, cut, span_text

OVERVIEW = "overview"
_DOTS_PER_INCH = 150
_PICTURES: dict[str, Callable[[Any, str, Rows], None]] = {
    "throughput": draw_throughput,
    "backlog": draw_backlog,
    "latency": draw_latency,
    "incidents": draw_incidents,
    "partitions": draw_partitions,
    "content": draw_content,
}
_SIZES = {
    "throughput": (11, 6.5),
    "backlog": (11, 6.5),
    "latency": (11, 8.5),
    "incidents": (11, 6.5),
    "partitions": (11, 5),
    "content": (11, 6),
}  # in inches
# The columns of the overview, from top to bottom, with the height that each part has of its column.
_COLUMNS = (
    {"throughput": 5, "latency": 7.5, "content": 4.2},
    {"backlog": 4.6, "incidents": 4.6, "partitions": 3.3},
)
_RARE = {"content"}  # on the page with the others only where there is something to tell
_WIDTH, _HEIGHT = 20.0, 20.0  # 1.2 inches for each unit of the tallest column
_HEAD_HEIGHT, _NUMBER_WIDTH = 1.3, 2.4
_WORDS_CHARACTERS_MAX = 26


def draw_report(result: Result, as_of: str, folder: Path, kind: str) -> Path:
    """One report as a picture of its own; `kind` is png or svg."""
    name = result.report.name
    figure = new_figure(*_SIZES[name])
    _PICTURES[name](figure, result.report.title, result.rows)
    figure.supxlabel(as_of, x=0.985, ha="right", fontsize=SMALL_POINTS, color=SOFT)
    return _save(figure, folder, name, kind)


def draw_overview(results: Sequence[Result], about: str, folder: Path, kind: str) -> Path:
    """All reports on one page, with the most important numbers at its top."""
    told = [result for result in results if result.rows or result.report.name not in _RARE]
    by_name = {result.report.name: result for result in told or results}
    columns = [
        {name: height for name, height in column.items() if name in by_name} for column in _COLUMNS
    ]
    columns = [column for column in columns if column]
    whole = max(sum(column.values()) for column in columns)
    body_height = _HEIGHT * whole / max(sum(column.values()) for column in _COLUMNS)
    figure = new_figure(_WIDTH / 2 * len(columns), _HEAD_HEIGHT + body_height)
    top, body = figure.subfigures(2, 1, height_ratios=(_HEAD_HEIGHT, body_height))
    _draw_head(top, about, _numbers({name: each.rows for name, each in by_name.items()}))
    parts = body.subfigures(1, len(columns), squeeze=False, wspace=0.03)[0]
    for part, column in zip(parts, columns, strict=True):
        cells = part.subfigures(
            len(column), 1, height_ratios=list(column.values()), squeeze=False, hspace=0.04
        )
        for cell, name in zip(cells[:, 0], column, strict=True):
            _PICTURES[name](cell, by_name[name].report.title, by_name[name].rows)
    return _save(figure, folder, OVERVIEW, kind)


def _numbers(rows: dict[str, Rows]) -> list[tuple[str, str, str]]:
    """Large numbers with what they mean and their colour."""
    numbers: list[tuple[str, str, str]] = []
    if done := rows.get("throughput"):
        numbers.append((count_text(sum(row["jobs"] for row in done)), "jobs done", BLUE))
        ended = sum(row["instances"] for row in done)
        numbers.append((count_text(ended), "instances completed", BLUE))
    if levels := rows.get("backlog"):
        numbers.append((count_text(levels[-1]["jobs"]), "jobs to do", BLUE))
    slow = [row for row in rows.get("latency", []) if row["subject"] == "process"]
    if slow:
        worst = max(slow, key=lambda row: row["p50_ms"])
        words = cut(f"median of {worst['process_id']}", _WORDS_CHARACTERS_MAX)
        numbers.append((span_text(worst["p50_ms"]), words, BLUE))
    if "incidents" in rows:
        still = sum(row["open"] for row in rows["incidents"])
        numbers.append((count_text(still), "open incidents", VERMILION if still else BLUE))
    if behind := [row["lag"] for row in rows.get("content", []) if row["lag"] is not None]:
        numbers.append((count_text(max(behind)), "packages behind at most", BLUE))
    return numbers


def _draw_head(part: Any, about: str, numbers: Sequence[tuple[str, str, str]]) -> None:
    part.text(0.01, 0.62, "holdfast", fontsize=26, fontweight="bold", color=INK, va="center")
    part.text(0.01, 0.2, about, fontsize=11, color=SOFT, va="center")
    step = _NUMBER_WIDTH / part.figure.get_figwidth()
    for place, (value, words, colour) in enumerate(reversed(numbers)):
        right = 0.985 - place * step
        part.text(
            right, 0.62, value, fontsize=24, fontweight="bold", color=colour, ha="right",
            va="center",
        )  # fmt: skip
        part.text(right, 0.2, words, fontsize=11, color=SOFT, ha="right", va="center")


def _save(figure: Any, folder: Path, name: str, kind: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.{kind}"
    figure.savefig(path, dpi=_DOTS_PER_INCH)
    return path
