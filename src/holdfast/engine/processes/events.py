"""What happens to the state when something happened to a process: one applier an event or change.

The changes inside an event are applied one by one, live and on replay, by the same functions.
"""

from collections.abc import Callable
from typing import Any

import msgspec

from holdfast.engine.due.dates import DueKind
from holdfast.engine.jobs.values import JobState, Outcome
from holdfast.engine.processes import ops
from holdfast.engine.processes.deferring import count_items, deferred, resumed, tree_paced
from holdfast.engine.processes.state import (
    LOOP_CHUNK_ITEMS,
    ElementInstance,
    Instance,
    LoopProgress,
    StartMessage,
    StoredDefinition,
    Subscription,
    Timer,
)
from holdfast.engine.processes.values import Advance, Deployment, InstanceRef, StartFiring
from holdfast.engine.state import EngineState
from holdfast.model.definition import ElementKind, decode_definition
from holdfast.records import Record
from holdfast.state import EMPTY

_replace = msgspec.structs.replace


class Place:
    """Where a change belongs: the instance, its definition and the moment."""

    __slots__ = ("definition", "instance", "now_ms")

    def __init__(self, instance: int, definition: int, now_ms: int) -> None:
        self.instance = instance
        self.definition = definition
        self.now_ms = now_ms


# --- definitions ------------------------------------------------------------------------------


def deployed(state: EngineState, event: Record) -> None:
    new: Deployment = event.value
    processes = state.processes
    previous = processes.latest.get(new.process_id)
    stored = StoredDefinition(
        new.process_id, new.version, new.digest, new.body, new.deployed_ms, new.source, new.bound
    )
    processes.definitions.insert(event.key, stored)
    processes.versions.insert((new.process_id, new.version, event.key), EMPTY)
    processes.latest.put(new.process_id, event.key)
    if previous is not None:
        _stop_starting(state, previous)
    for timer in new.timers:
        processes.start_timers.insert((event.key, timer.node), timer)
        state.due.add(timer.due_ms, DueKind.START_TIMER, event.key)
    definition = decode_definition(new.body)
    if definition.version_tag:
        processes.tag(new.process_id, definition.version_tag, event.key)
    for node, element in enumerate(definition.elements):
        if element.message is not None and element.kind == ElementKind.START:
            known = processes.start_messages.get(element.message.name) or ()
            waiting = StartMessage(new.process_id, event.key, node)
            processes.start_messages.put(element.message.name, (*known, waiting))


def _stop_starting(state: EngineState, definition: int) -> None:
    """A new version is there: the start events of the one before wait no longer."""
    processes = state.processes
    stored = processes.definitions.get(definition)
    assert stored is not None
    for node, element in enumerate(decode_definition(stored.body).elements):
        if element.kind != ElementKind.START:
            continue
        if element.timer is not None and (timer := processes.start_timers.get((definition, node))):
            processes.start_timers.delete((definition, node))
            state.due.remove(timer.due_ms, DueKind.START_TIMER, definition)
        if element.message is not None:
            known = processes.start_messages.get(element.message.name) or ()
            left = tuple(each for each in known if each.definition != definition)
            if left:
                processes.start_messages.put(element.message.name, left)
            elif known:
                processes.start_messages.delete(element.message.name)


def fired(state: EngineState, event: Record) -> None:
    firing: StartFiring = event.value
    state.due.remove(firing.due_ms, DueKind.START_TIMER, event.key)
    state.processes.start_timers.delete((event.key, firing.node))
    if firing.next is not None:
        state.processes.start_timers.put((event.key, firing.node), firing.next)
        state.due.add(firing.next.due_ms, DueKind.START_TIMER, event.key)


# --- instances --------------------------------------------------------------------------------


def advanced(state: EngineState, event: Record) -> None:
    step: Advance = event.value
    place = Place(event.key, step.definition, event.timestamp_ms)
    for op in step.ops:
        APPLY[type(op)](state, place, op)


def last_key(step: Advance | InstanceRef) -> int:
    return step.last_key if isinstance(step, Advance) else 0


def deleted(state: EngineState, event: Record) -> None:
    state.jobs.forget(event.key)


def began(state: EngineState, place: Place, op: ops.Began) -> None:
    instance = Instance(
        place.definition, 1, ops.Phase.ACTIVE, op.parent, op.depth, op.keep_ms, place.now_ms,
        op.lock, root=op.root,
    )  # fmt: skip
    state.processes.instances.insert(place.instance, instance)
    state.processes.variables.insert(place.instance, op.variables)
    if op.root:
        state.processes.change_tree(op.root, lambda tree: _replace(tree, called=tree.called + 1))
    if op.lock:
        state.messages.lock(_process_id(state, place.definition), op.lock, place.instance)


def _process_id(state: EngineState, definition: int) -> str:
    stored = state.processes.definitions.get(definition)
    assert stored is not None
    return stored.process_id


