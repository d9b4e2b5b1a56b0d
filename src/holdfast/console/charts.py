"""Small charts: the points of a line in a box, for an SVG that a template draws."""

from collections.abc import Sequence
from typing import NamedTuple

WIDTH, HEIGHT = 160.0, 36.0
_EDGE = 2.0  # the line is 1.5 wide and must not be cut off


class Sparkline(NamedTuple):
    """A line, the area below it, and what it is about in words."""

    line: str  # for a polyline
    area: str  # for a polygon
    low: float
    high: float


def sparkline(values: Sequence[float]) -> Sparkline | None:
    """The line of some values, from zero up; None where there are too few to draw."""
    if len(values) < 2:
        return None
    high = max(values)
    step = WIDTH / (len(values) - 1)
    scale = (HEIGHT - 2 * _EDGE) / high if high > 0 else 0.0
    points = [
        (number * step, HEIGHT - _EDGE - max(value, 0.0) * scale)
        for number, value in enumerate(values)
    ]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    area = f"0,{HEIGHT:.1f} {line} {WIDTH:.1f},{HEIGHT:.1f}"
    return Sparkline(line, area, min(values), high)
