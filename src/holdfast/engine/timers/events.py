"""What happens to the state when something happened to a schedule."""

from holdfast.engine.state import EngineState
from holdfast.engine.timers.values import Firing, ScheduleCreated, ScheduleId
from holdfast.records import Record


def created(state: EngineState, event: Record) -> None:
    value: ScheduleCreated = event.value
    state.schedules.add(event.key, value.schedule, value.next_due_ms)


def fired(state: EngineState, event: Record) -> None:
    value: Firing = event.value
    state.schedules.fired(event.key, value.next_due_ms)


def skipped(state: EngineState, event: Record) -> None:
    value: Firing = event.value
    state.schedules.skipped(event.key, value.next_due_ms)


def deleted(state: EngineState, event: Record) -> None:
    value: ScheduleId = event.value
    state.schedules.remove(value.id)
