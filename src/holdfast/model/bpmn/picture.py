"""The picture in a BPMN file: where somebody put the elements, and how the flows go."""

from collections.abc import Iterator, Sequence

from holdfast.model.bpmn.names import BPMNDI, DC, DI, Node, local_id
from holdfast.model.definition import Drawing, Edge, Element, Flow, Shape

COORDINATE_MAX = 100_000.0
"""A hundred screens wide; a shape further out is a slip, and would make a picture of nothing."""


def read_drawing(root: Node, elements: Sequence[Element], flows: Sequence[Flow]) -> Drawing | None:
    """The drawing of a process, if the file has all of it on one plane.

    A sub-process that is drawn on a plane of its own, an element without a shape or one far outside
    leave no picture of the whole: then there is none, and the process is laid out by itself.
    """
    shapes = {shape.id: shape for shape in _shapes(root)}
    edges = {edge.id: edge for edge in _edges(root)}
    if not all(_is_drawn(element, shapes) for element in elements):
        return None
    if not all(flow.id in edges for flow in flows):
        return None
    return Drawing(
        tuple(shapes[element.id] for element in elements),
        tuple(edges[flow.id] for flow in flows),
    )


def _shapes(root: Node) -> Iterator[Shape]:
    for node in root.iter(f"{{{BPMNDI}}}BPMNShape"):
        for bounds in node.iterchildren(f"{{{DC}}}Bounds"):
            match _numbers(bounds, "x", "y", "width", "height"):
                case [x, y, width, height] if width > 0 and height > 0:
                    yield Shape(local_id(node.get("bpmnElement", "")), x, y, width, height)
                case _:
                    pass


def _edges(root: Node) -> Iterator[Edge]:
    for node in root.iter(f"{{{BPMNDI}}}BPMNEdge"):
        waypoints = [_numbers(each, "x", "y") for each in node.iterchildren(f"{{{DI}}}waypoint")]
        if len(waypoints) > 1 and all(waypoints):
            points = tuple((x, y) for x, y in waypoints)
            yield Edge(local_id(node.get("bpmnElement", "")), points)


def _numbers(node: Node, *names: str) -> list[float]:
    """The attributes as numbers, or nothing when one of them is none or out of all reason."""
    try:
        numbers = [float(node.get(name, "")) for name in names]
    except ValueError:
        return []
    return numbers if all(abs(number) <= COORDINATE_MAX for number in numbers) else []


def _is_drawn(element: Element, shapes: dict[str, Shape]) -> bool:
    """Whether an element has a shape, and a child of a sub-process one inside of it."""
    shape = shapes.get(element.id)
    if shape is None or not element.scope:
        return shape is not None
    box = shapes.get(element.scope)
    return (
        box is not None
        and box.x <= shape.x
        and box.y <= shape.y
        and shape.x + shape.width <= box.x + box.width + shape.width / 2  # half of a boundary event
        and shape.y + shape.height <= box.y + box.height + shape.height / 2
    )
