"""What happens to the state when something happened to a transaction."""

from holdfast.engine.state import EngineState
from holdfast.engine.transactions.values import (
    Acknowledgement,
    NewTransaction,
    PreparedPart,
    TransactionOutcome,
    TransactionState,
    Vote,
)
from holdfast.records import Record


def begun(state: EngineState, event: Record) -> None:
    new: NewTransaction = event.value
    state.transactions.begin(event.key, new, event.timestamp_ms)


def voted(state: EngineState, event: Record) -> None:
    vote: Vote = event.value
    state.transactions.vote(event.key, vote)


def committed(state: EngineState, event: Record) -> None:
    _decided(state, event, TransactionState.COMMITTED)


def aborted(state: EngineState, event: Record) -> None:
    _decided(state, event, TransactionState.ABORTED)


def _decided(state: EngineState, event: Record, how: TransactionState) -> None:
    outcome: TransactionOutcome = event.value
    state.transactions.decide(event.key, outcome, how, outcome.told, event.timestamp_ms)


def acknowledged(state: EngineState, event: Record) -> None:
    told: Acknowledgement = event.value
    state.transactions.acknowledge(event.key, told.partition, told.failed, event.timestamp_ms)


def forgotten(state: EngineState, event: Record) -> None:
    state.transactions.forget(event.key)


def prepared(state: EngineState, event: Record) -> None:
    part: PreparedPart = event.value
    state.transactions.reserve(event.key, part, event.timestamp_ms)
    for each in part.held:
        state.jobs.reserve(each.job, each.reserved_by)


def applied(state: EngineState, event: Record) -> None:
    """What was reserved is free: the events that do it stand behind this one."""
    state.transactions.end(event.key)


def released(state: EngineState, event: Record) -> None:
    part = state.transactions.end(event.key)
    for each in part.held:
        state.jobs.give_back(each.job, each.lease_key, each.lease)


def last_key(value: object) -> int:
    return value.last_key if isinstance(value, PreparedPart) else 0
