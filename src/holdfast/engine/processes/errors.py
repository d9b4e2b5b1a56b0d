"""Errors that the drawing knows: thrown by a worker or an end event, caught at a boundary."""

from typing import NamedTuple

from holdfast.engine.incidents.values import IncidentReason
from holdfast.engine.processes import happenings, ops
from holdfast.engine.processes.plan import Node, ProcessPlan
from holdfast.engine.processes.state import Processes, json_object
from holdfast.engine.processes.stuck import Stuck
from holdfast.engine.processes.values import InstanceIntent, ThrownError
from holdfast.engine.processes.walk import Walk
from holdfast.records import ValueType


class Catcher(NamedTuple):
    """The activity whose boundary event catches an error; perhaps of a calling instance."""

    instance: int
    host: int
    event: Node


def find(
    processes: Processes, plan: ProcessPlan, instance: int, scope: int, code: str
) -> Catcher | None:
    """Who catches an error that comes out of a scope: the nearest with the code, or with all."""
    while True:
        while scope != instance:
            element = processes.elements.get(scope)
            assert element is not None, f"element instance {scope} is not there"
            if element.item <= 0 and (event := _match(plan.nodes[element.node], code)):
                return Catcher(instance, scope, event)
            scope = element.scope
        row = processes.instances.get(instance)
        assert row is not None
        caller = processes.elements.get(row.parent) if row.parent else None
        if caller is None:
            return None
        scope, instance = row.parent, caller.instance
        calling = processes.instances.get(instance)
        assert calling is not None
        plan = processes.plans[calling.definition]


def _match(node: Node, code: str) -> Node | None:
    for wanted in (code, ""):
        for event in node.errors:
            if event.element.error == wanted:
                return event
    return None


def throw(walk: Walk, scope: int, code: str, message: str, values: dict[str, bytes]) -> bool:
    """The error goes to the event that catches it; False if there is none."""
    catcher = find(walk.processes, walk.plan, walk.key, scope, code)
    if catcher is None:
        return False
    if catcher.instance == walk.key:
        host = walk.element(catcher.host)
        happenings.interrupt(walk, catcher.host, host, catcher.event, values)
        return True
    turn, variables = walk.turn, json_object(values)

    def catch() -> None:
        moves = walk.spent + walk.moves
        value = ThrownError(catcher.event.index, code, message, variables, moves)
        turn.command(ValueType.PROCESS_INSTANCE, InstanceIntent.CATCH, catcher.host, value)

    walk.behind.append(catch)
    return True


def throw_from(walk: Walk, node: Node, scope: int, key: int, code: str) -> None:
    """An end event throws; where nobody catches it, the token is stuck there."""
    if not key:
        catcher = find(walk.processes, walk.plan, walk.key, scope, code)
        if catcher is not None:
            key = walk.turn.new_key()
            walk.do(ops.Activated(key, node.index, scope))
    if not key or not throw(walk, scope, code, "", {}):
        raise unhandled(code, "", f"end event {node.id!r}")


def unhandled(code: str, message: str, who: str) -> Stuck:
    """Nobody catches the error."""
    said = f": {message}" if message else ""
    return Stuck(
        IncidentReason.UNHANDLED_ERROR,
        f"There is no boundary event to catch error {code!r} of {who}{said}",
    )
