"""Activities: how they begin, what they wait for, and what comes out of them."""

from typing import Any

import msgspec

from holdfast.engine.incidents.values import IncidentReason
from holdfast.engine.jobs.values import Backoff, NewJob
from holdfast.engine.processes import bounds, happenings, loops, ops, tree, waits
from holdfast.engine.processes.ops import Phase
from holdfast.engine.processes.plan import Assignment, Node
from holdfast.engine.processes.state import ElementInstance, json_object
from holdfast.engine.processes.stuck import Stuck, check_size
from holdfast.engine.processes.values import HeadedInstance, InstanceIntent, NewInstance
from holdfast.engine.processes.variables import Seen, assign, to_json
from holdfast.engine.processes.walk import Walk
from holdfast.limits import CALL_EAGER_MOVES, CALL_MOVES, CALLS_EAGER, RETRIES_MAX
from holdfast.model.definition import Binding, ElementKind
from holdfast.model.feel import FeelError, encode_json
from holdfast.records import ValueType

# --- beginning --------------------------------------------------------------------------------


def enter(walk: Walk, node: Node, scope: int, key: int) -> None:
    """A token comes to an activity: once, or once for each item."""
    if node.loop is not None:
        loops.enter(walk, node, scope, key)
    else:
        begin(walk, node, scope, key, 0, None)


def begin(
    walk: Walk, node: Node, scope: int, key: int, item: int, local: dict[str, Any] | None
) -> None:
    """Begins the activity, for an item with these local variables or as such."""
    if node.plain and local is None:
        if node.kind is ElementKind.JOB and not key:
            _plain_job(walk, node, scope)
            return
        _WORK[node.kind](walk, node, scope, key, item, None, None)
        return
    known = dict(local or ())
    seen = walk.seen(scope, dict(known))
    for each in node.inputs:
        value = walk.value(each.source, seen, f"an input of {node.id!r}")
        assign(each, value, known, seen)
        seen.update(known)
    prepared = None if item else waits.prepare(walk, node.events, seen)
    _WORK[node.kind](walk, node, scope, key, item, known, (seen, prepared))


Prepared = tuple[Seen, list[waits.Wait] | None] | None


def _activate(
    walk: Walk, node: Node, scope: int, key: int, work: int, item: int,
    local: dict[str, Any] | None, prepared: Prepared,
) -> int:  # fmt: skip
    """The activity is active: it has an instance, its variables and its events."""
    values = to_json(local or {})
    check_size(values)  # while nothing has happened yet
    if key:
        walk.do(ops.Changed(key, Phase.ACTIVE, work=work))
    else:
        key = walk.turn.new_key()
        walk.do(ops.Activated(key, node.index, scope, Phase.ACTIVE, work, item))
    if values:
        walk.set_variables(key, values)
    if prepared is not None and prepared[1]:
        waits.begin(walk, key, prepared[1])
    return key


def _job(
    walk: Walk, node: Node, scope: int, key: int, item: int,
    local: dict[str, Any] | None, prepared: Prepared,
) -> None:  # fmt: skip
    """A worker does it."""
    if prepared is None:
        type_, retries = node.job_type, node.retries
    else:
        seen = prepared[0]
        type_ = walk.text(node.job_type, seen, f"the job type of {node.id!r}")
        retries = node.retries
        if not isinstance(retries, int):
            retries = walk.typed(retries, seen, int, f"the retries of {node.id!r}")
    assert isinstance(type_, str) and isinstance(retries, int)
    job = walk.turn.new_key()
    key = _activate(walk, node, scope, key, job, item, local, prepared)
    new = NewJob(
        type_, b"", retries=min(max(retries, 0), RETRIES_MAX), element_key=key,
        instance_key=walk.key,
    )  # fmt: skip
    walk.jobs.append((job, new))


