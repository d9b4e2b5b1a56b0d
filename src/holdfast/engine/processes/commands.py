"""What is asked of instances: one function a command."""

from holdfast.engine.kernel import Turn
from holdfast.engine.processes import activities, ending, happenings, loops, ops, straight, tree
from holdfast.engine.processes.instances import (
    begin,
    is_ending,
    remembered_key,
    take_up,
)
from holdfast.engine.processes.ops import Phase
from holdfast.engine.processes.state import ElementInstance, Timer
from holdfast.engine.processes.stuck import Stuck
from holdfast.engine.processes.values import (
    InstanceIntent,
    InstanceRef,
    NewInstance,
    NewVariables,
    Return,
    ThrownError,
)
from holdfast.engine.processes.variables import from_json
from holdfast.engine.processes.waits import next_of_cycle
from holdfast.engine.processes.walk import Walk
from holdfast.engine.state import EngineState
from holdfast.engine.transactions.values import PROMISED, RESERVED_KEY
from holdfast.errors import Code, InvalidArgument
from holdfast.limits import HELD_PAUSE_MS
from holdfast.records import Record, ValueType, partition_of
from holdfast.records.keys import NO_KEY


def create(turn: Turn[EngineState], command: Record) -> None:
    """A new instance of a process, unless its idempotency key names one that is known."""
    new: NewInstance = command.value
    if new.idempotency_key:
        known = turn.state.jobs.by_idempotency_key(remembered_key(new), turn.now_ms)
        if known is not None:
            reason = f"Expected a new idempotency key, but {new.idempotency_key!r} is known"
            return turn.reject(command, Code.ALREADY_EXISTS, reason, key=known)
        by = turn.state.transactions.reserver(RESERVED_KEY, remembered_key(new))
        if by is not None:
            reason = f"Idempotency key {new.idempotency_key!r} is reserved by transaction {by}"
            return turn.reject(command, Code.UNAVAILABLE, f"{reason}; try again", key=by)
    definition = turn.state.processes.definition_of(new.process_id, new.version)
    if definition is None:
        which = f" version {new.version}" if new.version else ""
        reason = f"Expected a process {new.process_id!r}{which}, but none is deployed"
        return turn.reject(command, Code.NOT_FOUND, reason)
    if new.node < 0 and turn.state.processes.plans[definition].start is None:
        reason = (
            f"Expected process {new.process_id!r} to have a start without a trigger,"
            " but it is started by messages or timers only"
        )
        return turn.reject(command, Code.INVALID_STATE, reason)
    try:
        variables = from_json(new.variables)
    except InvalidArgument as error:
        return turn.reject(command, error.code, error.message)
    key = turn.new_key() if command.key == NO_KEY else command.key
    begin(turn, key, definition, new, variables)


def cancel(turn: Turn[EngineState], command: Record) -> None:
    """The instance ends, with everything in it."""
    instance = turn.state.processes.instances.get(command.key)
    if instance is None:
        return _reject_missing(turn, command, "a process instance")
    if instance.phase == Phase.TERMINATING:
        reason = f"Expected instance {command.key} to run, but it is being ended already"
        return turn.reject(command, Code.INVALID_STATE, reason)
    if instance.parent and command.source_position < 0:
        reason = (
            f"Expected an instance that was not called by another, but {command.key} was called by"
            f" element instance {instance.parent}: cancel that one's instance"
        )
        return turn.reject(command, Code.INVALID_STATE, reason)
    if not straight.cancel(turn, command.key, instance):
        walk = take_up(turn, command.key)
        ending.cancel_instance(walk)
        walk.finish()


def delete(turn: Turn[EngineState], command: Record) -> None:
    """The instance has ended: whatever is still kept of its outcome is forgotten."""
    if turn.state.processes.instances.get(command.key) is not None:
        reason = f"Expected instance {command.key} to have ended, but it runs: cancel it first"
        return turn.reject(command, Code.INVALID_STATE, reason)
    is_known = partition_of(command.key) == turn.partition and command.key <= turn.last_key()
    if not is_known:
        return _reject_missing(turn, command, "a process instance")
    turn.event(ValueType.PROCESS_INSTANCE, InstanceIntent.DELETED, command.key, InstanceRef())


