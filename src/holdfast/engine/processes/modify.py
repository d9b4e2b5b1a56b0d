"""Modification: tokens are added, removed and moved by hand. Checked as a whole, then done."""

from collections import Counter
from typing import Any, NamedTuple

from holdfast.engine.kernel import Turn
from holdfast.engine.processes import ending, ops, waits
from holdfast.engine.processes.instances import is_ending, take_up
from holdfast.engine.processes.ops import Phase
from holdfast.engine.processes.plan import Node
from holdfast.engine.processes.stuck import Stuck, check_size
from holdfast.engine.processes.values import Activate, InstanceIntent, Modification
from holdfast.engine.processes.variables import assign, from_json, to_json
from holdfast.engine.processes.walk import BY_HAND, Walk
from holdfast.engine.state import EngineState
from holdfast.errors import Code, InvalidArgument
from holdfast.limits import MODIFY_ELEMENTS_MAX
from holdfast.model.definition import ElementKind
from holdfast.records import Record

_NOT_BY_HAND = {ElementKind.START: "a start event", ElementKind.BOUNDARY: "a boundary event"}


class _Entry(NamedTuple):
    """An element that is to get a token, and where."""

    node: Node
    scope: int  # the innermost scope that is there
    missing: list["_Missing"]  # sub-processes to be entered first, from the outside in
    variables: dict[str, bytes]


class _Missing(NamedTuple):
    """A sub-process that is entered for what is inside."""

    node: Node
    variables: dict[str, bytes]  # what its inputs give
    waits: list[waits.Wait]


def modify(turn: Turn[EngineState], command: Record) -> None:
    """Does all that is asked, or rejects it with the reason."""
    instance = turn.state.processes.instances.get(command.key)
    if instance is None:
        reason = f"There is no process instance with key {command.key}"
        return turn.reject(command, Code.NOT_FOUND, reason)
    if instance.phase == Phase.TERMINATING:
        reason = f"Expected instance {command.key} to run, but it is being ended"
        return turn.reject(command, Code.INVALID_STATE, reason)
    wanted: Modification = command.value
    walk = take_up(turn, command.key)
    try:
        active = active_elements(walk)
        entries, leaving = _plan(walk, wanted, active)
        variables = from_json(wanted.variables)
        if instance.parent and _empties(walk, entries, leaving):
            raise InvalidArgument(
                f"Expected a token to be left in {command.key}, for element instance"
                f" {instance.parent} waits for its end, but none would be: cancel that one's"
                " instance, or end that element"
            )
        for values in (variables, *(entry.variables for entry in entries)):
            check_size(values)
    except InvalidArgument as error:
        return turn.reject(command, error.code, error.message)
    except Stuck as stuck:
        return turn.reject(command, Code.INVALID_ARGUMENT, stuck.message)
    walk.intent = InstanceIntent.MODIFIED
    if variables:
        walk.do(ops.VariablesSet(walk.key, variables))
    entered: dict[tuple[int, str], int] = {}
    for entry in entries:
        _enter(walk, entry, entered)
    for key in leaving:
        if walk.processes.elements.get(key) is not None and not walk.ended:
            ending.end_element(walk, key)
    walk.run()
    walk.finish()


def _empties(walk: Walk, entries: list[_Entry], leaving: list[int]) -> bool:
    """Whether no token would be left."""
    tokens: Counter[int] = Counter(entry.scope for entry in entries)
    todo, gone = list(leaving), set[int]()
    while todo:
        key = todo.pop()
        if key in gone or key == walk.key:
            continue
        gone.add(key)
        scope = walk.element(key).scope
        tokens[scope] -= 1
        loop = walk.processes.loops.get(scope)  # its next items come by themselves
        if not walk.count(scope, 0) + tokens[scope] and (loop is None or loop.taken >= loop.total):
            todo.append(scope)
    return walk.count(walk.key, 0) + tokens[walk.key] <= 0


def active_elements(walk: Walk) -> dict[int, Node]:
    """All element instances, with their elements; those of loops' items too."""
    found: dict[int, Node] = {}
    todo = [walk.key]
    while todo:
        for key, element in walk.processes.all_children(todo.pop()):
            found[key] = walk.plan.nodes[element.node]
            todo.append(key)
            if len(found) > MODIFY_ELEMENTS_MAX:
                raise InvalidArgument(
                    f"Expected at most {MODIFY_ELEMENTS_MAX} active elements in an instance that is"
                    " modified or migrated, but there are more"
                )
    return found


