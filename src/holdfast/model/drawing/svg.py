"""Processes as SVG: the look of BPMN, with what is going on in an instance on top of it."""

import html
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping

from holdfast.model.definition import Definition, Drawing, Edge, Element, ElementKind, Shape
from holdfast.model.drawing.labels import Label, flow_label, label_of
from holdfast.model.drawing.layout import drawing_of
from holdfast.model.drawing.shapes import Look, draw_badge, draw_edge, draw_shape
from holdfast.model.drawing.sizes import flow_caption

MARGIN = 24.0
FONTS = "'Helvetica Neue', Arial, 'DejaVu Sans', 'Liberation Sans', sans-serif"

PLAIN = Look("#25303b", "#ffffff")
DONE = Look("#5b8a72", "#edf6f0")
ACTIVE = Look("#1a5fd0", "#e9f1fe", 2.4)
BROKEN = Look("#c62a1f", "#fdeceb", 2.4)
FLOW_INK = "#56616c"
TOKEN_COLOUR, INCIDENT_COLOUR = "#1a6cf0", "#d92d20"

_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def draw_svg(
    definition: Definition,
    tokens: Mapping[str, int] = {},
    incidents: Mapping[str, int] = {},
    done: Collection[str] = (),
) -> str:
    """A process as an SVG document; `tokens`, `incidents` and `done` go by the ids of elements.

    Elements with tokens are blue and show how many, with incidents red; finished ones are tinted,
    and so are flows whose ids are among them.
    """
    drawing = drawing_of(definition)
    shapes = {shape.id: shape for shape in drawing.shapes}
    finished = frozenset(done)
    looks = {
        element.id: _look(element.id, tokens, incidents, finished)
        for element in definition.elements
    }
    labels = list(_labels(definition, drawing, shapes))
    left, top, right, bottom = _bounds(drawing, labels)
    width, height = right - left + 2 * MARGIN, bottom - top + 2 * MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.8g}" height="{height:.8g}" '
        f'viewBox="{left - MARGIN:.8g} {top - MARGIN:.8g} {width:.8g} {height:.8g}" '
        f'font-family="{FONTS}">',
        f"<title>{escape(definition.name or definition.id)}</title>",
        f'<rect x="{left - MARGIN:.8g}" y="{top - MARGIN:.8g}" width="{width:.8g}" '
        f'height="{height:.8g}" fill="#ffffff"/>',  # pages may be dark
    ]
    boxes = [each for each in definition.elements if each.kind is ElementKind.SUBPROCESS]
    boxes.sort(key=lambda each: -shapes[each.id].width * shapes[each.id].height)  # outer first
    parts += [_element(each, shapes[each.id], looks[each.id]) for each in boxes]
    parts += _edges(definition, drawing, finished)
    for element in sorted(definition.elements, key=lambda each: each.kind is ElementKind.BOUNDARY):
        if element.kind is not ElementKind.SUBPROCESS:
            parts.append(_element(element, shapes[element.id], looks[element.id]))
    parts += [_text(label, PLAIN.ink) for label in labels]
    for element in definition.elements:
        parts += _badges(element, shapes[element.id], tokens, incidents)
    return "\n".join([*filter(None, parts), "</svg>", ""])


def escape(text: str) -> str:
    """A text as XML can have it; characters that it cannot have are replaced."""
    return html.escape(_NOT_XML.sub("\ufffd", text))


def _element(element: Element, shape: Shape, look: Look) -> str:
    """A shape with the id of its element, by which a page can find it."""
    return f'<g data-element="{escape(element.id)}">{draw_shape(element, shape, look)}</g>'


def _look(
    name: str, tokens: Mapping[str, int], incidents: Mapping[str, int], done: Collection[str]
) -> Look:
    if incidents.get(name, 0) > 0:
        return BROKEN
    if tokens.get(name, 0) > 0:
        return ACTIVE
    return DONE if name in done else PLAIN


def _edges(definition: Definition, drawing: Drawing, done: Collection[str]) -> Iterator[str]:
    """The flows, finished ones last: they lie on top where ways are shared."""
    edges = {edge.id: edge for edge in drawing.edges}
    defaults = {element.default for element in definition.elements if element.default}
    starts = Counter(edge.points[0] for edge in drawing.edges)
    for flow in sorted(definition.flows, key=lambda each: each.id in done):
        edge, ink = edges[flow.id], DONE.ink if flow.id in done else FLOW_INK
        yield draw_edge(edge, ink, flow.id in defaults, starts[edge.points[0]] > 1)


def _labels(
    definition: Definition, drawing: Drawing, shapes: Mapping[str, Shape]
) -> Iterator[Label]:
    touched: dict[str, set[tuple[float, float]]] = {}
    edges: dict[str, Edge] = {edge.id: edge for edge in drawing.edges}
    for flow in definition.flows:
        points = edges[flow.id].points
        touched.setdefault(flow.source, set()).add(points[0])
        touched.setdefault(flow.target, set()).add(points[-1])
    for element in definition.elements:
        host = shapes.get(element.host)
        yield from label_of(element, shapes[element.id], touched.get(element.id, set()), host)
    defaults = {element.default for element in definition.elements}
    starts = Counter(edge.points[0] for edge in drawing.edges)
    for flow in definition.flows:
        if flow_caption(flow).strip():
            edge = edges[flow.id]
            yield flow_label(flow, edge, flow.id in defaults, starts[edge.points[0]] > 1)


def _text(label: Label, ink: str) -> str:
    lines = "".join(
        f'<tspan x="{label.x:.8g}" y="{y:.8g}">{escape(line)}</tspan>' for y, line in label.placed()
    )
    style = ' font-weight="600"' if label.bold else ""
    if label.halo:
        style += ' stroke="#ffffff" stroke-width="3" stroke-linejoin="round" paint-order="stroke"'
    return (
        f'<text font-size="{label.size:.8g}" text-anchor="{label.anchor}" fill="{ink}"'
        f"{style}>{lines}</text>"
    )


def _badges(
    element: Element, shape: Shape, tokens: Mapping[str, int], incidents: Mapping[str, int]
) -> Iterator[str]:
    """The counts at the upper right of an element: tokens, and incidents before them."""
    x = shape.x + shape.width - (0 if shape.width > 60 else shape.width * 0.12)
    y = shape.y + (0 if shape.width > 60 else shape.height * 0.12)
    for count, colour in (
        (tokens.get(element.id, 0), TOKEN_COLOUR),
        (incidents.get(element.id, 0), INCIDENT_COLOUR),
    ):
        if count > 0:
            badge, width = draw_badge(count, x, y, colour)
            yield badge
            x -= width + 3


def _bounds(drawing: Drawing, labels: list[Label]) -> tuple[float, float, float, float]:
    """The corners of all that is drawn; an empty process has a picture too."""
    xs: list[float] = []
    ys: list[float] = []
    for shape in drawing.shapes:
        xs += (shape.x, shape.x + shape.width)
        ys += (shape.y, shape.y + shape.height)
    for edge in drawing.edges:
        xs += (x for x, _ in edge.points)
        ys += (y for _, y in edge.points)
    for label in labels:
        left, top, right, bottom = label.bounds()
        xs += (left, right)
        ys += (top, bottom)
    return (min(xs), min(ys), max(xs), max(ys)) if xs else (0.0, 0.0, 1.0, 1.0)
