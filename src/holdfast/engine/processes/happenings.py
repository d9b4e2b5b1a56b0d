"""Events that happen to waiting elements: a time has come, a message, an error from inside."""

from typing import Any

from holdfast.engine.processes import activities, ending, ops, waits
from holdfast.engine.processes.ops import Phase
from holdfast.engine.processes.plan import Node
from holdfast.engine.processes.state import ElementInstance, json_object
from holdfast.engine.processes.stuck import Stuck
from holdfast.engine.processes.variables import Seen, assign, from_json, to_json
from holdfast.engine.processes.walk import Walk
from holdfast.model.definition import ElementKind
from holdfast.model.feel import FeelError


def happen(
    walk: Walk, key: int, element: ElementInstance, event: Node, values: dict[str, bytes]
) -> None:
    """One of the events that an element waits for has happened."""
    node = walk.plan.nodes[element.node]
    if event is node:
        activities.leave(walk, key, element, values)
    elif node.kind == ElementKind.EVENT_GATEWAY:
        waits.end(walk, key, node.events)
        walk.completed(key, element)
        go_on_from(walk, event, element.scope, 0, values)
    elif event.element.interrupting:
        interrupt(walk, key, element, event, values)
    else:
        walk.count(element.scope, 1)
        go_on_from(walk, event, element.scope, 0, values)


def interrupt(
    walk: Walk, key: int, element: ElementInstance, event: Node, values: dict[str, bytes]
) -> None:
    """The element ends, and a boundary event goes on in its place."""
    if element.phase == Phase.TERMINATING:  # it goes on being ended
        values = kept_values(walk, key, element)
    if not ending.terminate(walk, key, element):
        if values:
            keep_values(walk, key, values)
        ending.go_on_later(walk, key, event.index)
        return
    walk.count(element.scope, 1)
    go_on_from(walk, event, element.scope, 0, values)


def go_on_from(walk: Walk, event: Node, scope: int, key: int, values: dict[str, bytes]) -> None:
    """The token leaves by the event that happened; `key` if it was stuck there."""
    try:
        out = values
        if event.outputs:
            seen = Seen([(0, values), *walk.layers(scope)])
            found: dict[str, Any] = {}
            for each in event.outputs:
                value = walk.value(each.source, seen, f"an output of {event.id!r}")
                assign(each, value, found, seen)
            out = to_json(found)
        walk.propagate(scope, out)
        walk.passed(event, scope, key)
        walk.leave(event, scope)
    except (Stuck, FeelError) as problem:
        key = walk.stick(event, scope, key, Stuck.of(problem, event), Phase.LEAVING)
        if values:
            keep_values(walk, key, values)


def is_event_of_another(node: Node) -> bool:
    """Whether the event happened to a host or a gateway, and not to an element of its own."""
    return node.kind == ElementKind.BOUNDARY or node.behind_gateway


def keep_values(walk: Walk, key: int, values: dict[str, bytes]) -> None:
    """Keeps beside an element what it is to go on with later."""
    kept = json_object(values)
    walk.weigh(len(kept))
    walk.do(ops.VariablesSet(key, {_KEPT: kept}))


def kept_values(walk: Walk, key: int, element: ElementInstance) -> dict[str, bytes]:
    """What was kept beside an element."""
    if not element.local:
        return {}
    return from_json((walk.processes.variables.get(key) or {}).get(_KEPT, b"{}"))


_KEPT = ""  # no variable has this name
