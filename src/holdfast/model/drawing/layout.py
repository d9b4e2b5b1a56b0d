"""Where everything goes in the picture of a process that nobody has drawn.

From left to right in columns, with a sub-process as a box that has a picture of its own inside. The
same definition gives the same picture. No library of the ones there are knows boxes in boxes,
events on borders and right angles together.
"""

from collections.abc import Sequence
from typing import NamedTuple

from holdfast.model.definition import Definition, Drawing, Edge, Element, ElementKind, Flow, Shape
from holdfast.model.drawing.layers import Layers, Link, layers_of
from holdfast.model.drawing.routes import GAP_MIN, TRACK, Body, Point, Router, tracks_of
from holdfast.model.drawing.rows import Extent, rows_of
from holdfast.model.drawing.sizes import (
    BOUNDARY_LABEL_WIDTH,
    BOUNDARY_PITCH,
    EVENT_LABEL_WIDTH,
    EVENT_SIZE,
    FLOW_LABEL_WIDTH,
    SMALL_FONT_SIZE,
    caption,
    even,
    flow_caption,
    is_event,
    is_gateway,
    lines_height,
    size_of,
    text_width,
    wrap,
)

ORIGIN = (160.0, 80.0)  # where Modeler begins
BOX_TOP, BOX_SIDE, BOX_BOTTOM = 44.0, 30.0, 28.0  # around what is in a sub-process: its name on top
BOX_WIDTH_MIN, BOX_HEIGHT_MIN = 160.0, 100.0


def drawing_of(definition: Definition) -> Drawing:
    """The drawing that a definition came with, if it shows all of it; else its layout."""
    drawn = definition.drawing
    if drawn is not None:
        shapes = {shape.id for shape in drawn.shapes}
        edges = {edge.id for edge in drawn.edges if len(edge.points) > 1}
        if shapes >= {element.id for element in definition.elements} and edges >= {
            flow.id for flow in definition.flows
        }:
            return drawn
    return layout(definition)


def layout(definition: Definition) -> Drawing:
    """A drawing of a definition: a shape for each element, a way for each flow."""
    scopes: dict[str, list[Element]] = {}
    for element in definition.elements:
        scopes.setdefault(element.scope, []).append(element)
    scope_of = {element.id: element.scope for element in definition.elements}
    flows: dict[str, list[Flow]] = {}
    for flow in definition.flows:
        flows.setdefault(scope_of.get(flow.source, ""), []).append(flow)
    picture = _Picture(scopes, flows).scope("").moved(*ORIGIN)
    shapes = {shape.id: shape for shape in picture.shapes}
    edges = {edge.id: edge for edge in picture.edges}
    return Drawing(
        tuple(shapes[each.id] for each in definition.elements if each.id in shapes),
        tuple(edges[each.id] for each in definition.flows if each.id in edges),
    )


class _Area(NamedTuple):
    """A scope that is laid out, from its own upper left corner."""

    width: float
    height: float
    shapes: list[Shape]
    edges: list[Edge]

    def moved(self, x: float, y: float) -> "_Area":
        return self._replace(
            shapes=[Shape(s.id, s.x + x, s.y + y, s.width, s.height) for s in self.shapes],
            edges=[
                Edge(edge.id, tuple((px + x, py + y) for px, py in edge.points))
                for edge in self.edges
            ],
        )


