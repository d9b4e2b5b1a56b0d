"""Instances that a message starts: one at a time for a process and a correlation key."""

from holdfast.engine.kernel import Turn
from holdfast.engine.messages.queue import next_start
from holdfast.engine.messages.values import (
    MessageIntent,
    MessageStart,
    NewMessage,
    NextStart,
)
from holdfast.engine.processes import instances
from holdfast.engine.processes.state import StartMessage
from holdfast.engine.processes.values import NewInstance
from holdfast.engine.processes.variables import from_json
from holdfast.engine.state import EngineState
from holdfast.errors import Code
from holdfast.records import Record, ValueType

MESSAGE = ValueType.MESSAGE


def start_instances(turn: Turn[EngineState], key: int, message: NewMessage) -> list[int]:
    """Every process whose start event waits for the message, unless its key is locked."""
    started: list[int] = []
    for start in turn.state.processes.start_messages.get(message.name) or ():
        locked = message.correlation and turn.state.messages.locked_by(
            start.process_id, message.correlation
        )
        if not locked:
            started.append(_start(turn, key, message, start))
    return started


def _start(turn: Turn[EngineState], key: int, message: NewMessage, start: StartMessage) -> int:
    new = NewInstance(
        start.process_id, variables=message.variables, node=start.node, lock=message.correlation
    )
    instance = turn.new_key()
    value = MessageStart(start.process_id, instance)
    turn.event(MESSAGE, MessageIntent.STARTED, key, value)
    instances.begin(turn, instance, start.definition, new, from_json(message.variables))
    return instance


def start_next(turn: Turn[EngineState], command: Record) -> None:
    """Starts the process for the oldest kept message that no instance of it has had."""
    wanted: NextStart = command.value
    found = next_start(turn, wanted.process_id, wanted.correlation)
    if found is None or turn.state.messages.locked_by(wanted.process_id, wanted.correlation):
        reason = f"There is no message to start {wanted.process_id!r} by"
        return turn.reject(command, Code.NOT_FOUND, reason)
    key, start = found
    stored = turn.state.messages.messages.get(key)
    assert stored is not None
    _start(turn, key, stored.message, start)
