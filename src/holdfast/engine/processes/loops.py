"""Multi-instance activities: one instance for each item, one after another or side by side.

The body is the activity as a whole: it has the token and the boundary events. Items are begun in
bounded chunks; while the body has many, further chunks come at a slower pace, so that live commands
go on and memory does not grow with the collection.
"""

from typing import Any

from holdfast.engine.incidents.values import IncidentReason
from holdfast.engine.processes import activities, bounds, ending, ops, tree, waits
from holdfast.engine.processes.ops import Phase
from holdfast.engine.processes.plan import Node
from holdfast.engine.processes.state import LOOP_CHUNK_ITEMS, LoopProgress
from holdfast.engine.processes.stuck import Stuck
from holdfast.engine.processes.variables import Seen, to_json
from holdfast.engine.processes.walk import NEXT_ITEM, Walk
from holdfast.limits import (
    LOOP_BITE_ITEMS,
    LOOP_EAGER_ITEMS,
    LOOP_PAUSE_MS,
    VARIABLES_BYTES_MAX,
)
from holdfast.model.definition import ElementKind
from holdfast.model.feel import FeelError, decode_json, encode_json

BODY = -1  # the `item` of a body
_WAITING = (ElementKind.JOB, ElementKind.CATCH, ElementKind.CALL)  # an item of these is no loop


def enter(walk: Walk, node: Node, scope: int, key: int) -> None:
    """A token comes to the activity: its items are worked out and the first ones begin."""
    loop = node.loop
    assert loop is not None
    seen = walk.seen(scope)
    items = walk.typed(loop.collection, seen, list, f"the collection of {node.id!r}")
    prepared = waits.prepare(walk, _boundaries(node), seen)
    chunks = tuple(
        encode_json(items[at : at + LOOP_CHUNK_ITEMS])
        for at in range(0, len(items), LOOP_CHUNK_ITEMS)
    )
    if (size := sum(map(len, chunks))) > VARIABLES_BYTES_MAX:
        raise Stuck(
            IncidentReason.LIMIT_REACHED,
            f"Expected a collection of at most {VARIABLES_BYTES_MAX} bytes for {node.id!r},"
            f" but found {size}",
        )
    if key:
        walk.do(ops.Changed(key, Phase.ACTIVE))
    else:
        key = walk.turn.new_key()
        walk.do(ops.Activated(key, node.index, scope, Phase.ACTIVE, 0, BODY))
    walk.weigh(size)
    walk.do(ops.LoopBegan(key, len(items), chunks))
    waits.begin(walk, key, prepared)
    begin_items(walk, node, key)


def _boundaries(node: Node) -> list[Node]:
    return [event for event in node.events if event is not node]


def begin_items(walk: Walk, node: Node, body: int) -> None:
    """The next item, or the next chunk of them; the end if there are none."""
    progress = _progress(walk, body)
    loop = node.loop
    assert loop is not None
    if progress.taken >= progress.total:
        if not walk.count(body, 0):
            complete(walk, node, body)
        return
    number, at = divmod(progress.taken, LOOP_CHUNK_ITEMS)
    raw = walk.processes.loop_items.get((body, number))
    assert raw is not None, "the items of a loop are not there"
    items = decode_json(raw)[at : at + 1] if loop.sequential else decode_json(raw)[at:]
    bite = _bite(node)
    for start in range(0, len(items), bite):
        if start and (walk.is_enough() or not activities.may_call(walk, node)):
            break
        if why := bounds.excess_items(walk, node):
            walk.stick(node, walk.element(body).scope, body, Stuck.beyond(why), Phase.ACTIVE)
            return
        if not _begin_bite(walk, node, body, items[start : start + bite]):
            return
    progress = _progress(walk, body)
    if not loop.sequential and progress.taken < progress.total:
        if walk.count(body, 0) > LOOP_EAGER_ITEMS:
            walk.put_off(body, walk.turn.now_ms + LOOP_PAUSE_MS)
        else:
            tree.queue(walk, body)


def _bite(node: Node) -> int:
    """How many items begin between two looks at the clock."""
    if node.kind == ElementKind.CALL:
        return 1
    is_quick = node.kind == ElementKind.JOB and not node.inputs and isinstance(node.job_type, str)
    return LOOP_CHUNK_ITEMS if is_quick else LOOP_BITE_ITEMS


