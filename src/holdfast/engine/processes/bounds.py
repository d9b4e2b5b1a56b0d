"""When a walk has gone far enough, and when an instance has: by moves, tokens, items and calls."""

from collections import Counter, deque
from typing import TYPE_CHECKING

from holdfast.engine.processes import ops, tree
from holdfast.engine.processes.plan import Node, ProcessPlan
from holdfast.limits import (
    CALL_DEPTH_MAX,
    INSTANCE_ITEMS_MAX,
    INSTANCE_TOKENS_MAX,
    LOOP_MOVES_MAX,
    SCOPE_TOKENS_LOOK,
    SCOPE_TOKENS_MAX,
    TREE_INSTANCES_MAX,
    TREE_RECURSIONS_MAX,
)

if TYPE_CHECKING:
    from holdfast.engine.processes.walk import Walk

_BODY = -1  # the `item` of a body
_NAMES_SHOWN = 20  # elements of a loop that a message names


def excess(walk: "Walk", node: Node, scope: int) -> str:
    """What a token that comes to an element is too much of; "" if it is not."""
    moves = walk.spent + walk.moves
    if moves > LOOP_MOVES_MAX:
        what = f"Moved {moves:,} times without a wait, by {loop(walk, node)}"
        return f"{what}. Resolve the incident to let it go on as far again, or cancel the instance"
    tokens = walk.tokens_of(scope)
    if tokens is None or _is_body(walk, scope):
        return ""
    if tokens > SCOPE_TOKENS_MAX and tokens > (allowed := tree.allowed(walk, SCOPE_TOKENS_MAX)):
        return (
            f"Expected at most {allowed:,} tokens in a scope, but {tokens:,} are in that of"
            f" {node.id!r}. They multiply in {loop(walk, node)}. {_AS_MANY}"
        )
    if scope == walk.key or tokens < 2:  # a lone token makes no more of them
        return ""
    alike = _alike(walk, scope, tokens)
    if alike > INSTANCE_TOKENS_MAX and alike > (allowed := tree.allowed(walk, INSTANCE_TOKENS_MAX)):
        return (
            f"Expected at most {allowed:,} tokens in nested scopes, but there are {alike:,} if all"
            f" are like that of {node.id!r}, which has {tokens:,}. They multiply in"
            f" {loop(walk, node)}. {_AS_MANY}"
        )
    return ""


_AS_MANY = "Resolve the incident to allow as many again, or cancel the instance"


def _is_body(walk: "Walk", scope: int) -> bool:
    return scope != walk.key and walk.element(scope).item == _BODY


def _alike(walk: "Walk", scope: int, tokens: int) -> int:
    """How many tokens there are if all scopes beside this one have as many.

    Items of a loop are counted elsewhere; a scope inside of one is seldom like all the others,
    unless it is large.
    """
    with_items = tokens > SCOPE_TOKENS_LOOK
    while scope != walk.key:
        scope = walk.element(scope).scope
        if with_items or not _is_body(walk, scope):
            tokens *= max(walk.tokens_of(scope) or walk.stored_tokens(scope), 1)
    return tokens


def excess_items(walk: "Walk", node: Node) -> str:
    """Whether the loops of a tree have begun too many items."""
    items = tree.of(walk).items
    if items < INSTANCE_ITEMS_MAX or items < tree.allowed(walk, INSTANCE_ITEMS_MAX):
        return ""
    return (
        f"Expected at most {tree.allowed(walk, INSTANCE_ITEMS_MAX):,} items in activities that"
        f" repeat, but {node.id!r} and others have begun {items:,}. {_AS_MANY}"
    )


def excess_depth(walk: "Walk", node: Node, process_id: str) -> str:
    """Whether a call is too deep in a tree."""
    depth = walk.row.depth
    if depth < CALL_DEPTH_MAX or depth < (allowed := tree.allowed(walk, CALL_DEPTH_MAX)):
        return ""
    return (
        f"Expected at most {allowed} processes that call one another, but {node.id!r} would be one"
        f" more, {_called(walk, process_id)[1]}. {_AS_MANY} at the root of the calls"
    )


def excess_calls(walk: "Walk", node: Node, process_id: str) -> str:
    """Whether a tree has called too many instances to call one more."""
    called = tree.of(walk).called
    if called < TREE_RECURSIONS_MAX:
        return ""
    is_circle, how = _called(walk, process_id)
    allowed = tree.allowed(walk, TREE_RECURSIONS_MAX if is_circle else TREE_INSTANCES_MAX)
    if called < allowed:
        return ""
    return (
        f"Expected at most {allowed:,} called instances, but {called:,} are active and {node.id!r}"
        f" would be one more, {how}. {_AS_MANY} at the root of the calls"
    )


def _called(walk: "Walk", process_id: str) -> tuple[bool, str]:
    """Whether a process calls itself, perhaps by way of others, and how it is called."""
    callers = [*_callers(walk), process_id]
    is_circle = process_id in callers[:-1]
    if is_circle:
        last = max(at for at, each in enumerate(callers[:-1]) if each == process_id)
        callers = callers[last:]
    shown = " -> ".join(callers[-_NAMES_SHOWN:])
    return is_circle, f"called in the circle {shown}" if is_circle else f"called by {shown}"


def _callers(walk: "Walk") -> list[str]:
    """The processes that led to this instance, from the root on, itself included."""
    found, row = [walk.plan.process_id], walk.row
    while row.parent:
        caller = walk.processes.elements.get(row.parent)
        above = walk.processes.instances.get(caller.instance) if caller else None
        if above is None:
            break
        row = above
        found.append(walk.processes.plans[row.definition].process_id)
    return found[::-1]


# --- the name of a loop -----------------------------------------------------------------------


def loop(walk: "Walk", node: Node) -> str:
    """The elements that a token goes through again and again, as a person reads them."""
    if tree.of(walk).held:
        return "a loop"  # it has been told already
    nodes = walk.plan.nodes
    passed = [op.node for op in walk.ops if isinstance(op, ops.Passed | ops.Completed | ops.Joined)]
    often = [nodes[index] for index, _ in Counter(passed).most_common(_NAMES_SHOWN)]
    for each in (node, *often):
        if circle := _circle(walk.plan, each):
            ids = [found.id for found in circle]
            if len(ids) > _NAMES_SHOWN:
                ids = [*ids[: _NAMES_SHOWN // 2], "...", *ids[-_NAMES_SHOWN // 2 :]]
            return f"the loop {' -> '.join(ids)}"
        if each.loop is not None:
            return f"the items of {each.id!r}"
    ids = [*(nodes[index].id for index in passed[1 - _NAMES_SHOWN :]), node.id]
    return f"what leads by {' -> '.join(ids)}"


def _circle(plan: ProcessPlan, start: Node) -> list[Node]:
    """The shortest way from an element back to itself; a scope is left where it was entered."""
    before: dict[int, Node] = {}
    todo = deque([start])
    while todo:
        here = todo.popleft()
        for there in _next(here):
            if there is start:
                way = [start]
                while here is not start:
                    way.append(here)
                    here = before[here.index]
                return [start, *way[1:][::-1], start]
            if there.index not in before:
                before[there.index] = here
                todo.append(there)
    return []


def _next(node: Node) -> list[Node]:
    found = [way.target for way in node.ways]
    found += [event for event in (*node.events, *node.errors) if event is not node]
    if node.start is not None:
        found.append(node.start)
    scope = node.scope
    while not node.ways and scope is not None:  # its end is that of its scope
        found += [way.target for way in scope.ways]
        scope = None if scope.ways else scope.scope
    return found
