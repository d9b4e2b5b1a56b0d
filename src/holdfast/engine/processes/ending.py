"""Ends: of tokens, scopes and instances, and of what is ended before its time."""

from holdfast.engine.incidents.values import IncidentIntent
from holdfast.engine.jobs.commands import cancel_job
from holdfast.engine.jobs.values import JobEnded, JobState, Outcome
from holdfast.engine.messages import queue
from holdfast.engine.processes import activities, errors, happenings, loops, ops, waits
from holdfast.engine.processes.ops import Phase
from holdfast.engine.processes.plan import Node
from holdfast.engine.processes.state import ElementInstance, json_object
from holdfast.engine.processes.values import InstanceIntent, InstanceRef, Return
from holdfast.engine.processes.walk import NEXT_ITEM, Walk
from holdfast.limits import CALLS_EAGER, WALK_ENDINGS_MAX
from holdfast.model.definition import ElementKind
from holdfast.records import ValueType

THEN_NOTHING = -1  # what is left of the scope goes
THEN_COMPLETE = -2  # the scope is done, as if its last token had ended

_CHILDREN_AT_ONCE = 100


def end_event(walk: Walk, node: Node, scope: int, key: int) -> None:
    """A token ends; perhaps everything in its scope does, or an error goes out."""
    if node.element.error is not None:
        errors.throw_from(walk, node, scope, key, node.element.error)
        return
    walk.passed(node, scope, key)
    if node.element.terminate:
        if end_children(walk, scope, then=THEN_COMPLETE):
            scope_done(walk, scope)
        return
    walk.consume(scope)


def scope_done(walk: Walk, scope: int) -> None:
    """The last token of a scope ended."""
    if scope == walk.key:
        complete_instance(walk)
        return
    element = walk.element(scope)
    node = walk.plan.nodes[element.node]
    if element.item == loops.BODY:
        loops.complete(walk, node, scope)
    else:
        activities.leave(walk, scope, element, {})


# --- instances --------------------------------------------------------------------------------


def complete_instance(walk: Walk) -> None:
    """Every token of the instance ended."""
    processes, turn, row = walk.processes, walk.turn, walk.row
    _end_as(walk, InstanceIntent.COMPLETED)
    variables = json_object(processes.variables.get(walk.key) or {})
    _end(walk, ops.Ended(variables if row.keep_ms else b"", False, row.keep_ms, row.lock))
    if row.parent:

        def return_() -> None:
            value = Return(walk.key, variables, walk.spent + walk.moves)
            turn.command(ValueType.PROCESS_INSTANCE, InstanceIntent.RETURN, row.parent, value)

        walk.behind.append(return_)
    if row.lock:
        walk.behind.append(lambda: queue.release(turn, walk.plan.process_id, row.lock))
    outcome = Outcome(JobState.COMPLETED, variables, "", turn.now_ms, walk.plan.process_id)
    turn.effect(JobEnded(walk.key, outcome))


def cancel_instance(walk: Walk) -> None:
    """Everything of the instance is ended, over several steps if it is much."""
    turn = walk.turn
    if not end_children(walk, walk.key, then=THEN_NOTHING):
        return
    row = walk.row
    _end_as(walk, InstanceIntent.CANCELED)
    _end(walk, ops.Ended(b"", True, row.keep_ms, row.lock))
    if row.lock:
        walk.behind.append(lambda: queue.release(turn, walk.plan.process_id, row.lock))
    outcome = Outcome(JobState.CANCELED, b"null", "canceled", turn.now_ms, walk.plan.process_id)
    turn.effect(JobEnded(walk.key, outcome))


def _end_as(walk: Walk, intent: InstanceIntent) -> None:
    """That it was created, modified or migrated is told, even if it ends at once."""
    if walk.intent != InstanceIntent.ADVANCED:
        walk.flush()
    walk.intent = intent


def _end(walk: Walk, end: ops.Ended) -> None:
    instance = walk.processes.instances.get(walk.key)
    assert instance is not None
    if instance.due_ms:
        walk.do(ops.Resumed(walk.key, instance.due_ms))
    walk.do(end)
    walk.ended = True
    walk.todo.clear()
    walk.forget_scope(walk.key)


# --- ending what has not ended by itself ------------------------------------------------------


def end_children(walk: Walk, scope: int, then: int) -> bool:
    """Ends all that is active in a scope; False if there is more than fits in this step.

    The scope then goes on ending in the next ones, and `then` says what follows.
    """
    if _end_some(walk, scope):
        return True
    go_on_later(walk, scope, then)
    return False


