"""A process instance drawn: its process, with tokens and incidents where they are."""

from collections import Counter

from holdfast.gateway.processes.shapes import ElementView, ProcessInstanceView
from holdfast.model.bpmn import read_bpmn
from holdfast.model.drawing import draw_svg


def instance_svg(view: ProcessInstanceView, source: str) -> str:
    """The picture as SVG; `source` is the BPMN that the instance's process was deployed from."""
    definition = next(each for each in read_bpmn(source) if each.id == view.process_id)
    tokens: Counter[str] = Counter()
    incidents: Counter[str] = Counter()
    _count(view.elements, tokens, incidents)
    return draw_svg(definition, tokens, incidents)


def _count(elements: list[ElementView], tokens: "Counter[str]", incidents: "Counter[str]") -> None:
    """A token is where nothing is inside: what holds others is where theirs are."""
    for element in elements:
        if element.incident_key:
            incidents[element.element_id] += 1
        elif not element.children:
            tokens[element.element_id] += 1
        _count(element.children, tokens, incidents)
