"""The appliers of requests."""

from holdfast.engine.requests.values import Accepted, Answered, PurgeRequests
from holdfast.engine.state import EngineState
from holdfast.records import Record


def accepted(state: EngineState, event: Record) -> None:
    value: Accepted = event.value
    state.requests.wait(value.id, value.position)


def answered(state: EngineState, event: Record) -> None:
    value: Answered = event.value
    state.requests.keep(value, event.timestamp_ms)


def purged(state: EngineState, event: Record) -> None:
    value: PurgeRequests = event.value
    state.requests.purge(value.before)
