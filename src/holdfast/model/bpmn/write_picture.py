"""The picture of a BPMN file: where its elements are, and how its flows go."""

from collections.abc import Callable

from lxml import etree  # pyright: ignore[reportAttributeAccessIssue]

from holdfast.model.bpmn.names import BPMNDI, DC, DI, Node
from holdfast.model.definition import Definition, Drawing, ElementKind


def write_picture(
    root: Node, definition: Definition, drawing: Drawing, fresh: Callable[[str], str]
) -> None:
    """The diagram of a definition; `fresh` gives ids that nothing else in the file has."""
    diagram = etree.SubElement(root, f"{{{BPMNDI}}}BPMNDiagram", id=fresh("BPMNDiagram"))
    plane = etree.SubElement(diagram, f"{{{BPMNDI}}}BPMNPlane", id=fresh("BPMNPlane"))
    plane.set("bpmnElement", definition.id)
    kinds = {element.id: element.kind for element in definition.elements}
    for shape in drawing.shapes:
        node = etree.SubElement(plane, f"{{{BPMNDI}}}BPMNShape", id=fresh(f"{shape.id}_di"))
        node.set("bpmnElement", shape.id)
        if kinds[shape.id] is ElementKind.EXCLUSIVE:
            node.set("isMarkerVisible", "true")
        if kinds[shape.id] is ElementKind.SUBPROCESS:
            node.set("isExpanded", "true")
        bounds = etree.SubElement(node, f"{{{DC}}}Bounds")
        for name in ("x", "y", "width", "height"):
            bounds.set(name, _said(getattr(shape, name)))
    for edge in drawing.edges:
        node = etree.SubElement(plane, f"{{{BPMNDI}}}BPMNEdge", id=fresh(f"{edge.id}_di"))
        node.set("bpmnElement", edge.id)
        for x, y in edge.points:
            etree.SubElement(node, f"{{{DI}}}waypoint", x=_said(x), y=_said(y))


def _said(number: float) -> str:
    """A number as short as it can be said exactly."""
    return str(int(number)) if number == int(number) else repr(number)
