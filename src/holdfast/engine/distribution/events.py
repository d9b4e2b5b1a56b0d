"""What happens to the state when something happened to a distribution."""

from holdfast.engine.distribution.state import StoredContinuation, StoredDistribution
from holdfast.engine.distribution.values import (
    Continuation,
    Decision,
    Distribution,
    Postponement,
    Resending,
    Targets,
)
from holdfast.engine.state import EngineState
from holdfast.records import Record


def started(state: EngineState, event: Record) -> None:
    new: Distribution = event.value
    now_ms, distributions = event.timestamp_ms, state.distributions
    distributions.start(
        event.key,
        StoredDistribution(new.queue, new.value_type, new.intent, new.value, new.claims, now_ms),
    )
    for partition in new.partitions:
        distributions.send(event.key, new.queue, partition, now_ms)


def enqueued(state: EngineState, event: Record) -> None:
    waiting: Targets = event.value
    queue = _queue(state, event)
    for partition in waiting.partitions:
        state.distributions.enqueue(event.key, queue, partition)


def distributing(state: EngineState, event: Record) -> None:
    sent: Targets = event.value
    queue = _queue(state, event)
    for partition in sent.partitions:
        state.distributions.take_off(event.key, queue, partition, event.timestamp_ms)


def settled(state: EngineState, event: Record) -> None:
    """Acknowledged, skipped or canceled."""
    ended: Targets | Decision = event.value
    queue = _queue(state, event)
    for partition in ended.partitions:
        state.distributions.settle(event.key, queue, partition)


def finished(state: EngineState, event: Record) -> None:
    state.distributions.finish(event.key)


def redistributed(state: EngineState, event: Record) -> None:
    sent: Resending = event.value
    attempts = zip(sent.keys, sent.attempts, strict=True)
    state.distributions.resent(sent.partition, attempts, event.timestamp_ms)


def resumed(state: EngineState, event: Record) -> None:
    back: Resending = event.value
    state.distributions.resumed(back.partition, back.keys, event.timestamp_ms)


def refused(state: EngineState, event: Record) -> None:
    state.distributions.refused(event.value.partition, event.key, event.value.reason)


def postponed(state: EngineState, event: Record) -> None:
    later: Postponement = event.value
    state.distributions.postponed(later.partition, later.keys, later.until_ms)


def continuation_requested(state: EngineState, event: Record) -> None:
    new: Continuation = event.value
    stored = StoredContinuation(new.value_type, new.intent, new.key, new.value, new.claims)
    state.distributions.wait(new.queue, event.key, stored)


def continued(state: EngineState, event: Record) -> None:
    state.distributions.continued(event.value.queue, event.key)


def received(state: EngineState, event: Record) -> None:
    state.distributions.receive(event.key, event.value.queue)


def _queue(state: EngineState, event: Record) -> str:
    stored = state.distributions.active.get(event.key)
    assert stored is not None, "a distribution was changed that is not there"
    return stored.queue