def _begin_bite(walk: Walk, node: Node, body: int, items: list[Any]) -> bool:
    """A few items begin; False if those that did not have to wait were enough."""
    loop, first = node.loop, _progress(walk, body).taken
    assert loop is not None
    walk.do(ops.LoopTaken(body, first + len(items)))
    walk.count(body, len(items))
    for item, value in enumerate(items, first + 1):
        local: dict[str, Any] = {"loopCounter": item}
        if loop.item:
            local[loop.item] = value
        if node.kind in _WAITING:
            walk.take_time(1)
        elif not loop.sequential:  # that one counts when its turn comes
            walk.moves += 1
        begin_item(walk, node, body, 0, item, local)
        if walk.processes.loops.get(body) is None or walk.element(body).phase != Phase.ACTIVE:
            return False
    return True


def begin_item(
    walk: Walk, node: Node, body: int, key: int, item: int, local: dict[str, Any]
) -> None:
    """One item begins; `key` if it has an instance already, which was stuck."""
    try:
        activities.begin(walk, node, body, key, item, local)
    except (Stuck, FeelError) as problem:
        if not key:
            key = walk.turn.new_key()
            walk.do(ops.Activated(key, node.index, body, Phase.ENTERING, 0, item))
            walk.do(ops.VariablesSet(key, to_json(local)))
        walk.stick(node, body, key, Stuck.of(problem, node), Phase.ENTERING)


def item_passed(
    walk: Walk, node: Node, body: int, key: int, item: int, seen: Seen, values: dict[str, Any]
) -> None:
    """An item that did not have to wait is done."""
    loop = node.loop
    assert loop is not None
    result = b""
    if loop.output is not None:
        seen.update(values)
        what = f"the result of an item of {node.id!r}"
        result = encode_json(walk.value(loop.output, seen, what))
        values = {name: each for name, each in values.items() if name not in loop.output.names}
    walk.propagate(body, to_json(values))
    enough = is_enough(walk, node, body)
    walk.passed(node, body, key)
    item_done(walk, node, body, item, result, enough)


def item_done(walk: Walk, node: Node, body: int, item: int, result: bytes, enough: bool) -> None:
    """An item is done: perhaps the body is, or the next one begins."""
    loop = node.loop
    assert loop is not None
    walk.weigh(len(result))
    walk.do(ops.LoopDone(body, item, result))
    active = walk.count(body, -1)
    if enough:
        if not ending.end_children(walk, body, then=ending.THEN_COMPLETE):
            return
        complete(walk, node, body)
    elif not active:
        progress = _progress(walk, body)
        if progress.taken >= progress.total:
            complete(walk, node, body)
        elif loop.sequential:
            walk.todo.append((node, body, NEXT_ITEM))


def is_enough(walk: Walk, node: Node, body: int) -> bool:
    """Whether the rest is left out once the item is done that is about to be."""
    loop = node.loop
    assert loop is not None
    if loop.until is None:
        return False
    progress = _progress(walk, body)
    counts = {
        "numberOfInstances": progress.total,
        "numberOfActiveInstances": walk.count(body, 0) - 1,
        "numberOfCompletedInstances": progress.done + 1,
        "numberOfTerminatedInstances": 0,
    }
    return walk.value(loop.until, walk.seen(body, counts), f"the completion of {node.id!r}") is True


def complete(walk: Walk, node: Node, body: int) -> None:
    """Every item is done: the results go out and the token goes on."""
    scope = walk.element(body).scope
    loop, progress = node.loop, _progress(walk, body)
    assert loop is not None
    values: dict[str, bytes] = {}
    if loop.collect:
        values[loop.collect] = _collected(walk, body, progress)
    try:
        walk.propagate(scope, values)
    except Stuck as stuck:  # the results are too large: they stay where they are
        walk.stick(node, scope, body, stuck, Phase.LEAVING)
        return
    if boundaries := _boundaries(node):
        waits.end(walk, body, boundaries)
    walk.do(ops.LoopEnded(body))
    walk.completed(body, walk.element(body))
    walk.forget_scope(body)
    walk.leave(node, scope)


def _collected(walk: Walk, body: int, progress: LoopProgress) -> bytes:
    """The results in the order of the items; null for those that were not done."""
    parts: list[bytes] = []
    for number in range(-(-progress.total // LOOP_CHUNK_ITEMS)):
        chunk = walk.processes.loop_results.get((body, number)) or ()
        size = min(LOOP_CHUNK_ITEMS, progress.total - number * LOOP_CHUNK_ITEMS)
        parts += [raw or b"null" for raw in chunk] + [b"null"] * (size - len(chunk))
    return b"[" + b",".join(parts) + b"]"


def _progress(walk: Walk, body: int) -> LoopProgress:
    progress = walk.processes.loops.get(body)
    assert progress is not None, f"the loop of {body} is not there"
    return progress


def item_locals(walk: Walk, key: int) -> dict[str, Any]:
    """The variables that an item began, or was to begin, with."""
    raw = walk.processes.variables.get(key) or {}
    return {name: decode_json(value) for name, value in raw.items()}
