"""What happens to the state when something happened to a batch operation."""

from holdfast.engine.batch.values import Change
from holdfast.engine.state import EngineState
from holdfast.records import Record


def created(state: EngineState, event: Record) -> None:
    state.batches.create(event.key, event.value)


def started(state: EngineState, event: Record) -> None:
    state.batches.start(event.key)


def chunk_created(state: EngineState, event: Record) -> None:
    state.batches.add_chunk(event.key, event.value)


def initialization_continued(state: EngineState, event: Record) -> None:
    state.batches.go_on_selecting(event.key, event.value)


def failed(state: EngineState, event: Record) -> None:
    state.batches.fail(event.key, event.value)


def suspended(state: EngineState, event: Record) -> None:
    state.batches.suspend(event.key)


def resumed(state: EngineState, event: Record) -> None:
    state.batches.resume(event.key)


def canceled(state: EngineState, event: Record) -> None:
    state.batches.cancel(event.key)


def changed(state: EngineState, event: Record) -> None:
    new: Change = event.value
    assert new.throttle is not None and new.priority is not None, "CHANGED says both"
    state.batches.change(event.key, new.throttle, new.priority)


def executed(state: EngineState, event: Record) -> None:
    state.batches.execute(event.key, event.value)


def partition_ended(state: EngineState, event: Record) -> None:
    """It is done, or it failed."""
    state.batches.report(event.key, event.value)


def completed(state: EngineState, event: Record) -> None:
    state.batches.end(event.key)
