"""A picture of partitions that lose their owner: what was acknowledged, and the gaps."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from holdfast.pipeline.report.draw.style import (
    BLUE,
    SMALL_POINTS,
    SOFT,
    TEXT_POINTS,
    VERMILION,
    bare,
    head,
    new_figure,
)

_STEP_SECONDS = 0.05  # of the bars
_WIDTH, _STRIP_HEIGHT, _HEAD_HEIGHT = 11.0, 1.25, 1.1  # in inches


class LostOwner(NamedTuple):
    """A member that was killed: when, and how long its partitions acknowledged nothing."""

    member: str
    at_s: float
    again_s: Mapping[int, float]  # by partition that it owned


def draw_takeovers(
    file: Path, acknowledged: Mapping[int, Sequence[float]], lost: Sequence[LostOwner]
) -> None:
    """A strip for each partition, on one axis of time; times are seconds from the beginning."""
    partitions = sorted(acknowledged)
    figure = new_figure(_WIDTH, _HEAD_HEIGHT + _STRIP_HEIGHT * len(partitions))
    longest = max((gap for each in lost for gap in each.again_s.values()), default=0.0)
    head(
        figure, "Members of a cluster are killed",
        f"tasks acknowledged each {_STEP_SECONDS * 1_000:.0f} ms; the longest gap of a partition"
        f" was {longest * 1_000:.0f} ms",
    )  # fmt: skip
    strips = figure.subplots(len(partitions), 1, sharex=True, squeeze=False)[:, 0]
    end = max((max(each, default=0.0) for each in acknowledged.values()), default=0.0)
    edges = [step * _STEP_SECONDS for step in range(int(end / _STEP_SECONDS) + 2)]
    for axes, partition in zip(strips, partitions, strict=True):
        axes.hist(acknowledged[partition], bins=edges, color=BLUE, linewidth=0)
        bare(axes, grid="y")
        axes.set_title(
            f"partition {partition}", loc="left", fontsize=TEXT_POINTS, fontweight="bold",
            color=BLUE,
        )  # fmt: skip
        for each in lost:
            axes.axvline(each.at_s, color=SOFT, linewidth=0.8, linestyle=":")
            gap = each.again_s.get(partition)
            if gap is not None:
                axes.axvspan(each.at_s, each.at_s + gap, color=VERMILION, alpha=0.35, linewidth=0)
                axes.annotate(
                    f"kill -9 of {each.member}: {gap * 1_000:.0f} ms", (each.at_s + gap, 1.0),
                    xycoords=("data", "axes fraction"), xytext=(4, -10),
                    textcoords="offset points", fontsize=SMALL_POINTS, color=VERMILION,
                )  # fmt: skip
    strips[-1].set_xlabel("seconds", fontsize=SMALL_POINTS)
    figure.savefig(file, dpi=110)
