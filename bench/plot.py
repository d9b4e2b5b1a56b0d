"""The figures as a picture: each ratio with its spread, against its goal."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.places import BUILD
from bench.table import number

# Blue and vermilion are told apart by every kind of colour vision; the markers differ as well.
MET, NOT_MET = "#0072B2", "#D55E00"
LOG_FROM = 8  # the largest ratio or goal by the smallest, from which on a linear axis hides rows


def draw(rows: Sequence[dict[str, Any]], folder: Path = BUILD) -> list[Path]:
    """Writes bench.png and bench.svg; nothing if there is no measured figure."""
    measured = [row for row in rows if row["ratio"] is not None]
    if not measured:
        return []
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib.figure import Figure
    from matplotlib.ticker import LogLocator, NullLocator

    figure = Figure(figsize=(11, 1.7 + 0.55 * len(measured)), layout="constrained")
    axes = figure.add_subplot()
    low, high = _range(measured)
    if high / low >= LOG_FROM:
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 3)))
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.xaxis.set_minor_locator(NullLocator())
        axes.set_xlim(low / 1.5, high * 1.5)
    else:
        axes.set_xlim(0, high * 1.15)
    for height, row in enumerate(measured):
        _draw_row(axes, height, row)
    axes.set_ylim(len(measured) - 0.4, -0.6)
    axes.set_yticks(
        range(len(measured)), [f"{row['figure']}\nagainst {row['against']}" for row in measured]
    )
    axes.tick_params(axis="y", length=0, labelsize=8.5)
    axes.set_xlabel("ratio of ours to the limit or peer of the same run (median, min to max)")
    axes.grid(axis="x", color="#DDDDDD", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right", "left"]].set_visible(False)
    _legend(figure)
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / "bench.png", folder / "bench.svg"]
    for path in paths:
        figure.savefig(path, dpi=150)
    return paths


def _range(rows: Sequence[dict[str, Any]]) -> tuple[float, float]:
    """The smallest and the largest number that has to be seen."""
    values = [value for row in rows for value in (*row["spread"], _goal(row))]
    return min(value for value in values if value > 0), max(values)


def _goal(row: dict[str, Any]) -> float:
    return float(row["goal"].split(" ")[1])


def _draw_row(axes: Any, height: int, row: dict[str, Any]) -> None:
    """The reachable side of the goal as a band, the goal as a bar, the ratio as a marker."""
    left, right = axes.get_xlim()
    goal = _goal(row)
    band = (goal, right) if row["goal"].startswith(">=") else (left, goal)
    axes.fill_betweenx([height - 0.3, height + 0.3], *band, color="#EEF3F7", linewidth=0, zorder=0)
    axes.vlines(goal, height - 0.3, height + 0.3, color="black", linewidth=2, zorder=2)
    colour = MET if row["met"] else NOT_MET
    axes.hlines(height, *row["spread"], color=colour, linewidth=2.5, alpha=0.6, zorder=3)
    marker = "o" if row["met"] else "X"
    axes.plot([row["ratio"]], [height], marker, color=colour, markersize=9, zorder=4)
    axes.annotate(
        f"{number(row['ratio'])}  (goal {row['goal']})",
        (1.01, height),
        xycoords=("axes fraction", "data"),
        va="center",
        fontsize=8.5,
        color=colour,
    )


def _legend(figure: Any) -> None:
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], marker="o", color=MET, linestyle="", markersize=9, label="goal met"),
        Line2D([], [], marker="X", color=NOT_MET, linestyle="", markersize=9, label="not met"),
        Line2D([], [], marker="|", color="black", linestyle="", markersize=12, mew=2, label="goal"),
    ]
    figure.legend(handles=handles, loc="outside upper center", ncols=3, frameon=False)
