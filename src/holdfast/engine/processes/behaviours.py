"""What each kind of element does with a token: the one table."""

from holdfast.engine.processes import activities, ending, gateways, happenings, loops
from holdfast.engine.processes.plan import Node
from holdfast.engine.processes.walk import Behaviours, Walk
from holdfast.model.definition import ElementKind


def _start(walk: Walk, node: Node, scope: int, key: int) -> None:
    if node.outputs:
        happenings.go_on_from(walk, node, scope, key, {})
        return
    walk.passed(node, scope, key)
    walk.leave(node, scope)


BEHAVIOURS: Behaviours = Behaviours(
    enter={
        ElementKind.START: _start,
        ElementKind.END: ending.end_event,
        ElementKind.PASS: activities.enter,
        ElementKind.JOB: activities.enter,
        ElementKind.EXPRESSION: activities.enter,
        ElementKind.EXCLUSIVE: gateways.exclusive,
        ElementKind.INCLUSIVE: gateways.inclusive,
        ElementKind.PARALLEL: gateways.parallel,
        ElementKind.EVENT_GATEWAY: gateways.event_gateway,
        ElementKind.CATCH: activities.enter,
        ElementKind.SUBPROCESS: activities.enter,
        ElementKind.CALL: activities.enter,
    },
    scope_done=ending.scope_done,
    next_item=loops.begin_items,
    settle=gateways.settle,
    pass_through=gateways.pass_through,
)
