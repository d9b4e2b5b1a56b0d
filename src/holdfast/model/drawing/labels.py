"""Where names go: into boxes, under events, over gateways, along flows."""

import math
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from holdfast.model.definition import Edge, Element, ElementKind, Flow, Shape
from holdfast.model.drawing.icons import task_icon
from holdfast.model.drawing.sizes import (
    BOUNDARY_LABEL_WIDTH,
    EVENT_LABEL_WIDTH,
    FLOW_LABEL_WIDTH,
    FONT_SIZE,
    LINE_HEIGHT,
    SMALL_FONT_SIZE,
    caption,
    flow_caption,
    is_event,
    is_gateway,
    lines_height,
    text_width,
    wrap,
)

LINES_MAX = 4  # of a name in a box; with four of them the letters get smaller
ICON_FOOT = 29.0  # from the top of a task to where nothing of its icon is in the way
MARKER_HEIGHT = 20.0


class Label(NamedTuple):
    """Lines of text and the place of the first one's base."""

    lines: list[str]
    x: float
    y: float
    size: float = SMALL_FONT_SIZE
    anchor: str = "middle"
    halo: bool = True  # a white edge, where lines may pass below
    bold: bool = False

    @property
    def line_height(self) -> float:
        return self.size * LINE_HEIGHT

    def placed(self) -> list[tuple[float, str]]:
        return [(self.y + index * self.line_height, line) for index, line in enumerate(self.lines)]

    def bounds(self) -> tuple[float, float, float, float]:
        """Left, top, right and bottom of the text."""
        width = max((text_width(line, self.size) for line in self.lines), default=0.0)
        shift = {"start": 0.0, "middle": width / 2, "end": width}[self.anchor]
        bottom = self.y + (len(self.lines) - 1) * self.line_height + self.size * 0.3
        return self.x - shift, self.y - self.size, self.x - shift + width, bottom


def label_of(
    element: Element, shape: Shape, touched: set[tuple[float, float]], host: Shape | None
) -> Iterator[Label]:
    """The name of an element; `touched` are the points where flows leave and enter it."""
    if not caption(element).strip():
        return
    if is_event(element):
        yield _outside(element, shape, touched, host)
    elif is_gateway(element):
        yield _around(element, shape, touched)
    else:
        yield _inside(element, shape)


def _inside(element: Element, shape: Shape) -> Label:
    if element.kind is ElementKind.SUBPROCESS:
        lines = wrap(caption(element), shape.width - 24, FONT_SIZE, 1)
        return Label(lines, shape.x + 14, shape.y + 21, FONT_SIZE, "start", halo=False, bold=True)
    size, lines = FONT_SIZE, wrap(caption(element), shape.width - 10, FONT_SIZE, LINES_MAX)
    if len(lines) == LINES_MAX:
        size, lines = SMALL_FONT_SIZE, wrap(caption(element), shape.width - 8, SMALL_FONT_SIZE, 4)
    height = lines_height(len(lines), size)
    first = shape.y + (shape.height - height) / 2
    marked = element.loop is not None or element.kind is ElementKind.CALL
    if task_icon(element) and not marked and len(lines) > 1:  # the icon is over the first line
        first = min(max(first, shape.y + ICON_FOOT), shape.y + shape.height - height - 3)
    elif marked:  # and the marker below the last
        first = min(first, shape.y + shape.height - MARKER_HEIGHT - height)
    middle = shape.x + shape.width / 2
    return Label(lines, middle, first + size * 0.95, size, halo=False)


def _outside(
    element: Element, shape: Shape, touched: set[tuple[float, float]], host: Shape | None
) -> Label:
    """Under an event, or over it where a flow takes that place; beside the foot of a boundary."""
    middle, foot = shape.x + shape.width / 2, shape.y + shape.height
    if element.kind is ElementKind.BOUNDARY and host is not None:
        lines = wrap(caption(element), BOUNDARY_LABEL_WIDTH, SMALL_FONT_SIZE)
        if shape.y + shape.height / 2 < host.y + host.height / 2:  # it sits on the upper border
            height = lines_height(len(lines) - 1, SMALL_FONT_SIZE)
            return Label(lines, middle + 6, shape.y - 5 - height, anchor="start")
        return Label(lines, middle + 6, foot + SMALL_FONT_SIZE, anchor="start")
    lines = wrap(caption(element), EVENT_LABEL_WIDTH, SMALL_FONT_SIZE)
    if any(y >= foot - 1 for _, y in touched):
        return Label(lines, middle, shape.y - 6 - lines_height(len(lines) - 1, SMALL_FONT_SIZE))
    return Label(lines, middle, foot + SMALL_FONT_SIZE + 4)


def _around(element: Element, shape: Shape, touched: set[tuple[float, float]]) -> Label:
    """Over a gateway, under it where flows use its upper corner, or beside where they use both."""
    lines = wrap(caption(element), EVENT_LABEL_WIDTH, SMALL_FONT_SIZE)
    middle, foot = shape.x + shape.width / 2, shape.y + shape.height
    above = shape.y - 6 - lines_height(len(lines) - 1, SMALL_FONT_SIZE)
    if not any(y <= shape.y + 1 for _, y in touched):
        return Label(lines, middle, above)
    if not any(y >= foot - 1 for _, y in touched):
        return Label(lines, middle, foot + SMALL_FONT_SIZE + 3)
    return Label(lines, middle - 8, above + 8, anchor="end")


def flow_label(flow: Flow, edge: Edge, is_default: bool = False, is_shared: bool = False) -> Label:
    """Over the first level part of a flow that is long enough, near its beginning.

    A flow that shares its first part with others and then turns is named behind the turn.
    """
    clear = 16 if is_default else 6  # of the stroke across the start of a default
    lines = wrap(flow_caption(flow), FLOW_LABEL_WIDTH, SMALL_FONT_SIZE, 3)
    width = max(text_width(line, SMALL_FONT_SIZE) for line in lines)
    parts = list(pairwise(edge.points))
    if is_shared and len(parts) > 1:
        turn, end = parts[1]
        return Label(
            lines, turn[0] + 6, turn[1] + (22 if end[1] > turn[1] else -14), anchor="start"
        )
    level = [part for part in parts if abs(part[0][1] - part[1][1]) < 1]
    long = [part for part in level if abs(part[0][0] - part[1][0]) > width + 8]
    rise = 5 + lines_height(len(lines) - 1, SMALL_FONT_SIZE)
    if long:
        start, end = long[0]
        gap = clear if start == edge.points[0] else 6
        x = start[0] + (gap if end[0] > start[0] else -gap - width)
        return Label(lines, x, start[1] - rise, anchor="start")
    start, end = max(parts, key=lambda part: math.dist(*part))
    return Label(lines, start[0] + 6, (start[1] + end[1]) / 2, anchor="start")
