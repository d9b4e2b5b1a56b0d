"""What happens to the state when something happened to parcels."""

from holdfast.engine.parcels.values import Parcel, ParcelsUpTo
from holdfast.engine.state import EngineState
from holdfast.records import Record


def sent(state: EngineState, event: Record) -> None:
    parcel: Parcel = event.value
    state.parcels.sent(parcel, event.timestamp_ms)


def received(state: EngineState, event: Record) -> None:
    parcel: Parcel = event.value
    state.parcels.take(parcel.sender, parcel.number)


def acknowledged(state: EngineState, event: Record) -> None:
    told: ParcelsUpTo = event.value
    state.parcels.acknowledged(told.receiver, told.number, event.timestamp_ms)


def resent(state: EngineState, event: Record) -> None:
    told: ParcelsUpTo = event.value
    state.parcels.resent(told.receiver, told.due_ms, told.due_ms - event.timestamp_ms)
