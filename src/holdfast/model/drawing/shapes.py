"""Shapes, flows and badges as SVG."""

import math
from typing import NamedTuple

from holdfast.model.definition import Edge, Element, ElementKind, Shape
from holdfast.model.drawing.icons import CALL_ICON, GATEWAYS, event_icon, loop_icon, task_icon
from holdfast.model.drawing.sizes import is_event, is_gateway, text_width

CORNER = 8.0  # the radius of the turns of a flow
ARROW_LENGTH, ARROW_WIDTH = 9.0, 7.0
COUNT_SHORT = 10_000  # from here on counts are shown in thousands: a badge has room for four digits


class Look(NamedTuple):
    """How an element is coloured."""

    ink: str
    fill: str
    weight: float = 1.6


def draw_shape(element: Element, shape: Shape, look: Look) -> str:
    """An element without its name."""
    if is_event(element):
        return _event(element, shape, look)
    if is_gateway(element):
        return _gateway(element, shape, look)
    return _box(element, shape, look)


def _placed(icon: str, x: float, y: float, ink: str, scale: float = 1.0) -> str:
    grown = "" if scale == 1.0 else f" scale({scale:.8g})"
    inked = icon.replace("{ink}", ink)
    return f'<g transform="translate({x:.8g} {y:.8g}){grown}">{inked}</g>' if icon else ""


def _event(element: Element, shape: Shape, look: Look) -> str:
    """One line for a start, two for what happens on the way, a thick one for an end."""
    x, y = shape.x + shape.width / 2, shape.y + shape.height / 2
    radius = min(shape.width, shape.height) / 2
    is_end = element.kind is ElementKind.END or element.drawn_as == "endEvent"
    weight = 3.6 if is_end else look.weight
    dashed = "" if element.interrupting else ' stroke-dasharray="4.5 3"'
    circle = f'<circle cx="{x:.8g}" cy="{y:.8g}" stroke="{look.ink}"{dashed} '
    parts = [f'{circle}r="{radius:.8g}" fill="{look.fill}" stroke-width="{weight:.8g}"/>']
    if not is_end and element.kind is not ElementKind.START:
        inner = max(radius - 3.4, 1.0)
        parts.append(f'{circle}r="{inner:.8g}" fill="none" stroke-width="{look.weight:.8g}"/>')
    parts.append(_placed(event_icon(element), x, y, look.ink, radius / 18))
    return "".join(parts)


def _gateway(element: Element, shape: Shape, look: Look) -> str:
    x, y = shape.x + shape.width / 2, shape.y + shape.height / 2
    path = (
        f"M{x:.8g} {shape.y:.8g}L{shape.x + shape.width:.8g} {y:.8g}"
        f"L{x:.8g} {shape.y + shape.height:.8g}L{shape.x:.8g} {y:.8g}Z"
    )
    marker = _placed(GATEWAYS[element.kind], x, y, look.ink, min(shape.width, shape.height) / 50)
    return (
        f'<path d="{path}" fill="{look.fill}" stroke="{look.ink}" '
        f'stroke-width="{look.weight:.8g}" stroke-linejoin="round"/>{marker}'
    )


def _box(element: Element, shape: Shape, look: Look) -> str:
    """An activity: a call has a thick border, and a sub-process shows what is inside."""
    is_scope = element.kind is ElementKind.SUBPROCESS
    weight = 4.0 if element.kind is ElementKind.CALL else look.weight
    fill = "#fbfcfd" if is_scope and look.fill == "#ffffff" else look.fill
    parts = [
        f'<rect x="{shape.x:.8g}" y="{shape.y:.8g}" width="{shape.width:.8g}" '
        f'height="{shape.height:.8g}" rx="10" fill="{fill}" '
        f'stroke="{look.ink}" stroke-width="{weight:.8g}"/>',
        _placed(task_icon(element), shape.x + 16, shape.y + 16, look.ink, 0.9),
    ]
    markers = [loop_icon(element.loop.sequential)] if element.loop else []
    if element.kind is ElementKind.CALL:
        markers.append(CALL_ICON)
    middle = shape.x + shape.width / 2 - 10 * (len(markers) - 1)
    for place, marker in enumerate(markers):
        foot = shape.y + shape.height - 11
        parts.append(_placed(marker, middle + 20 * place, foot, look.ink))
    return "".join(parts)


