"""Definitions: deploying them, and the start events that fire by themselves."""

from collections.abc import Iterator

import msgspec

from holdfast.engine.distribution.distributing import distribute
from holdfast.engine.kernel import Command, Turn
from holdfast.engine.processes.instances import begin
from holdfast.engine.processes.plan import compile_plan
from holdfast.engine.processes.state import Processes
from holdfast.engine.processes.values import (
    Deployment,
    NewInstance,
    ProcessIntent,
    StartFiring,
    StartTimer,
)
from holdfast.engine.processes.waits import first_time, next_of_cycle
from holdfast.engine.state import EngineState
from holdfast.errors import Code, InvalidArgument
from holdfast.model.definition import Definition, TimerKind, decode_definition
from holdfast.model.feel import Expression
from holdfast.records import Record, ValueType
from holdfast.records.keys import NO_KEY

PROCESS = ValueType.PROCESS
DEPLOYING_PARTITION = 1  # gives versions and keys, and fires the timers of start events
DEPLOYMENT_QUEUE = "deployment"  # versions reach every partition in their order


def deploy(turn: Turn[EngineState], command: Record) -> None:
    """A version of a process. The same content as the latest version deploys nothing."""
    new: Deployment = command.value
    processes = turn.state.processes
    latest = processes.latest.get(new.process_id)
    stored = processes.definitions.get(latest) if latest is not None else None
    bound = tuple(_bound(processes, new))
    known = stored is not None and (stored.digest, stored.bound) == (new.digest, bound)
    if latest is not None and stored is not None and known:
        reason = (
            f"Expected a change, but version {stored.version} of process {new.process_id!r} has"
            " this content already"
        )
        return turn.reject(command, Code.ALREADY_EXISTS, reason, key=latest)
    version = stored.version + 1 if stored is not None else 1
    try:
        timers = start_timers(decode_definition(new.body), version, turn.now_ms)
    except InvalidArgument as error:
        return turn.reject(command, error.code, error.message)
    value = Deployment(
        new.process_id, new.body, new.digest, version, new.source, timers, turn.now_ms, bound=bound
    )
    key = turn.new_key()
    turn.event(PROCESS, ProcessIntent.DEPLOYED, key, value)
    # The timers of start events fire on this partition only.
    followed = msgspec.structs.replace(value, timers=())
    told = Command(PROCESS, ProcessIntent.DEPLOY, key, followed, command.claims)
    distribute(turn, told, in_queue=DEPLOYMENT_QUEUE)


def _bound(processes: Processes, new: Deployment) -> Iterator[tuple[str, int]]:
    """The versions of what is deployed together: those there are, or will be by the same append.

    The commands of one deployment follow one another on the log, and nothing comes in between.
    """
    for process_id, digest in new.together:
        latest = processes.latest.get(process_id)
        stored = processes.definitions.get(latest) if latest is not None else None
        if stored is None:
            yield process_id, 1
        else:
            yield process_id, stored.version + (stored.digest != digest)


def follow(turn: Turn[EngineState], command: Record) -> None:
    """A version that the deploying partition gave."""
    if turn.state.processes.definitions.get(command.key) is not None:
        reason = f"Expected a new definition, but {command.key} is here already"
        return turn.reject(command, Code.ALREADY_EXISTS, reason)
    turn.event(PROCESS, ProcessIntent.DEPLOYED, command.key, command.value)


def start_timers(definition: Definition, version: int, now_ms: int) -> tuple[StartTimer, ...]:
    """When the timers of start events are due; InvalidArgument if the process cannot be run."""
    found: list[StartTimer] = []
    for node in compile_plan(NO_KEY, version, definition).triggers:
        if node.timer is None:
            continue
        text = node.timer_text
        value = text.evaluate({}, now_ms) if isinstance(text, Expression) else text
        try:
            due_ms, left, cycle = first_time(node.timer.kind, value, now_ms)
        except (ValueError, OverflowError, InvalidArgument) as error:
            raise InvalidArgument(f"The timer of {node.id!r}: {error}", element=node.id) from error
        if node.timer.kind == TimerKind.DATE and due_ms <= now_ms:
            continue  # its time is over
        found.append(StartTimer(node.index, due_ms, left, cycle))
    return tuple(found)


def fire(turn: Turn[EngineState], command: Record) -> None:
    """Start timers of a definition are due: an instance for each."""
    due: StartFiring = command.value
    processes = turn.state.processes
    stored = processes.definitions.get(command.key)
    timers = [
        timer
        for node in (processes.plans[command.key].triggers if stored else ())
        if (timer := processes.start_timers.get((command.key, node.index))) is not None
        and timer.due_ms == due.due_ms
    ]
    if not timers or stored is None:
        reason = f"Expected a start timer of definition {command.key} to be due, but none is"
        return turn.reject(command, Code.NOT_FOUND, reason)
    for timer in timers:
        following = None
        left = timer.left - 1 if timer.left > 0 else timer.left
        if timer.cycle and left:
            next_ms = next_of_cycle(timer.cycle, timer.due_ms)
            following = StartTimer(timer.node, next_ms, left, timer.cycle)
        firing = StartFiring(timer.node, timer.due_ms, following)
        turn.event(PROCESS, ProcessIntent.FIRED, command.key, firing)
        new = NewInstance(stored.process_id, node=timer.node)
        begin(turn, turn.new_key(), command.key, new, {})
