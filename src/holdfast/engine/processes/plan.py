"""A definition made ready to be followed: neighbours at hand, expressions compiled."""

from functools import cached_property

from holdfast.model.definition import (
    Definition,
    Element,
    ElementKind,
    Flow,
    Mapping,
    Timer,
)
from holdfast.model.feel import Expression, parse

Text = str | Expression
"""A text as it is, or an expression that gives one."""


class Way:
    """A flow as the element that it leaves sees it."""

    __slots__ = ("condition", "id", "place", "target")

    def __init__(self, flow: Flow, target: "Node", place: int) -> None:
        self.id = flow.id
        self.target = target
        self.place = place  # which of the target's incoming flows it is
        self.condition = parse(flow.condition) if flow.condition else None


class Assignment:
    """A mapping: an expression, and the path of the variable that gets its value."""

    __slots__ = ("path", "source")

    def __init__(self, mapping: Mapping) -> None:
        self.source = parse(mapping.source)
        self.path = tuple(mapping.target.split("."))


class LoopPlan:
    """How a multi-instance activity is repeated."""

    __slots__ = ("collect", "collection", "item", "output", "sequential", "until")

    def __init__(self, element: Element) -> None:
        loop = element.loop
        assert loop is not None
        self.collection = parse(loop.collection)
        self.item = loop.item
        self.sequential = loop.sequential
        self.collect = loop.output_collection
        self.output = parse(loop.output_item) if loop.output_item else None
        self.until = parse(loop.until) if loop.until else None


class Node:
    """An element with everything that a token needs to know about it."""

    def __init__(self, index: int, element: Element) -> None:
        self.index = index
        self.id = element.id
        self.kind = element.kind
        self.element = element
        self.scope: Node | None = None  # the sub-process it is in
        self.ways: list[Way] = []
        self.default: Way | None = None
        self.incoming = 0
        self.joins = False  # whether tokens wait here for others
        self.start: Node | None = None  # of a sub-process: where it begins
        self.events: list[Node] = []  # timers and messages that wait while it is active
        self.behind_gateway = False  # an event that an event gateway waits for in its place
        self.errors: list[Node] = []  # boundary events that catch errors
        # the plain job or end that a token comes to from here, with nothing to do on its way
        self.straight: Node | None = None
        self.inputs = [Assignment(mapping) for mapping in element.inputs]
        self.outputs = [Assignment(mapping) for mapping in element.outputs]
        self.loop = LoopPlan(element) if element.loop else None
        self.timer: Timer | None = element.timer
        self.timer_text: Text = text(element.timer.value) if element.timer else ""
        self.message_name: Text = text(element.message.name) if element.message else ""
        self.message_key = (
            parse(element.message.key) if element.message and element.message.key else None
        )
        self.expression = parse(element.expression) if element.expression else None
        self.called: Text = text(element.called)
        self.job_type: Text = text(element.job.type) if element.job else ""
        retries = text(element.job.retries) if element.job else "0"
        self.retries: int | Expression = int(retries) if isinstance(retries, str) else retries
        self.headers = dict(element.job.headers) if element.job else {}

    @cached_property
    def plain(self) -> bool:
        """Whether entering it needs no expression and sets up nothing beside it."""
        return not (self.inputs or self.loop or self.events) and (
            self.kind != ElementKind.JOB
            or (isinstance(self.job_type, str) and isinstance(self.retries, int))
        )

    def __repr__(self) -> str:
        return f"Node({self.id!r})"


class ProcessPlan:
    """A definition as instances follow it."""

    def __init__(self, key: int, version: int, definition: Definition) -> None:
        self.key = key
        self.version = version
        self.definition = definition
        self.process_id = definition.id
        self.nodes = [Node(index, each) for index, each in enumerate(definition.elements)]
        self.by_id = {node.id: node for node in self.nodes}
        for flow in definition.flows:
            source, target = self.by_id[flow.source], self.by_id[flow.target]
            way = Way(flow, target, target.incoming)
            target.incoming += 1
            source.ways.append(way)
            if flow.id == source.element.default:
                source.default = way
        self._ways_into: dict[int, list[frozenset[int]]] = {}
        self.start: Node | None = None  # where an instance begins that nothing triggered
        self.triggers: list[Node] = []  # starts with a timer or a message
        for node in self.nodes:
            self._connect(node)
        self.inclusive = any(
            node.joins and node.kind == ElementKind.INCLUSIVE for node in self.nodes
        )
        # no tokens wait for others: nothing but elements is left when an instance is canceled
        self.cancels_straight = _cancels_straight(self.nodes)
        if not self.inclusive:  # whose joins look at every token that moves
            for node in self.nodes:
                node.straight = _straight(node)

    def _connect(self, node: Node) -> None:
        element = node.element
        node.joins = node.incoming > 1 and node.kind in (
            ElementKind.PARALLEL,
            ElementKind.INCLUSIVE,
        )
        node.scope = self.by_id[element.scope] if element.scope else None
        waits = element.timer is not None or element.message is not None
        match element.kind:
            case ElementKind.START if waits:
                self.triggers.append(node)
            case ElementKind.START if node.scope is not None:
                node.scope.start = node
            case ElementKind.START:
                self.start = node
            case ElementKind.BOUNDARY:
                host = self.by_id[element.host]
                (host.errors if element.error is not None else host.events).append(node)
            case ElementKind.EVENT_GATEWAY:
                for way in node.ways:
                    way.target.behind_gateway = True
                    node.events.append(way.target)
            case ElementKind.CATCH:
                node.events.insert(0, node)

    def ways_into(self, join: Node) -> list[frozenset[int]]:
        """For each node, by which of a join's incoming flows a token of it can come."""
        known = self._ways_into.get(join.index)
        if known is None:
            known = [self._ways_from(node, join) for node in self.nodes]
            self._ways_into[join.index] = known
        return known

    def _ways_from(self, node: Node, join: Node) -> frozenset[int]:
        found: set[int] = set()
        visited, todo = {join.index}, [node]
        while todo:
            here = todo.pop()
            if here.index in visited:
                continue
            visited.add(here.index)
            for way in here.ways:
                if way.target is join:
                    found.add(way.place)
                else:
                    todo.append(way.target)
            todo += [*here.events, *here.errors]
        return frozenset(found)


def _cancels_straight(nodes: list[Node]) -> bool:
    return not any(node.joins for node in nodes)


def _straight(node: Node) -> Node | None:
    """Where a token comes to from a start or a job in the outermost scope, if that is plain."""
    if (
        node.kind not in (ElementKind.START, ElementKind.JOB)
        or node.scope is not None
        or node.outputs
        or node.events
        or node.loop
        or len(node.ways) != 1
    ):
        return None
    target = node.ways[0].target
    if target.kind == ElementKind.END:
        plain = target.element.error is None and not target.element.terminate
    else:
        plain = target.kind == ElementKind.JOB and target.plain
    return target if plain else None


def text(value: str) -> Text:
    """A text of a definition: behind `=` it is an expression."""
    return parse(value[1:]) if value.startswith("=") else value


def compile_plan(key: int, version: int, definition: Definition) -> ProcessPlan:
    """The plan of a definition; compiled once for each version and partition."""
    return ProcessPlan(key, version, definition)
