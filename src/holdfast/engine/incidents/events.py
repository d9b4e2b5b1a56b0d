"""What happens to the state when something happened to an incident."""

from holdfast.engine.state import EngineState
from holdfast.records import Record


def created(state: EngineState, event: Record) -> None:
    state.incidents.add(event.key, event.value)


def migrated(state: EngineState, event: Record) -> None:
    state.incidents.change(event.key, event.value)


def ended(state: EngineState, event: Record) -> None:
    state.incidents.end(event.key)