def _plain_job(walk: Walk, node: Node, scope: int) -> None:
    """Like `_job` for the job of a sequence, which needs no expression: most of them are."""
    turn = walk.turn
    job, key = turn.new_key(), turn.new_key()
    walk.do(ops.Activated(key, node.index, scope, _ACTIVE, job))
    type_, retries = node.job_type, node.retries
    assert isinstance(type_, str) and isinstance(retries, int), "a plain job has no expressions"
    new = NewJob(type_, b"", 0, retries, _BACKOFF, element_key=key, instance_key=walk.key)
    walk.jobs.append((job, new))


_ACTIVE, _BACKOFF = Phase.ACTIVE, Backoff()


def _pass(
    walk: Walk, node: Node, scope: int, key: int, item: int,
    local: dict[str, Any] | None, prepared: Prepared,
) -> None:  # fmt: skip
    """Nothing is to be done, or an expression does it: the token does not stop."""
    seen = prepared[0] if prepared is not None else walk.seen(scope)
    values: dict[str, Any] = {}
    if node.expression is not None:
        values[node.element.result] = walk.value(node.expression, seen, f"{node.id!r}")
        seen.update(values)
    if node.outputs:
        values = _outputs(walk, node.outputs, seen)
    if item:
        loops.item_passed(walk, node, scope, key, item, seen, values)
        return
    walk.propagate(scope, to_json(values))
    walk.passed(node, scope, key)
    walk.leave(node, scope)


def _sub_process(
    walk: Walk, node: Node, scope: int, key: int, item: int,
    local: dict[str, Any] | None, prepared: Prepared,
) -> None:  # fmt: skip
    """A scope of its own, that begins at its start."""
    key = _activate(walk, node, scope, key, 0, item, local, prepared)
    assert node.start is not None
    walk.count(key, 1)
    walk.todo.append((node.start, key, 0))


def _call(
    walk: Walk, node: Node, scope: int, key: int, item: int,
    local: dict[str, Any] | None, prepared: Prepared,
) -> None:  # fmt: skip
    """Another process runs, on this partition, and its end is waited for."""
    seen = prepared[0] if prepared is not None else walk.seen(scope)
    process_id = walk.text(node.called, seen, f"the called process of {node.id!r}")
    definition, version = _called(walk, node, process_id)
    if walk.processes.plans[definition].start is None:
        raise Stuck(
            IncidentReason.CALLED_PROCESS_MISSING,
            f"Expected process {process_id!r}, which {node.id!r} calls, to have a start without a"
            " trigger, but it is started by messages or timers only",
        )
    if why := bounds.excess_depth(walk, node, process_id):
        raise Stuck(IncidentReason.LIMIT_REACHED, why, holds=True)
    if why := bounds.excess_calls(walk, node, process_id):
        raise Stuck.beyond(why)
    if not item and not may_call(walk, node):
        walk.defer(node, scope, key)
        return
    values = (
        walk.processes.visible(scope, walk.key) | to_json(local or {})
        if node.element.pass_all
        else to_json(local or {})
    )
    walk.weigh(check_size(values))
    called = walk.turn.new_key()
    key = _activate(walk, node, scope, key, called, item, local, prepared)
    turn, root = walk.turn, tree.root_of(walk)
    variables = json_object(values)
    walk.calls += 1
    walk.moves += CALL_MOVES

    def create() -> None:
        new = NewInstance(
            process_id, version, variables, parent=key, depth=walk.row.depth + 1, root=root,
            moves=walk.spent + walk.moves,
        )  # fmt: skip
        if walk.row.headers:
            new = HeadedInstance(**msgspec.structs.asdict(new), headers=walk.row.headers)
        turn.command(ValueType.PROCESS_INSTANCE, InstanceIntent.CREATE, called, new)

    walk.behind.append(create)


def may_call(walk: Walk, node: Node) -> bool:
    """Whether a call may follow at once; otherwise live commands come before it."""
    if node.kind != ElementKind.CALL or (walk.is_proceeding and not walk.calls):
        return True
    return walk.calls + len(walk.turn.follow_ups) < CALLS_EAGER and walk.spent < CALL_EAGER_MOVES


