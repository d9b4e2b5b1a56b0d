"""Instances: how one begins, and how a walk in one is taken up again."""

from holdfast.engine.kernel import Turn
from holdfast.engine.processes import happenings, ops, straight
from holdfast.engine.processes.behaviours import BEHAVIOURS
from holdfast.engine.processes.ops import Phase
from holdfast.engine.processes.state import ElementInstance, Instance
from holdfast.engine.processes.values import HeadedInstance, InstanceIntent, NewInstance
from holdfast.engine.processes.walk import Walk
from holdfast.engine.state import EngineState


def begin(
    turn: Turn[EngineState], key: int, definition: int, new: NewInstance,
    variables: dict[str, bytes],
) -> None:  # fmt: skip
    """A new instance runs, with its variables decoded, until all its tokens wait."""
    plan = turn.state.processes.plans[definition]
    node = plan.nodes[new.node] if new.node >= 0 else plan.start
    assert node is not None, "an instance begins at a start event"
    if straight.begins(turn, new, node):
        straight.begin(turn, key, plan, new, node, variables)
        return
    headers = new.headers if type(new) is HeadedInstance else None
    row = Instance(
        definition, 1, Phase.ACTIVE, new.parent, new.depth, new.keep_ms, lock=new.lock,
        root=new.root, headers=headers,
    )  # fmt: skip
    walk = Walk(turn, key, row, plan, BEHAVIOURS)
    walk.intent = InstanceIntent.CREATED
    if new.parent:
        walk.spent = new.moves
    walk.weigh(len(new.variables))
    # What a message brings belongs to its event: with outputs, only those reach the instance.
    is_mapped = bool(node.outputs) and node.element.message is not None
    known = {} if is_mapped else variables
    walk.do(ops.Began(known, new.parent, new.depth, new.keep_ms, new.lock, new.root))
    if headers:
        walk.do(ops.Headed(headers))
    if new.idempotency_key:
        walk.do(ops.Remembered(remembered_key(new), new.window_ms))
    if is_mapped:
        happenings.go_on_from(walk, node, key, 0, variables)
    else:
        walk.todo.append((node, key, 0))
    walk.run()
    walk.finish()


def remembered_key(new: NewInstance) -> str:
    """The idempotency key as it is remembered: apart from those of tasks and other processes."""
    return f"\x01{new.process_id}\x01{new.idempotency_key}"


def take_up(turn: Turn[EngineState], instance: int) -> Walk:
    """A walk in an instance that is there."""
    row = turn.state.processes.instances.get(instance)
    assert row is not None, f"instance {instance} is not there"
    return Walk(turn, instance, row, turn.state.processes.plans[row.definition], BEHAVIOURS)


def is_ending(turn: Turn[EngineState], element: ElementInstance) -> bool:
    """Whether the element, or a scope around it, is being ended: nothing goes on in it."""
    return take_up(turn, element.instance).is_ending(element)