def go_on(turn: Turn[EngineState], command: Record) -> None:
    """What was too much for one step goes on."""
    processes = turn.state.processes
    instance = processes.instances.get(command.key)
    element = processes.elements.get(command.key) if instance is None else None
    row = instance or element
    if row is None or not row.due_ms:
        return _reject_missing(turn, command, "an instance or element that was put off")
    walk = take_up(turn, command.key if element is None else element.instance)
    walk.do(ops.Resumed(command.key, row.due_ms))
    if instance is not None:
        ending.go_on(walk, command.key, instance.then)
        walk.run()
    elif tree.of(walk).held and not _is_terminating(walk, command.key):
        tree.queue(walk, command.key)
    else:
        assert element is not None
        walk.carry(element.moves)
        _take_up(walk, command.key)
    walk.finish()


def _is_terminating(walk: Walk, key: int) -> bool:
    return walk.is_ending(walk.element(key))


def _take_up(walk: Walk, key: int) -> None:
    """An element goes on that was put off, unless the scope around it is being ended."""
    element = walk.element(key)
    if walk.is_scope_ending(element):
        return  # the scope is put off as well, and ends it
    if element.phase == Phase.TERMINATING:
        ending.go_on(walk, key, element.then)
    elif element.phase == Phase.ACTIVE and element.item == loops.BODY:
        loops.begin_items(walk, walk.plan.nodes[element.node], key)
    else:
        _resume(walk, key, element)
    walk.run()


def proceed(turn: Turn[EngineState], command: Record) -> None:
    """What a tree of calls has put off goes on: a few elements of one of its instances."""
    processes = turn.state.processes
    known = processes.tree(command.key)
    if known is None or not known.due_ms:
        return _reject_missing(turn, command, "a tree of calls that has put off something")
    key = processes.next_deferred(command.key)
    element = processes.elements.get(key) if key is not None else None
    walk = take_up(turn, element.instance if element is not None else command.key)
    walk.is_proceeding = True
    walk.carry(known.moves)
    while key is not None and element is not None and element.instance == walk.key:
        walk.do(ops.Resumed(key, ops.QUEUED))
        _take_up(walk, key)
        row = processes.instances.get(walk.key)
        if row is None or row.phase is Phase.TERMINATING or walk.is_enough() or _is_held(walk):
            break
        key = processes.next_deferred(command.key)
        element = processes.elements.get(key) if key is not None else None
    walk.finish()


def _is_held(walk: Walk) -> bool:
    return tree.of(walk).held != 0


def resume(turn: Turn[EngineState], key: int) -> None:
    """The incident of an element is resolved: what it could not do is tried again."""
    element = turn.state.processes.elements.get(key)
    assert element is not None, "an incident is open for an element that is gone"
    walk = take_up(turn, element.instance)
    walk.do(ops.Changed(key, element.phase, 0, element.then, element.work))
    if element.due_ms == ops.QUEUED or tree.of(walk).held == key:
        tree.release(walk, key, grant=True)
    elif not is_ending(turn, element):
        _resume(walk, key, walk.element(key))
        walk.run()
    walk.finish()


def _resume(walk: Walk, key: int, element: ElementInstance) -> None:
    node = walk.plan.nodes[element.node]
    if element.phase == Phase.ENTERING and element.item > 0:
        local = loops.item_locals(walk, key)
        loops.begin_item(walk, node, element.scope, key, element.item, local)
    elif element.phase == Phase.ENTERING:
        walk.enter(node, element.scope, key)
    elif element.phase == Phase.LEAVING and element.item == loops.BODY:
        loops.complete(walk, node, key)
    elif element.phase == Phase.LEAVING:
        values = happenings.kept_values(walk, key, element)
        if happenings.is_event_of_another(node):
            happenings.go_on_from(walk, node, element.scope, key, values)
        else:
            activities.leave(walk, key, element, values)