class _Picture:
    """The scopes of a definition, each laid out when the one around it needs to know its size."""

    def __init__(self, scopes: dict[str, list[Element]], flows: dict[str, list[Flow]]) -> None:
        self.scopes = scopes
        self.flows = flows

    def scope(self, name: str) -> _Area:
        """What is in a scope, with what is inside that."""
        inside = self.scopes.get(name, [])
        elements = [each for each in inside if each.kind is not ElementKind.BOUNDARY]
        number = {element.id: index for index, element in enumerate(elements)}
        events: dict[int, list[Element]] = {}
        for each in inside:
            if each.kind is ElementKind.BOUNDARY and each.host in number:
                events.setdefault(number[each.host], []).append(each)
                number[each.id] = number[each.host]
        beside = {each.id for hosted in events.values() for each in hosted}
        flows = [f for f in self.flows.get(name, ()) if f.source in number and f.target in number]
        links = [Link(number[f.source], number[f.target], f.source in beside) for f in flows]
        areas = {
            index: self.scope(element.id)
            for index, element in enumerate(elements)
            if element.kind is ElementKind.SUBPROCESS
        }
        bodies = [
            _body(element, areas.get(index), events.get(index, ()))
            for index, element in enumerate(elements)
        ]
        layers = layers_of(len(elements), links)
        extents = [
            _extent(element, body, events.get(index, ()))
            for index, (element, body) in enumerate(zip(elements, bodies, strict=True))
        ]
        extents += [Extent(0.0, 0.0)] * (len(layers.rank) - len(elements))
        rows = rows_of(layers, extents)
        top = min((row - each.above for row, each in zip(rows, extents, strict=True)), default=0.0)
        rows = [row - top for row in rows]
        to = {flow.source: rows[link.target] for flow, link in zip(flows, links, strict=True)}
        feet = _feet(bodies, rows, events, to)
        router = Router(layers, rows, bodies, links)
        ways = [router.way(index, feet.get(flow.source)) for index, flow in enumerate(flows)]
        columns = _Columns(layers, elements, bodies, flows, links, router)
        shapes, edges = columns.shapes(rows), columns.edges(flows, ways)
        for index, hosted in events.items():
            shapes += [_event_shape(each, columns.middles[index], feet) for each in hosted]
        for index, area in areas.items():
            box = shapes[index]
            moved = area.moved(box.x + BOX_SIDE, box.y + BOX_TOP)
            shapes += moved.shapes
            edges += moved.edges
        height = max((row + each.below for row, each in zip(rows, extents, strict=True)), default=0)
        return _Area(columns.width, height, shapes, edges)


def _body(element: Element, area: _Area | None, events: Sequence[Element]) -> Body:
    width, height = size_of(element)
    if area is not None:
        width = max(BOX_WIDTH_MIN, area.width + 2 * BOX_SIDE)
        height = max(BOX_HEIGHT_MIN, area.height + BOX_TOP + BOX_BOTTOM)
    if events:
        width = max(width, BOUNDARY_PITCH * len(events) + 10)
    return Body(width, height, is_gateway(element), bare=not events)


def _extent(element: Element, body: Body, events: Sequence[Element]) -> Extent:
    """The room of an element with its name, and with the events on its border and their names."""
    half = body.height / 2
    if events:
        names = max(_name_height(caption(each), BOUNDARY_LABEL_WIDTH) for each in events)
        return Extent(half, half + EVENT_SIZE / 2 + max(names, 10.0))
    name = _name_height(caption(element), EVENT_LABEL_WIDTH)
    if is_gateway(element):
        return Extent(half + name, half)
    return Extent(half, half + (name + 4 if is_event(element) and name else 0))


def _name_height(text: str, width: float) -> float:
    return even(lines_height(len(wrap(text, width, SMALL_FONT_SIZE)), SMALL_FONT_SIZE))


Feet = dict[str, tuple[float, float]]
"""The foot of each boundary event: how far from the middle of its host, and at which height."""


def _feet(
    bodies: Sequence[Body],
    rows: Sequence[float],
    events: dict[int, list[Element]],
    to: dict[str, float],
) -> Feet:
    """The events of a host from left to right, the one that leads furthest down first."""
    feet: Feet = {}
    for index, hosted in events.items():
        hosted.sort(key=lambda event: -to.get(event.id, 0.0))
        first = bodies[index].width / 2 - BOUNDARY_PITCH * len(hosted)
        for place, event in enumerate(hosted):
            offset = first + BOUNDARY_PITCH * place + BOUNDARY_PITCH / 2 - 5
            foot = rows[index] + bodies[index].height / 2 + EVENT_SIZE / 2
            feet[event.id] = (offset, foot)
    return feet


