"""What a tree of calls puts off: an instance, those that it called, and those that they called.

A token that has moved far enough for one step is stored where it is and waits in the queue of its
tree. The queue has one due date, whatever its length: live commands pass between two steps, and
other trees have their turn. What has no bound otherwise is counted here. Beyond a limit the tree is
held: one incident names the loop, and the queue stands still until a person resolves it.
"""

from typing import TYPE_CHECKING

from holdfast.engine.incidents.values import Incident, IncidentIntent
from holdfast.engine.processes import ops
from holdfast.engine.processes.ops import QUEUED, Phase
from holdfast.engine.processes.state import Tree
from holdfast.limits import SCOPE_TOKENS_MAX
from holdfast.records import ValueType

if TYPE_CHECKING:
    from holdfast.engine.processes.plan import Node
    from holdfast.engine.processes.stuck import Stuck
    from holdfast.engine.processes.walk import Walk


def root_of(walk: "Walk") -> int:
    """The instance at the root of the walk's tree of calls."""
    return walk.row.root or walk.key


def of(walk: "Walk") -> Tree:
    """What is known of the walk's tree."""
    return walk.processes.tree(root_of(walk)) or Tree()


def allowed(walk: "Walk", limit: int) -> int:
    """A limit, as often as a person has granted it."""
    return limit * (1 + of(walk).granted)


def is_full(walk: "Walk", scope: int) -> bool:
    """Whether the tree is held and the scope may have no more tokens."""
    return walk.stored_tokens(scope) >= SCOPE_TOKENS_MAX and of(walk).held != 0


def queue(walk: "Walk", key: int) -> None:
    """An element, or the instance, goes on in a later step, in the turn of its tree."""
    if walk.processes.tree(root_of(walk)) is None:  # it is about to be canceled like its root
        walk.put_off(key, walk.turn.now_ms)
        return
    rows = walk.processes.instances if key == walk.key else walk.processes.elements
    row = rows.get(key)
    assert row is not None, f"{key} is not there"
    if row.due_ms != QUEUED:
        walk.put_off(key, QUEUED)
    walk.is_queued = True


def hold(walk: "Walk", node: "Node", key: int, stuck: "Stuck", phase: Phase) -> None:
    """An element waits for a person, and all that its tree has put off waits with it."""
    queue(walk, key)
    tree, turn = of(walk), walk.turn
    if tree.held or walk.processes.tree(root_of(walk)) is None:
        return
    element = walk.element(key)
    incident = turn.new_key()
    walk.do(ops.Changed(key, phase, incident, element.then, element.work))
    walk.do(ops.TreePaced(root_of(walk), 0, tree.moves, key, tree.granted))
    value = Incident(
        0, "", stuck.reason, stuck.message, turn.now_ms, key, walk.key, node.id,
        walk.plan.process_id,
    )  # fmt: skip
    walk.behind.append(
        lambda: turn.event(ValueType.INCIDENT, IncidentIntent.CREATED, incident, value)
    )


def release(walk: "Walk", key: int, *, grant: bool) -> None:
    """The element holds its tree no longer; with a grant it has another budget."""
    tree = of(walk)
    if tree.held == key:
        is_more = walk.processes.next_deferred(root_of(walk)) is not None
        due_ms = walk.turn.now_ms if is_more else 0
        walk.do(ops.TreePaced(root_of(walk), due_ms, 0, 0, tree.granted + grant))


def pace(walk: "Walk") -> None:
    """At the end of a walk: when the tree goes on, if it has put off something."""
    root = root_of(walk)
    tree = walk.processes.tree(root)
    if tree is None or (not walk.is_proceeding and (tree.held or tree.due_ms)):
        return
    if walk.processes.next_deferred(root) is None:
        due_ms = moves = 0  # every token waits again
    else:
        due_ms = 0 if tree.held else walk.turn.now_ms
        moves = max(tree.moves, walk.spent + walk.moves)
    if (due_ms, moves) != (tree.due_ms, tree.moves):
        walk.do(ops.TreePaced(root, due_ms, moves, tree.held, tree.granted))