def _activated(state: EngineState, place: Place, op: ops.Activated) -> None:
    element = ElementInstance(
        place.instance, op.node, op.scope, op.phase, op.work, op.item, created_ms=place.now_ms
    )
    state.processes.activate(op.key, element)


def _passed(state: EngineState, place: Place, op: ops.Passed) -> None:
    """It only tells."""


def _removed(state: EngineState, place: Place, op: ops.Completed | ops.Terminated) -> None:
    state.processes.remove(op.key, op.scope, op.local)


def _changed(state: EngineState, place: Place, op: ops.Changed) -> None:
    processes = state.processes
    if op.key == place.instance:
        instance = processes.instances.get(op.key)
        assert instance is not None
        processes.instances.put(op.key, _replace(instance, phase=op.phase, then=op.then))
        return
    element = processes.elements.get(op.key)
    assert element is not None
    changed = _replace(element, phase=op.phase, incident=op.incident, then=op.then, work=op.work)
    processes.elements.put(op.key, changed)


def _counted(state: EngineState, place: Place, op: ops.Counted) -> None:
    processes = state.processes
    if op.scope == place.instance:
        instance = processes.instances.get(op.scope)
        assert instance is not None
        processes.instances.put(op.scope, _replace(instance, tokens=op.tokens))
    else:
        element = processes.elements.get(op.scope)
        assert element is not None
        processes.elements.put(op.scope, _replace(element, tokens=op.tokens))


def _arrived(state: EngineState, place: Place, op: ops.Arrived) -> None:
    row = (op.scope, op.node)
    tokens = list(state.processes.tokens.get(row) or ())
    tokens += [0] * (op.flow + 1 - len(tokens))
    tokens[op.flow] += 1
    state.processes.tokens.put(row, tuple(tokens))


def _joined(state: EngineState, place: Place, op: ops.Joined) -> None:
    row = (op.scope, op.node)
    tokens = tuple(max(each - 1, 0) for each in state.processes.tokens.get(row) or ())
    if any(tokens):
        state.processes.tokens.put(row, tokens)
    else:
        state.processes.tokens.delete(row)


def _variables_set(state: EngineState, place: Place, op: ops.VariablesSet) -> None:
    processes = state.processes
    if op.scope != place.instance:
        element = processes.elements.get(op.scope)
        assert element is not None
        if not element.local:
            processes.elements.put(op.scope, _replace(element, local=True))
            processes.variables.insert(op.scope, op.values)
            return
    processes.set_variables(op.scope, op.values)


def _timer_set(state: EngineState, place: Place, op: ops.TimerSet) -> None:
    timer = Timer(op.element, op.node, op.due_ms, op.left, op.cycle, op.moves)
    state.processes.timers.insert(op.key, timer)
    state.processes.waits.put((op.element, op.node), op.key)
    state.due.add(op.due_ms, DueKind.TIMER, op.key)


def _timer_gone(state: EngineState, place: Place, op: ops.TimerGone) -> None:
    timer = state.processes.timers.get(op.key)
    assert timer is not None
    state.processes.timers.delete(op.key)
    state.processes.waits.delete((op.element, op.node))
    state.due.remove(timer.due_ms, DueKind.TIMER, op.key)


def _subscribed(state: EngineState, place: Place, op: ops.Subscribed) -> None:
    subscription = Subscription(op.element, op.node, op.name, op.correlation)
    state.processes.subscriptions.insert(op.key, subscription)
    state.processes.waits.put((op.element, op.node), op.key)


def _unsubscribed(state: EngineState, place: Place, op: ops.Unsubscribed) -> None:
    state.processes.subscriptions.delete(op.key)
    state.processes.waits.delete((op.element, op.node))


def _loop_began(state: EngineState, place: Place, op: ops.LoopBegan) -> None:
    state.processes.loops.insert(op.body, LoopProgress(op.total))
    for number, chunk in enumerate(op.chunks):
        state.processes.loop_items.insert((op.body, number), chunk)


def _loop_taken(state: EngineState, place: Place, op: ops.LoopTaken) -> None:
    loop = state.processes.loops.get(op.body)
    assert loop is not None
    taken = op.taken - loop.taken
    counted = taken if taken > 1 else 0  # those that come one by one are never many
    changed = _replace(loop, taken=op.taken, counted=loop.counted + counted)
    state.processes.loops.put(op.body, changed)
    count_items(state, place, counted)
    first, last = loop.taken // LOOP_CHUNK_ITEMS, op.taken // LOOP_CHUNK_ITEMS
    for number in range(first, last + (op.taken == loop.total)):
        state.processes.loop_items.delete((op.body, number))


def _loop_done(state: EngineState, place: Place, op: ops.LoopDone) -> None:
    loop = state.processes.loops.get(op.body)
    assert loop is not None
    state.processes.loops.put(op.body, _replace(loop, done=loop.done + 1))
    if op.result:
        number, at = divmod(op.item - 1, LOOP_CHUNK_ITEMS)
        row = (op.body, number)
        results = list(state.processes.loop_results.get(row) or ())
        results += [b""] * (at + 1 - len(results))
        results[at] = op.result
        state.processes.loop_results.put(row, tuple(results))


