"""Gateways: which ways a token takes, and which tokens become one."""

from holdfast.engine.incidents.values import IncidentReason
from holdfast.engine.processes import ops, waits
from holdfast.engine.processes.ops import Phase
from holdfast.engine.processes.plan import Node, Way
from holdfast.engine.processes.stuck import Stuck
from holdfast.engine.processes.walk import Walk
from holdfast.model.definition import ElementKind

_LOOKS_A_MOVE = 16  # elements looked at for a join, in the time that a token moves


def exclusive(walk: Walk, node: Node, scope: int, key: int) -> None:
    """The first way whose condition holds."""
    ways = _open_ways(walk, node, scope, only_first=True)
    walk.passed(node, scope, key)
    if ways:
        walk.follow(ways[0], scope)
    else:
        walk.consume(scope)


def inclusive(walk: Walk, node: Node, scope: int, key: int) -> None:
    """Every way whose condition holds. A join waits until no other token can come."""
    if not node.joins or key:
        _fork(walk, node, scope, key)


def parallel(walk: Walk, node: Node, scope: int, key: int) -> None:
    """Every way, once a token has come by each."""
    if node.joins:
        arrived = walk.processes.tokens.get((scope, node.index)) or ()
        if len(arrived) < node.incoming or not all(arrived):
            return
        walk.do(ops.Joined(scope, node.index))
        walk.count(scope, 1 - node.incoming)
    walk.passed(node, scope, key)
    walk.leave(node, scope)


def event_gateway(walk: Walk, node: Node, scope: int, key: int) -> None:
    """Waits for all events behind it; the first that happens decides."""
    prepared = waits.prepare(walk, node.events, walk.seen(scope))
    if key:
        walk.do(ops.Changed(key, Phase.ACTIVE))
    else:
        key = walk.turn.new_key()
        walk.do(ops.Activated(key, node.index, scope))
    waits.begin(walk, key, prepared)


def _fork(walk: Walk, node: Node, scope: int, key: int) -> None:
    ways = _open_ways(walk, node, scope, only_first=False)
    walk.passed(node, scope, key)
    if not ways:
        walk.consume(scope)
        return
    walk.count(scope, len(ways) - 1)
    for way in ways:
        walk.follow(way, scope)


def _open_ways(walk: Walk, node: Node, scope: int, *, only_first: bool) -> list[Way]:
    """The ways whose conditions hold; the default way if none does."""
    if all(way.condition is None and way is not node.default for way in node.ways):
        return node.ways[:1] if only_first else node.ways
    seen, found = walk.seen(scope), []
    for way in node.ways:
        if way is node.default:
            continue
        if way.condition is None or walk.typed(
            way.condition, seen, bool, f"the condition of flow {way.id!r}"
        ):
            found.append(way)
            if only_first:
                return found
    if not found and node.default is not None:
        found.append(node.default)
    if not found:
        conditions = ", ".join(repr(way.condition.text) for way in node.ways if way.condition)
        raise Stuck(
            IncidentReason.NO_MATCHING_FLOW,
            f"Expected a condition of gateway {node.id!r} to hold, but none does: {conditions}",
        )
    return found


def settle(walk: Walk) -> bool:
    """Inclusive joins for whose missing tokens nothing can come any more; whether one was found."""
    found = False
    for scope in sorted(walk.touched):
        if not walk.ended and (scope == walk.key or walk.processes.elements.get(scope) is not None):
            found = _settle_scope(walk, scope) or found
    return found


def _settle_scope(walk: Walk, scope: int) -> bool:
    rows = list(walk.processes.tokens.scan((scope,)))
    joins = [
        (node, tokens)
        for (_, index), tokens in rows
        if (node := walk.plan.nodes[index]).kind == ElementKind.INCLUSIVE
    ]
    if not joins:
        return False
    active = [element.node for _, element in walk.processes.all_children(scope)]
    walk.take_time(len(active) // _LOOKS_A_MOVE)
    for node, tokens in joins:
        others = active + [index for (_, index), _ in rows if index != node.index]
        if any(_may_come(walk, node, tokens, index) for index in others):
            continue
        came = sum(1 for each in tokens if each)
        walk.do(ops.Joined(scope, node.index))
        walk.count(scope, 1 - came)
        if walk.stays(node, scope):
            return True
        try:
            _fork(walk, node, scope, 0)
        except Stuck as stuck:
            walk.stick(node, scope, 0, stuck, Phase.ENTERING)
        return True  # tokens move again: the others are looked at when they have
    return False


def _may_come(walk: Walk, join: Node, tokens: tuple[int, ...], index: int) -> bool:
    """Whether a token elsewhere can still come by a way on which none waits yet.

    One that can as well come by a way that has a token already is not waited for: it may be in a
    circle that leads back here.
    """
    ways = walk.plan.ways_into(join)[index]
    waiting = {place for place, each in enumerate(tokens) if each}
    return bool(ways) and not ways & waiting


def pass_through(walk: Walk, node: Node, scope: int) -> None:
    """A token that was put on a join by hand goes on as if it were all that come together."""
    if node.kind == ElementKind.INCLUSIVE:
        try:
            _fork(walk, node, scope, 0)
        except Stuck as stuck:
            walk.stick(node, scope, 0, stuck, Phase.ENTERING)
    else:
        walk.passed(node, scope, 0)
        walk.leave(node, scope)
