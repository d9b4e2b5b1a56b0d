"""What a process is: named elements, the flows between them, and nothing about how it was written.

The Python DSL and BPMN both become this, and so does whatever comes later. Texts that begin with
`=` are FEEL expressions; others are taken as they are. Conditions, keys and collections are always
expressions and are kept without the `=`.
"""

from enum import IntEnum

import msgspec


class ElementKind(IntEnum):
    """What an element does when a token reaches it. The numbers are on disk."""

    START = 1
    END = 2
    PASS = 3  # nothing: an undefined or manual task, an intermediate event without a meaning
    JOB = 4  # a worker does it: service, send, script, business rule and user tasks
    EXPRESSION = 5  # an expression gives the value of a variable
    EXCLUSIVE = 6  # one way, the first whose condition holds
    INCLUSIVE = 7  # all ways whose conditions hold; joins those that were taken
    PARALLEL = 8  # all ways; joins all
    EVENT_GATEWAY = 9  # the way of the event that comes first
    CATCH = 10  # waits for a timer or a message
    BOUNDARY = 11  # waits beside its host
    SUBPROCESS = 12
    CALL = 13  # starts another process and waits for its end


GATEWAYS = frozenset(
    {
        ElementKind.EXCLUSIVE,
        ElementKind.INCLUSIVE,
        ElementKind.PARALLEL,
        ElementKind.EVENT_GATEWAY,
    }
)
ACTIVITIES = frozenset(
    {
        ElementKind.PASS,
        ElementKind.JOB,
        ElementKind.EXPRESSION,
        ElementKind.SUBPROCESS,
        ElementKind.CALL,
    }
)
"""What can be repeated, have mappings and be the host of boundary events; so can a receive task."""


class _Part(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What all parts of a definition have in common: an array on disk, extended at its end."""


class JobSpec(_Part, frozen=True):
    """What a worker is asked to do."""

    type: str  # which workers take it
    retries: str = "3"  # retries after the first failure
    headers: tuple[tuple[str, str], ...] = ()  # what the drawing tells the worker


class Mapping(_Part, frozen=True):
    """A value that goes from one scope to another."""

    source: str  # an expression, without the `=`
    target: str  # a variable, or a path into one: `order.total`


class TimerKind(IntEnum):
    """How a timer says when. The numbers are on disk."""

    DURATION = 1  # P3D: so long after it began to wait
    DATE = 2  # 2030-01-01T00:00:00Z
    CYCLE = 3  # R3/PT10S, or a cron rule


class Timer(_Part, frozen=True):
    """When a timer event happens."""

    kind: TimerKind
    value: str


class Message(_Part, frozen=True):
    """The message that an event waits for."""

    name: str
    key: str = ""  # the expression that gives the correlation key; start events have none


class Loop(_Part, frozen=True):
    """A multi-instance activity: once for each item of a collection."""

    collection: str  # an expression
    item: str = ""  # the variable that holds the item; `loopCounter` holds its number from 1
    sequential: bool = False
    output_collection: str = ""  # the variable that gets the results, in the order of the items
    output_item: str = ""  # the expression that gives the result of one item
    until: str = ""  # ends the activity before all items are done when it becomes true


class Binding(IntEnum):
    """Which version of the called process a call starts. The numbers are on disk."""

    LATEST = 1
    DEPLOYMENT = 2  # the one that was deployed together with the calling version
    VERSION_TAG = 3  # the latest with a tag


class Element(_Part, frozen=True):
    """One element: its kind, and the parts that this kind uses."""

    id: str
    kind: ElementKind
    name: str = ""
    scope: str = ""  # the sub-process it is in; empty: the process itself
    drawn_as: str = ""  # its BPMN tag, where the kind has several: `userTask`, `receiveTask`...
    job: JobSpec | None = None
    inputs: tuple[Mapping, ...] = ()
    outputs: tuple[Mapping, ...] = ()
    timer: Timer | None = None
    message: Message | None = None
    error: str | None = None  # the code thrown by an end or caught by a boundary; "" catches all
    terminate: bool = False  # an end that ends everything in its scope
    host: str = ""  # of a boundary event: the activity beside which it waits
    interrupting: bool = True
    loop: Loop | None = None
    called: str = ""  # the id of the process that a call starts
    pass_all: bool = True  # a call gives the called process all variables, not only its inputs
    take_all: bool = True  # ... and takes all of them back, not only its outputs
    expression: str = ""  # of an EXPRESSION, without the `=`
    result: str = ""  # the variable that gets an expression's value, or a job's whole result
    default: str = ""  # the flow that is taken when no condition holds
    binding: Binding = Binding.LATEST  # of a call: which version it starts
    version_tag: str = ""  # ... and the tag of that version


class Flow(_Part, frozen=True):
    """A way from one element to another."""

    id: str
    source: str
    target: str
    condition: str = ""  # an expression, without the `=`
    name: str = ""


class Shape(_Part, frozen=True):
    """Where an element is drawn."""

    id: str
    x: float
    y: float
    width: float
    height: float


class Edge(_Part, frozen=True):
    """Along which points a flow is drawn."""

    id: str
    points: tuple[tuple[float, float], ...]


class Drawing(_Part, frozen=True):
    """How somebody drew the process; without one it is laid out by itself."""

    shapes: tuple[Shape, ...] = ()
    edges: tuple[Edge, ...] = ()


class Definition(_Part, frozen=True):
    """A process: the same content gives the same bytes, and so the same version."""

    id: str
    elements: tuple[Element, ...]
    flows: tuple[Flow, ...]
    name: str = ""
    drawing: Drawing | None = None
    version_tag: str = ""  # by which calls find this version


encode_definition = msgspec.msgpack.Encoder().encode
decode_definition = msgspec.msgpack.Decoder(Definition).decode

_FIRST_FIELDS: dict[type[_Part], int] = {Element: 21, Definition: 5}
"""How many fields these had when the first digests were made of them."""
_DRAWING = Definition.__struct_fields__.index("drawing")


def content_of(definition: Definition) -> bytes:
    """What makes a version: all but the drawing, for moving a box makes no new version.

    Fields that were added since the first release are left out where they say nothing, so that what
    an earlier release has deployed is not a new version now.
    """
    fields = _fields(definition)
    fields[1] = [_fields(element) for element in definition.elements]
    fields[_DRAWING] = None
    return encode_definition(fields)


def _fields(part: _Part) -> list[object]:
    """The fields of a part without those at the end that are newer and say nothing."""
    kind = type(part)
    fields = list(msgspec.structs.astuple(part))
    missing = len(fields) - len(kind.__struct_defaults__)  # the first so many have no default
    while (
        len(fields) > _FIRST_FIELDS[kind]
        and fields[-1] == kind.__struct_defaults__[len(fields) - 1 - missing]
    ):
        fields.pop()
    return fields