def _loop_ended(state: EngineState, place: Place, op: ops.LoopEnded) -> None:
    loop = state.processes.loops.get(op.body)
    assert loop is not None
    state.processes.loops.delete(op.body)
    count_items(state, place, -loop.counted)
    for number in range(-(-loop.total // LOOP_CHUNK_ITEMS)):
        state.processes.loop_items.delete((op.body, number))
        state.processes.loop_results.delete((op.body, number))


def ended(state: EngineState, place: Place, op: ops.Ended) -> None:
    instance = state.processes.instances.get(place.instance)
    assert instance is not None
    if instance.tree is not None and instance.tree.due_ms:
        state.due.remove(instance.tree.due_ms, DueKind.TREE, place.instance)
    if instance.root:
        state.processes.change_tree(
            instance.root, lambda tree: _replace(tree, called=tree.called - 1)
        )
    state.processes.instances.delete(place.instance)
    state.processes.variables.delete(place.instance)
    if op.keep_ms:
        how = JobState.CANCELED if op.canceled else JobState.COMPLETED
        error = "canceled" if op.canceled else ""
        process_id = _process_id(state, place.definition)
        outcome = Outcome(
            how, op.result or b"null", error, place.now_ms, process_id, instance.definition,
            instance.created_ms,
        )  # fmt: skip
        state.jobs.keep(place.instance, outcome, op.keep_ms)
    if op.lock:
        state.messages.unlock(_process_id(state, place.definition), op.lock)


def _rebased(state: EngineState, place: Place, op: ops.Rebased) -> None:
    instance = state.processes.instances.get(place.instance)
    assert instance is not None
    if instance.lock:  # the correlation key is locked for the process that it is one of
        state.messages.unlock(_process_id(state, instance.definition), instance.lock)
        state.messages.lock(_process_id(state, op.definition), instance.lock, place.instance)
    state.processes.instances.put(place.instance, _replace(instance, definition=op.definition))


def _remapped(state: EngineState, place: Place, op: ops.Remapped) -> None:
    element = state.processes.elements.get(op.key)
    assert element is not None
    state.processes.elements.put(op.key, _replace(element, node=op.node))


def _tokens_remapped(state: EngineState, place: Place, op: ops.TokensRemapped) -> None:
    state.processes.tokens.put((op.scope, op.to), op.tokens)


def _wait_remapped(state: EngineState, place: Place, op: ops.WaitRemapped) -> None:
    processes = state.processes
    # Events may change places: only what still stands at the old place is removed from it.
    if processes.waits.get((op.element, op.node)) == op.wait:
        processes.waits.delete((op.element, op.node))
    processes.waits.put((op.element, op.to), op.wait)
    if timer := processes.timers.get(op.wait):
        processes.timers.put(op.wait, _replace(timer, node=op.to))
    elif subscription := processes.subscriptions.get(op.wait):
        processes.subscriptions.put(op.wait, _replace(subscription, node=op.to))


def _tokens_gone(state: EngineState, place: Place, op: ops.TokensGone) -> None:
    state.processes.tokens.delete((op.scope, op.node))


def _remembered(state: EngineState, place: Place, op: ops.Remembered) -> None:
    state.jobs.remember(op.key, place.instance, place.now_ms, op.window_ms)


def _headed(state: EngineState, place: Place, op: ops.Headed) -> None:
    instance = state.processes.instances.get(place.instance)
    assert instance is not None
    state.processes.instances.put(place.instance, _replace(instance, headers=op.headers))


APPLY: dict[type, Callable[[EngineState, Place, Any], None]] = {
    ops.Began: began,
    ops.Activated: _activated,
    ops.Passed: _passed,
    ops.Completed: _removed,
    ops.Terminated: _removed,
    ops.Changed: _changed,
    ops.Counted: _counted,
    ops.Arrived: _arrived,
    ops.Joined: _joined,
    ops.VariablesSet: _variables_set,
    ops.TimerSet: _timer_set,
    ops.TimerGone: _timer_gone,
    ops.Subscribed: _subscribed,
    ops.Unsubscribed: _unsubscribed,
    ops.LoopBegan: _loop_began,
    ops.LoopTaken: _loop_taken,
    ops.LoopDone: _loop_done,
    ops.LoopEnded: _loop_ended,
    ops.Ended: ended,
    ops.Deferred: deferred,
    ops.Resumed: resumed,
    ops.Rebased: _rebased,
    ops.Remapped: _remapped,
    ops.TokensRemapped: _tokens_remapped,
    ops.WaitRemapped: _wait_remapped,
    ops.Remembered: _remembered,
    ops.TokensGone: _tokens_gone,
    ops.TreePaced: tree_paced,
    ops.Headed: _headed,
}