def _called(walk: Walk, node: Node, process_id: str) -> tuple[int, int]:
    """The version that is called: its key, and its number or 0 for the latest."""
    processes, binding, which = walk.processes, node.element.binding, ""
    match binding:
        case Binding.DEPLOYMENT:
            definition = processes.bound_to(walk.plan.key, process_id)
            which = f" that was deployed together with version {walk.plan.version} of its caller"
        case Binding.VERSION_TAG:
            definition = processes.tagged(process_id, node.element.version_tag)
            which = f" with the version tag {node.element.version_tag!r}"
        case Binding.LATEST:
            definition = processes.latest.get(process_id)
    if definition is None:
        raise Stuck(
            IncidentReason.CALLED_PROCESS_MISSING,
            f"Expected a process {process_id!r}{which} for {node.id!r} to call,"
            " but none is deployed",
        )
    if binding is Binding.LATEST:
        return definition, 0
    stored = processes.definitions.get(definition)
    assert stored is not None
    return definition, stored.version


def _receive(
    walk: Walk, node: Node, scope: int, key: int, item: int,
    local: dict[str, Any] | None, prepared: Prepared,
) -> None:  # fmt: skip
    """Waits for its time or its message."""
    assert prepared is not None, "what catches an event has one to wait for"
    if prepared[1] is None:  # one of many items waits for its own event
        prepared = prepared[0], waits.prepare(walk, node.events[:1], prepared[0])
    _activate(walk, node, scope, key, 0, item, local, prepared)


_WORK = {
    ElementKind.JOB: _job,
    ElementKind.PASS: _pass,
    ElementKind.EXPRESSION: _pass,
    ElementKind.SUBPROCESS: _sub_process,
    ElementKind.CALL: _call,
    ElementKind.CATCH: _receive,
}


# --- ending -----------------------------------------------------------------------------------


def leave(walk: Walk, key: int, element: ElementInstance, values: dict[str, bytes]) -> None:
    """The activity has done what it is for, with these variables."""
    node = walk.plan.nodes[element.node]
    try:
        _leave(walk, key, element, node, values)
    except (Stuck, FeelError) as problem:
        if values:
            happenings.keep_values(walk, key, values)
        walk.stick(node, element.scope, key, Stuck.of(problem, node), Phase.LEAVING)


def _leave(
    walk: Walk, key: int, element: ElementInstance, node: Node, values: dict[str, bytes]
) -> None:
    result = b""
    out = values
    item = element.item
    if node.outputs or (item > 0 and node.loop is not None and node.loop.output is not None):
        seen = Seen([(key, values), *walk.layers(key)])
        if node.outputs:
            out = to_json(_outputs(walk, node.outputs, seen))
            seen = Seen([(key, out), *seen.layers])
        if item > 0 and node.loop is not None and node.loop.output is not None:
            what = f"the result of an item of {node.id!r}"
            result = encode_json(walk.value(node.loop.output, seen, what))
            out = {name: raw for name, raw in out.items() if name not in node.loop.output.names}
    enough = item > 0 and loops.is_enough(walk, node, element.scope)
    if out:
        inner = key if element.local and not node.outputs else element.scope
        walk.propagate(inner, out)
    if node.events and item <= 0:
        waits.end(walk, key, node.events)
    elif item > 0 and node.kind == ElementKind.CATCH:
        waits.end(walk, key, node.events[:1])
    walk.completed(key, element)
    walk.forget_scope(key)
    if item > 0:
        loops.item_done(walk, node, element.scope, item, result, enough)
    else:
        walk.leave(node, element.scope)


def _outputs(walk: Walk, outputs: list[Assignment], seen: Seen) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for each in outputs:
        value = walk.value(each.source, seen, "an output")
        assign(each, value, found, seen)
    return found
