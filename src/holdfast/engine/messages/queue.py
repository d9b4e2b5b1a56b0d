"""Messages that wait for their turn to start a process."""

from holdfast.engine.kernel import Turn
from holdfast.engine.messages.values import MessageIntent, NextStart
from holdfast.engine.processes.state import StartMessage
from holdfast.engine.state import EngineState
from holdfast.records import ValueType


def release(turn: Turn[EngineState], process_id: str, correlation: str) -> None:
    """An instance ended: if a message with its key is kept, another one may start."""
    if next_start(turn, process_id, correlation) is not None:
        turn.command(ValueType.MESSAGE, MessageIntent.START, 0, NextStart(process_id, correlation))


def next_start(
    turn: Turn[EngineState], process_id: str, correlation: str
) -> tuple[int, StartMessage] | None:
    """The oldest kept message that may start the process for a key, and its start event."""
    processes, messages = turn.state.processes, turn.state.messages
    definition = processes.latest.get(process_id)
    if definition is None:
        return None
    oldest: tuple[int, StartMessage] | None = None
    for node in processes.plans[definition].triggers:
        if node.element.message is None:
            continue
        for key in messages.kept(node.element.message.name, correlation):
            if not messages.is_taken(key, process_id):
                if oldest is None or key < oldest[0]:
                    oldest = key, StartMessage(process_id, definition, node.index)
                break
    return oldest