def go_on_later(walk: Walk, scope: int, then: int) -> None:
    """The rest of a scope is ended in the next steps; nothing in it moves meanwhile."""
    walk.drop_moving(scope)
    incident = work = 0
    if scope != walk.key:
        element = walk.element(scope)
        incident, work = element.incident, element.work
    walk.do(ops.Changed(scope, Phase.TERMINATING, incident, then, work))
    walk.put_off(scope, walk.turn.now_ms, walk.spent + walk.moves)


def _end_some(walk: Walk, scope: int) -> bool:
    is_more = True
    while is_more:
        children = walk.processes.children_of(scope, _CHILDREN_AT_ONCE)
        is_more = len(children) == _CHILDREN_AT_ONCE  # a look costs as much as to end one of them
        for key in children:
            if walk.moves >= WALK_ENDINGS_MAX or (walk.moves and walk.is_enough()):
                return False
            if not terminate(walk, key, walk.element(key)):
                return False
    _drop_waiting(walk, scope)
    walk.drop_tokens(scope)
    return True


def _drop_waiting(walk: Walk, scope: int) -> None:
    """Tokens in front of the joins of a scope are gone with it."""
    inside = None if scope == walk.key else walk.plan.nodes[walk.element(scope).node]
    for node in walk.plan.nodes:
        if node.joins and node.scope is inside and walk.processes.tokens.get((scope, node.index)):
            walk.do(ops.TokensGone(scope, node.index))


def terminate(walk: Walk, key: int, element: ElementInstance) -> bool:
    """Ends an element instance and all inside; False if there is more than fits in this step."""
    node = walk.plan.nodes[element.node]
    if node.events and (element.item <= 0 or node.kind == ElementKind.CATCH):
        waits.end(walk, key, node.events)  # first of all: nothing may happen to it meanwhile
    body = element.item == loops.BODY
    if (body or node.kind == ElementKind.SUBPROCESS) and not _end_some(walk, key):
        return False
    if body and walk.processes.loops.get(key) is not None:
        walk.do(ops.LoopEnded(key))
    walk.moves += 1  # behind what is inside: a step ends one element at least, however deep
    _end_work(walk, node, element, body)
    walk.terminated(key, walk.element(key))
    walk.forget_scope(key)
    walk.count(element.scope, -1)
    return True


def _end_work(walk: Walk, node: Node, element: ElementInstance, body: bool) -> None:
    """The job, the called instance and the incident of an element that is ended."""
    turn = walk.turn
    if element.work and not body:
        if node.kind == ElementKind.CALL:
            walk.behind.append(lambda: _cancel_called(walk, element.work))
        else:
            walk.behind.append(lambda: cancel_job(turn, element.work))
    if element.incident:
        walk.behind.append(
            lambda: turn.event(
                ValueType.INCIDENT,
                IncidentIntent.DISCARDED,
                element.incident,
                turn.state.incidents.ending(element.incident),
            )
        )


def _cancel_called(walk: Walk, called: int) -> None:
    """A called instance ends with its caller: at once if few do, else in the steps that follow."""
    turn = walk.turn
    if len(turn.follow_ups) < CALLS_EAGER:
        turn.command(ValueType.PROCESS_INSTANCE, InstanceIntent.CANCEL, called, InstanceRef())
        return
    row = walk.processes.instances.get(called)
    if row is None or row.phase is Phase.TERMINATING:
        return
    ended = walk.in_another(called, row)
    go_on_later(ended, called, THEN_NOTHING)
    ended.finish()


def end_element(walk: Walk, key: int) -> None:
    """Ends an element instance for good; a scope that is empty then ends with it."""
    element = walk.element(key)
    if not terminate(walk, key, element):
        go_on_later(walk, key, THEN_NOTHING)
        return
    if not walk.count(element.scope, 0):
        _end_empty(walk, element.scope)


def _end_empty(walk: Walk, scope: int) -> None:
    """A scope lost its last token without any of them having come to an end."""
    if scope == walk.key:
        cancel_instance(walk)
        return
    element = walk.element(scope)
    progress = walk.processes.loops.get(scope) if element.item == loops.BODY else None
    if progress is None:
        end_element(walk, scope)
    elif progress.taken >= progress.total:
        loops.complete(walk, walk.plan.nodes[element.node], scope)
    elif not element.due_ms:  # one after another: the next one's turn
        walk.todo.append((walk.plan.nodes[element.node], scope, NEXT_ITEM))


def go_on(walk: Walk, scope: int, then: int) -> None:
    """A scope goes on with ending what is in it."""
    if then == THEN_COMPLETE:
        if end_children(walk, scope, then):
            scope_done(walk, scope)
    elif then != THEN_NOTHING:
        happenings.interrupt(walk, scope, walk.element(scope), walk.plan.nodes[then], {})
    elif scope == walk.key:
        cancel_instance(walk)
    else:
        end_element(walk, scope)
