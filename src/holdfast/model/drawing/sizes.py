"""How large things are in a picture: shapes, texts, and the room that names need around them."""

import math
import re

from holdfast.model.definition import Element, ElementKind, Flow

TASK_WIDTH, TASK_HEIGHT = 100.0, 80.0  # Modeler's own sizes, so that files look alike there
EVENT_SIZE = 36.0
GATEWAY_SIZE = 50.0
BOUNDARY_PITCH = 70.0  # from one boundary event of a host to the next, with room for a name
FONT_SIZE = 12.0
SMALL_FONT_SIZE = 11.0
LINE_HEIGHT = 1.2
EVENT_LABEL_WIDTH = 92.0
TASK_LABEL_WIDTH = 90.0
FLOW_LABEL_WIDTH = 110.0
BOUNDARY_LABEL_WIDTH = 64.0

EVENT_TAGS = ("startEvent", "endEvent", "intermediateThrowEvent", "intermediateCatchEvent")
_EVENTS = {ElementKind.START, ElementKind.END, ElementKind.CATCH, ElementKind.BOUNDARY}
_GATEWAYS = {
    ElementKind.EXCLUSIVE,
    ElementKind.INCLUSIVE,
    ElementKind.PARALLEL,
    ElementKind.EVENT_GATEWAY,
}


def is_event(element: Element) -> bool:
    """Whether an element is drawn as a circle."""
    if element.drawn_as:
        return element.drawn_as.endswith("Event")
    return element.kind in _EVENTS


def is_gateway(element: Element) -> bool:
    return element.kind in _GATEWAYS


def size_of(element: Element) -> tuple[float, float]:
    """The width and height of an element that contains no others."""
    if is_event(element):
        return EVENT_SIZE, EVENT_SIZE
    if is_gateway(element):
        return GATEWAY_SIZE, GATEWAY_SIZE
    return TASK_WIDTH, TASK_HEIGHT


_GIVEN_BY_MODELER = re.compile(r"[A-Z][A-Za-z]*_[0-9][a-z0-9]{6}")


def caption(element: Element) -> str:
    """What is written at an element: its name, or what stands for one where nobody gave it any.

    Tasks of the DSL are known by their ids, events by what they wait for; an id that a modeler made
    up says nothing.
    """
    if element.name.strip() or is_gateway(element):
        return element.name
    if is_event(element):
        timer = element.timer.value if element.timer else ""
        message = element.message.name if element.message else ""
        return (timer or message or element.error or "").removeprefix("=").strip()
    return "" if _GIVEN_BY_MODELER.fullmatch(element.id) else element.id


def flow_caption(flow: Flow) -> str:
    """What is written at a flow: its name or else its condition."""
    return flow.name if flow.name.strip() else flow.condition


_NARROW = frozenset("iljtf.,:;'!|()[] ")
_WIDE = frozenset("mwMWQO@%")


def text_width(text: str, size: float) -> float:
    """How wide a text is, near enough: the fonts of the reader's machine are not known here."""
    units = sum(
        0.34
        if char in _NARROW
        else 0.88
        if char in _WIDE or ord(char) > 0x2E80  # Chinese, Japanese, Korean
        else 0.68
        if char.isupper()
        else 0.58
        for char in text
    )
    return units * size


def wrap(text: str, width: float, size: float, lines_max: int = 5) -> list[str]:
    """The lines of a text that has so much room; what does not fit ends in an ellipsis."""
    lines: list[str] = []
    for word in text.split():
        for part in _pieces(word, width, size):
            longer = f"{lines[-1]} {part}" if lines else part
            if lines and text_width(longer, size) <= width:
                lines[-1] = longer
            else:
                lines.append(part)
    if len(lines) > lines_max:
        lines = [*lines[: lines_max - 1], lines[lines_max - 1].rstrip(".,; ") + "…"]
    return lines


def _pieces(word: str, width: float, size: float) -> list[str]:
    """A word in as many pieces as it takes: ids and types know no spaces."""
    pieces = [""]
    for char in word:
        if pieces[-1] and text_width(pieces[-1] + char, size) > width:
            pieces.append("")
        pieces[-1] += char
    return pieces


def even(length: float) -> float:
    """A length that is at least as long and has a whole half: files are full of coordinates."""
    return 2.0 * math.ceil(length / 2)


def lines_height(lines: int, size: float) -> float:
    return lines * size * LINE_HEIGHT
