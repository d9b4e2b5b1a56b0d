"""What happens to the state when work is put off, goes on, or is counted for a tree of calls."""

from typing import TYPE_CHECKING

import msgspec

from holdfast.engine.due.dates import DueKind
from holdfast.engine.processes import ops
from holdfast.engine.state import EngineState
from holdfast.state import EMPTY

if TYPE_CHECKING:
    from holdfast.engine.processes.events import Place

_replace = msgspec.structs.replace


def count_items(state: EngineState, place: "Place", difference: int) -> None:
    """Counts items of loops in the tree of calls."""
    if difference:
        root = _root(state, place)
        state.processes.change_tree(
            root, lambda tree: _replace(tree, items=max(tree.items + difference, 0))
        )


def _root(state: EngineState, place: "Place") -> int:
    instance = state.processes.instances.get(place.instance)
    assert instance is not None
    return instance.root or place.instance


def deferred(state: EngineState, place: "Place", op: ops.Deferred) -> None:
    """An element or the instance goes on later."""
    if op.due_ms == ops.QUEUED:
        state.processes.deferred.insert((_root(state, place), op.key), EMPTY)
    else:
        state.due.add(op.due_ms, DueKind.CONTINUE, op.key)
    _put_due(state, place, op.key, op.due_ms, op.moves)


def resumed(state: EngineState, place: "Place", op: ops.Resumed) -> None:
    """It goes on."""
    if op.due_ms == ops.QUEUED:
        state.processes.deferred.delete((_root(state, place), op.key))
    else:
        state.due.remove(op.due_ms, DueKind.CONTINUE, op.key)
    _put_due(state, place, op.key, 0, 0)


def _put_due(state: EngineState, place: "Place", key: int, due_ms: int, moves: int) -> None:
    processes = state.processes
    if key == place.instance:
        instance = processes.instances.get(key)
        assert instance is not None
        processes.instances.put(key, _replace(instance, due_ms=due_ms))
        return
    element = processes.elements.get(key)
    assert element is not None
    processes.elements.put(key, _replace(element, due_ms=due_ms, moves=moves))


def tree_paced(state: EngineState, place: "Place", op: ops.TreePaced) -> None:
    """A tree of calls goes on at another time, or is held."""
    tree = state.processes.tree(op.root)
    if tree is not None and tree.due_ms != op.due_ms:
        if tree.due_ms:
            state.due.remove(tree.due_ms, DueKind.TREE, op.root)
        if op.due_ms:
            state.due.add(op.due_ms, DueKind.TREE, op.root)
    state.processes.change_tree(
        op.root,
        lambda tree: _replace(
            tree, due_ms=op.due_ms, moves=op.moves, held=op.held, granted=op.granted
        ),
    )