def trigger(turn: Turn[EngineState], command: Record) -> None:
    """A timer is due."""
    processes = turn.state.processes
    timer = processes.timers.get(command.key)
    element = processes.elements.get(timer.element) if timer else None
    if timer is None or element is None:
        return _reject_missing(turn, command, "a timer")
    walk = take_up(turn, element.instance)
    event = walk.plan.nodes[timer.node]
    walk.carry(timer.moves)
    walk.do(ops.TimerGone(command.key, timer.element, timer.node))
    if not is_ending(turn, element):
        if tree.is_full(walk, element.scope) and timer.cycle and not event.element.interrupting:
            _set_again(walk, timer, turn.now_ms + HELD_PAUSE_MS, timer.left)
            walk.finish()
            return None
        left = timer.left - 1 if timer.left > 0 else timer.left
        if timer.cycle and left and not event.element.interrupting:
            _set_again(walk, timer, next_of_cycle(timer.cycle, timer.due_ms), left)
        happenings.happen(walk, timer.element, element, event, {})
        walk.run()
    walk.finish()


def _set_again(walk: Walk, timer: Timer, due_ms: int, left: int) -> None:
    key = walk.turn.new_key()
    walk.do(ops.TimerSet(key, timer.element, timer.node, due_ms, left, timer.cycle))


def return_(turn: Turn[EngineState], command: Record) -> None:
    """A called process ended: the element that called it is done."""
    ended: Return = command.value
    element = turn.state.processes.elements.get(command.key)
    if element is None or element.work != ended.called or is_ending(turn, element):
        return _reject_missing(turn, command, "an element that waits for a called process")
    walk = take_up(turn, element.instance)
    node = walk.plan.nodes[element.node]
    values = from_json(ended.variables) if node.element.take_all or node.outputs else {}
    walk.carry(ended.moves)
    activities.leave(walk, command.key, element, values)
    walk.run()
    walk.finish()


def catch(turn: Turn[EngineState], command: Record) -> None:
    """An error that a called process did not catch is caught by a boundary event here."""
    error: ThrownError = command.value
    element = turn.state.processes.elements.get(command.key)
    if element is None or is_ending(turn, element):
        return _reject_missing(turn, command, "an element that called a process")
    walk = take_up(turn, element.instance)
    event = walk.plan.nodes[error.node]
    walk.carry(error.moves)
    happenings.interrupt(walk, command.key, element, event, from_json(error.variables))
    walk.run()
    walk.finish()


def set_variables(turn: Turn[EngineState], command: Record) -> None:
    """New values for variables, as seen from a scope or exactly in it."""
    new: NewVariables = command.value
    instance = turn.state.processes.instance_of(command.key)
    if instance is None:
        return _reject_missing(turn, command, "a process instance or an element instance")
    try:
        values = from_json(new.variables)
    except InvalidArgument as error:
        return turn.reject(command, error.code, error.message)
    walk = take_up(turn, instance)
    try:
        if new.local:
            walk.set_variables(command.key, values)
        else:
            walk.propagate(command.key, values)
    except Stuck as stuck:
        return turn.reject(command, Code.RESOURCE_EXHAUSTED, stuck.message)
    walk.finish()


def _reject_missing(turn: Turn[EngineState], command: Record, what: str) -> None:
    by = turn.state.transactions.reserver(PROMISED, command.key)
    if by is not None:
        reason = f"Transaction {by} makes {command.key}, which is not there yet; try again"
        return turn.reject(command, Code.UNAVAILABLE, reason)
    reason = f"Expected {what} with key {command.key}, but there is none"
    return turn.reject(command, Code.NOT_FOUND, reason)