def draw_edge(edge: Edge, ink: str, is_default: bool, is_shared: bool = False) -> str:
    """A flow with round turns and an arrow at its end; a default has a stroke across its start.

    Where the first part is shared with other flows, the stroke is behind the turn.
    """
    points = edge.points
    path = [f"M{points[0][0]:.8g} {points[0][1]:.8g}"]
    for before, here, after in zip(points, points[1:], points[2:], strict=False):
        first, second = _towards(here, before), _towards(here, after)
        path.append(f"L{first[0]:.8g} {first[1]:.8g}Q{here[0]:.8g} {here[1]:.8g}")
        path.append(f" {second[0]:.8g} {second[1]:.8g}")
    tip = points[-1]
    dx, dy = _direction(points[-2], tip)
    foot = (tip[0] - dx * ARROW_LENGTH, tip[1] - dy * ARROW_LENGTH)
    path.append(f"L{foot[0] + dx:.8g} {foot[1] + dy:.8g}")
    side = (-dy * ARROW_WIDTH / 2, dx * ARROW_WIDTH / 2)
    parts = [
        f'<path d="{"".join(path)}" fill="none" stroke="{ink}" stroke-width="1.5"/>',
        f'<path d="M{tip[0]:.8g} {tip[1]:.8g}L{foot[0] + side[0]:.8g} {foot[1] + side[1]:.8g}'
        f'L{foot[0] - side[0]:.8g} {foot[1] - side[1]:.8g}Z" fill="{ink}"/>',
    ]
    if is_default:
        behind = 1 if is_shared and len(points) > 2 else 0
        ux, uy = _direction(points[behind], points[behind + 1])
        far = 9 + CORNER * behind
        x, y = points[behind][0] + ux * far, points[behind][1] + uy * far
        cx, cy = (ux - uy) * 4.5, (uy + ux) * 4.5  # the way turned by 45 degrees
        parts.append(
            f'<path d="M{x - cx:.8g} {y - cy:.8g}L{x + cx:.8g} {y + cy:.8g}" '
            f'stroke="{ink}" stroke-width="1.5"/>'
        )
    return "".join(parts)


def _direction(start: tuple[float, float], end: tuple[float, float]) -> tuple[float, float]:
    length = math.dist(start, end) or 1.0
    return (end[0] - start[0]) / length, (end[1] - start[1]) / length


def _towards(start: tuple[float, float], end: tuple[float, float]) -> tuple[float, float]:
    """Where a turn at `start` begins on the way to `end`."""
    far = min(CORNER, math.dist(start, end) / 2)
    dx, dy = _direction(start, end)
    return start[0] + dx * far, start[1] + dy * far


def draw_badge(count: int, x: float, y: float, colour: str) -> tuple[str, float]:
    """A count on a coloured ground around a point, and how wide it is."""
    text = str(count) if count < COUNT_SHORT else f"{count // 1000}k"
    width = max(22.0, text_width(text, 12.0) + 14)
    left = x - width + 11
    return (
        f'<g><rect x="{left:.8g}" y="{y - 11:.8g}" width="{width:.8g}" height="22" rx="11" '
        f'fill="{colour}" stroke="#ffffff" stroke-width="2"/>'
        f'<text x="{left + width / 2:.8g}" y="{y + 4.3:.8g}" font-size="12" font-weight="700" '
        f'text-anchor="middle" fill="#ffffff">{text}</text></g>'
    ), width
