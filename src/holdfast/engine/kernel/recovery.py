"""Recovery: brings processors to the end of their logs, a piece at a time."""

from collections.abc import AsyncIterator, Collection, Mapping
from typing import Any

from holdfast.engine.kernel.processor import Processor
from holdfast.errors import DataLoss
from holdfast.journal import Journal
from holdfast.limits import REPLAY_BYTES, REPLAY_ENTRIES, STORE_ROWS_MAX
from holdfast.state import Store, Writing

TOPIC = "records"  # the topic in which every partition has its log


async def recover(
    processors: Mapping[int, Processor[Any]],
    journal: Journal,
    store: Store,
    broken: dict[int, Exception],
) -> AsyncIterator[int]:
    """Replays every partition's log behind its state; yields how many events a piece had.

    A partition whose events cannot be applied is left out, and `broken` says why. Damage concerns
    all of them, and is raised.
    """
    for partition, processor in processors.items():
        try:
            async for applied in recover_one(processor, journal, store):
                yield applied
        except DataLoss:
            raise
        except Exception as error:
            broken[partition] = error


async def recover_one(
    processor: Processor[Any], journal: Journal, store: Store
) -> AsyncIterator[int]:
    """Replays the log of one partition behind its state; yields how many events a piece had."""
    partition, applied_position = processor.partition, processor.next_position - 1
    bounds = journal.bounds(TOPIC, partition)
    if processor.next_offset > bounds.next:
        raise _log_is_short(partition, applied_position)
    if processor.next_offset < bounds.earliest:
        raise store.damaged(
            f"it stands for offset {processor.next_offset} of partition {partition}, and the log"
            f" begins at {bounds.earliest}"
        )
    last_position = applied_position
    while entries := await journal.read(TOPIC, partition, processor.next_offset, REPLAY_BYTES):
        applied = 0
        for first in range(0, len(entries), REPLAY_ENTRIES):
            applied += processor.replay(entries[first : first + REPLAY_ENTRIES])
        last_position = processor.replayed_position
        if processor.state.changed_rows() > STORE_ROWS_MAX:
            write_state([processor], store)
        yield applied
    if last_position < applied_position:
        raise _log_is_short(partition, applied_position)


def _log_is_short(partition: int, applied_position: int) -> DataLoss:
    """An older state would hide it: records that were acknowledged are not there."""
    return DataLoss(
        f"Expected the log of partition {partition} to reach to {applied_position}, as the state"
        " does, but it ends before; restore the journal's folder from a copy",
        partition=partition,
    )


def write_state(processors: Collection[Processor[Any]], store: Store) -> None:
    """Hands all committed changes with the positions they stand for to the store at once."""
    Writing(store, [(each.state, each.progress) for each in processors]).finish()
