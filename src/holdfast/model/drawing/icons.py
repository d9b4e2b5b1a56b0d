"""The little signs of BPMN, each drawn around the point (0, 0) and moved to its place."""

from holdfast.model.definition import Element, ElementKind

_STROKE = 'fill="none" stroke="{ink}" stroke-width="1.4" stroke-linejoin="round"'
_SOLID = 'fill="{ink}" stroke="{ink}" stroke-width="1" stroke-linejoin="round"'

_TICKS = "".join(
    f"M{x1} {y1}L{x2} {y2}"
    for x1, y1, x2, y2 in (
        (0, -9.5, 0, -7.5),
        (9.5, 0, 7.5, 0),
        (0, 9.5, 0, 7.5),
        (-9.5, 0, -7.5, 0),
    )
)
_CLOCK = (
    f'<circle r="10.5" {_STROKE}/><path d="{_TICKS}M0 -6V0L4.5 2.5" {_STROKE} '
    'stroke-linecap="round"/>'
)
_ENVELOPE = f'<path d="M-9 -6.5H9V6.5H-9ZM-9 -6.5L0 1L9 -6.5" {_STROKE}/>'
_ENVELOPE_SOLID = (
    '<path d="M-9 -6.5H9V6.5H-9Z" fill="{ink}"/>'
    '<path d="M-8.6 -6.2L0 0.8L8.6 -6.2" fill="none" stroke="#ffffff" stroke-width="1.5"/>'
)
_BOLT = '<path d="M-8 8L-3.5 -7L3 2L8 -8.5L3.8 7.5L-2.8 -1.2Z" '
_CROSS = '<path d="M-7 -7L7 7M7 -7L-7 7" stroke="{ink}" stroke-width="3.4" stroke-linecap="round"/>'
_PLUS = '<path d="M-10 0H10M0 -10V10" stroke="{ink}" stroke-width="3.4" stroke-linecap="round"/>'
_RING = '<circle r="9" fill="none" stroke="{ink}" stroke-width="3"/>'
_PENTAGON = (
    f'<circle r="13" {_STROKE}/><circle r="10.6" {_STROKE}/>'
    f'<path d="M0 -6.8L6.5 -2.1L4 5.5H-4L-6.5 -2.1Z" {_STROKE}/>'
)

GATEWAYS = {
    ElementKind.EXCLUSIVE: _CROSS,
    ElementKind.PARALLEL: _PLUS,
    ElementKind.INCLUSIVE: _RING,
    ElementKind.EVENT_GATEWAY: _PENTAGON,
}

_GEAR = (
    '<path d="M-1.6 -8H1.6L2.1 -5.7L4 -4.9L6 -6.2L8 -4L6.6 -2.1L7.2 -0.2L9.3 0.4V3.2L7.1 3.7'
    "L6.2 5.6L7.4 7.6L5.2 9.6L3.3 8.4L1.5 9.1L1 11H-1.8L-2.4 8.9L-4.2 8.1L-6.2 9.3L-8.2 7.2"
    f'L-6.9 5.3L-7.7 3.5L-9.8 3V0.2L-7.6 -0.3L-6.8 -2.1L-8 -4.1L-5.9 -6.1L-4 -4.9L-2.1 -5.7Z" '
    f'transform="translate(0.2 -1.5) scale(0.95)" {_STROKE}/><circle r="3" {_STROKE}/>'
)
_PERSON = (
    f'<circle cy="-4.2" r="3.8" {_STROKE}/><path d="M-8 9V6C-8 2.5 -5 1 -2.6 0.6L0 2.6L2.6 0.6'
    f'C5 1 8 2.5 8 6V9Z" {_STROKE}/>'
)
_SCROLL = (
    f'<path d="M-4 -8.5H7.5C3.5 -4 9.5 2 5 8.5H-7.5C-3 2 -9 -4 -4 -8.5Z" {_STROKE}/>'
    f'<path d="M-3.6 -4.6H3.4M-3 -0.8H4.2M-3.4 3.2H4.4" {_STROKE}/>'
)
_TABLE = (
    '<path d="M-9 -6.5H9V-2.5H-9Z" fill="{ink}" fill-opacity="0.25"/>'
    f'<path d="M-9 -6.5H9V6.5H-9ZM-9 -2.5H9M-9 2H9M-3.6 -2.5V6.5" {_STROKE}/>'
)
_HAND = (
    f'<path d="M-8.5 -1L-2.5 -6.5H2C3.6 -6.5 3.6 -4.2 2 -4.2H-0.8H7.5C9.2 -4.2 9.2 -1.9 7.5 -1.9'
    'H8C9.5 -1.9 9.5 0.4 8 0.4H7.3C8.8 0.4 8.8 2.7 7.3 2.7H6.3C7.7 2.7 7.7 5 6.3 5H-5L-8.5 4Z" '
    f"{_STROKE}/>"
)

_TASKS = {
    "userTask": _PERSON,
    "sendTask": _ENVELOPE_SOLID,
    "receiveTask": _ENVELOPE,
    "businessRuleTask": _TABLE,
    "manualTask": _HAND,
    "scriptTask": _SCROLL,
    "serviceTask": _GEAR,
}
_PLAIN = {ElementKind.JOB: "serviceTask", ElementKind.EXPRESSION: "scriptTask"}


def task_icon(element: Element) -> str:
    """The sign in the corner of a task; undefined tasks have none."""
    return _TASKS.get(element.drawn_as or _PLAIN.get(element.kind, ""), "")


def event_icon(element: Element) -> str:
    """The sign in the circle of an event: outlined where it waits, solid where it throws."""
    if element.timer is not None:
        return _CLOCK
    if element.message is not None:
        return _ENVELOPE
    if element.job is not None:
        return _ENVELOPE_SOLID
    if element.error is not None:
        style = _SOLID if element.kind is ElementKind.END else _STROKE
        return f"{_BOLT}{style}/>"
    return '<circle r="10.5" fill="{ink}"/>' if element.terminate else ""


def loop_icon(sequential: bool) -> str:
    """Three bars: lying for one after the other, standing for all at once."""
    path = "M-6 -5H6M-6 0H6M-6 5H6" if sequential else "M-5 -6V6M0 -6V6M5 -6V6"
    return f'<path d="{path}" stroke="{{ink}}" stroke-width="2.2"/>'


CALL_ICON = (
    f'<rect x="-7" y="-7" width="14" height="14" {_STROKE}/><path d="M-4 0H4M0 -4V4" {_STROKE}/>'
)