def _plan(
    walk: Walk, wanted: Modification, active: dict[int, Node]
) -> tuple[list[_Entry], list[int]]:
    """What is to be entered and what is to be ended; InvalidArgument if that cannot be."""
    if wanted == Modification():
        raise InvalidArgument("Expected something to change, but found nothing")
    entries = [_entry(walk, each, active) for each in wanted.activate]
    leaving: list[int] = []
    for key in wanted.terminate:
        if key not in active:
            raise InvalidArgument(
                f"Expected an element instance of {walk.key}, but {key} is none that is active"
            )
        leaving.append(key)
    for key in leaving:
        _refuse_ending(walk, key, active[key])
    for element_id in wanted.terminate_ids:
        leaving += _instances(walk, element_id, active)
    for source, target in wanted.move:
        for key in _instances(walk, source, active):
            leaving.append(key)
            scope = walk.element(key).scope
            node = _node(walk, target)
            same = node.scope is active[key].scope
            entries.append(_entry(walk, Activate(target, scope if same else 0), active))
    return entries, list(dict.fromkeys(leaving))


def _refuse_ending(walk: Walk, key: int, node: Node) -> None:
    if is_ending(walk.turn, walk.element(key)):
        raise InvalidArgument(
            f"Expected {node.id!r} to be active, but it is being ended", element=node.id
        )


def _node(walk: Walk, element_id: str) -> Node:
    node = walk.plan.by_id.get(element_id)
    if node is None:
        raise InvalidArgument(
            f"Expected an element of process {walk.plan.process_id!r} version"
            f" {walk.plan.version}, but it has no {element_id!r}",
            element=element_id,
        )
    return node


def _instances(walk: Walk, element_id: str, active: dict[int, Node]) -> list[int]:
    node = _node(walk, element_id)
    found = [key for key, each in active.items() if each is node and walk.element(key).item <= 0]
    if not found:
        raise InvalidArgument(
            f"Expected {element_id!r} to be active, but it is not", element=element_id
        )
    for key in found:
        _refuse_ending(walk, key, node)
    return found


def _entry(walk: Walk, wanted: Activate, active: dict[int, Node]) -> _Entry:
    node = _node(walk, wanted.element_id)
    what = _NOT_BY_HAND.get(node.kind) or (
        "an event behind an event gateway" if node.behind_gateway else None
    )
    if what:
        raise InvalidArgument(
            f"Expected an element that a token can be put on, but {node.id!r} is {what}",
            element=node.id,
        )
    missing: list[Node] = []
    outer = node.scope
    while outer is not None:
        found = [
            key
            for key, each in active.items()
            if each is outer and (outer.loop is None or walk.element(key).item > 0)
        ]
        if wanted.ancestor:
            found = [key for key in found if _is_within(walk, key, wanted.ancestor)]
        if len(found) == 1:
            _refuse_ending(walk, found[0], outer)
            return _prepared(walk, node, found[0], missing, wanted)
        if found:
            raise InvalidArgument(
                f"Expected the scope for {node.id!r} to be named, but {outer.id!r} is active"
                f" {len(found)} times",
                element=node.id,
            )
        if outer.loop is not None:
            raise InvalidArgument(
                f"Expected {outer.id!r} around {node.id!r} to be active, because it is repeated for"
                " each item, but it is not",
                element=node.id,
            )
        missing.insert(0, outer)
        outer = outer.scope
    if wanted.ancestor not in (0, walk.key):
        raise InvalidArgument(
            f"Expected {wanted.ancestor} to be a scope around {node.id!r}, but it is not",
            element=node.id,
        )
    return _prepared(walk, node, walk.key, missing, wanted)


def _is_within(walk: Walk, key: int, ancestor: int) -> bool:
    while key != walk.key:
        if key == ancestor:
            return True
        key = walk.element(key).scope
    return key == ancestor


def _prepared(walk: Walk, node: Node, scope: int, missing: list[Node], wanted: Activate) -> _Entry:
    seen = walk.seen(scope)
    entered: list[_Missing] = []
    for each in missing:
        known: dict[str, Any] = {}
        for mapping in each.inputs:
            value = walk.value(mapping.source, seen, f"an input of {each.id!r}")
            assign(mapping, value, known, seen)
            seen.update(known)
        values = to_json(known)
        check_size(values)
        entered.append(_Missing(each, values, waits.prepare(walk, each.events, seen)))
    return _Entry(node, scope, entered, from_json(wanted.variables))


def _enter(walk: Walk, entry: _Entry, entered: dict[tuple[int, str], int]) -> None:
    """Puts a token on an element, in scopes that are entered for it where they are missing."""
    scope = entry.scope
    for node, variables, prepared in entry.missing:
        key = entered.get((scope, node.id))
        if key is None:
            key = entered[scope, node.id] = walk.turn.new_key()
            walk.count(scope, 1)
            walk.do(ops.Activated(key, node.index, scope))
            if variables:
                walk.do(ops.VariablesSet(key, variables))
            waits.begin(walk, key, prepared)
        scope = key
    if entry.variables:
        walk.do(ops.VariablesSet(scope, entry.variables))
    walk.count(scope, 1)
    walk.todo.append((entry.node, scope, BY_HAND))