def _event_shape(event: Element, middle: float, feet: Feet) -> Shape:
    offset, foot = feet[event.id]
    x, y = middle + offset - EVENT_SIZE / 2, foot - EVENT_SIZE
    return Shape(event.id, x, y, EVENT_SIZE, EVENT_SIZE)


class _Columns:
    """The columns from left to right: as wide as what is in them, as far apart as ways need."""

    def __init__(
        self,
        layers: Layers,
        elements: Sequence[Element],
        bodies: Sequence[Body],
        flows: Sequence[Flow],
        links: Sequence[Link],
        router: Router,
    ) -> None:
        self.elements, self.bodies = elements, bodies
        self.tracks = tracks_of(router.runs)
        widths = [0.0] * len(layers.orders)
        for index, body in enumerate(bodies):
            name = text_width(caption(elements[index]), SMALL_FONT_SIZE)
            span = min(name, EVENT_LABEL_WIDTH) if is_event(elements[index]) else 0.0
            rank = layers.rank[index]
            widths[rank] = max(widths[rank], body.width, even(span))
        self.gaps = [GAP_MIN] * len(layers.orders)
        for flow, link in zip(flows, links, strict=True):
            name = min(text_width(flow_caption(flow), SMALL_FONT_SIZE), FLOW_LABEL_WIDTH)
            rank = layers.rank[link.source]
            self.gaps[rank] = max(self.gaps[rank], even(name + 32) if name else 0.0)
        for gap, tracks in self.tracks.items():
            if gap >= 0:
                self.gaps[gap] = max(self.gaps[gap], TRACK * (max(tracks) + 1) + 26)
        x = TRACK * (max(self.tracks[-1]) + 2) if -1 in self.tracks else 0.0
        self.lefts: list[float] = []
        for width, gap in zip(widths, self.gaps, strict=True):
            self.lefts.append(x)
            x += width + gap
        self.rights = [left + width for left, width in zip(self.lefts, widths, strict=True)]
        if self.gaps:  # behind the last column only ways back take room
            x -= self.gaps[-1] if len(self.gaps) - 1 not in self.tracks else TRACK
        self.width = x
        self.middles = [
            (self.lefts[rank] + self.rights[rank]) / 2 for rank in layers.rank[: len(bodies)]
        ]

    def shapes(self, rows: Sequence[float]) -> list[Shape]:
        return [
            Shape(
                element.id,
                self.middles[index] - body.width / 2,
                rows[index] - body.height / 2,
                body.width,
                body.height,
            )
            for index, (element, body) in enumerate(zip(self.elements, self.bodies, strict=True))
        ]

    def edges(self, flows: Sequence[Flow], ways: Sequence[list[Point]]) -> list[Edge]:
        return [
            Edge(flow.id, _straightened([(self._x(point), point[1]) for point in way]))
            for flow, way in zip(flows, ways, strict=True)
        ]

    def _x(self, point: Point) -> float:
        anchor, _ = point
        if anchor.vertex >= 0:
            return self.middles[anchor.vertex] + anchor.offset
        tracks = self.tracks[anchor.gap]
        track = tracks[anchor.link]
        if anchor.gap < 0:
            return self.lefts[0] - TRACK * (track + 1)
        room = self.gaps[anchor.gap] - TRACK * max(tracks)
        return self.rights[anchor.gap] + min(room / 2, GAP_MIN / 2) + TRACK * track


def _straightened(points: list[tuple[float, float]]) -> tuple[tuple[float, float], ...]:
    """Points without those that lie on the line between their neighbours."""
    kept: list[tuple[float, float]] = []
    for index, point in enumerate(points):
        if 0 < index < len(points) - 1:
            before, after = kept[-1], points[index + 1]
            if before[0] == point[0] == after[0] or before[1] == point[1] == after[1]:
                continue
        if not kept or kept[-1] != point or index == len(points) - 1:
            kept.append(point)
    return tuple(kept)
