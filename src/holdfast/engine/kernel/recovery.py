"""Recovery: brings processors to the end of their logs, a piece at a time."""

from collections.abc import AsyncIterator, Collection, Mapping
from typing import Any

from holdfast.engine.kernel.processor import Processor
from holdfast.errors import DataLoss
from holdfast.journal import Journal
from holdfast.limits import REPLAY_BYTES, STORE_ROWS_MAX
from holdfast.state import Store

TOPIC = "records"  # the topic in which every partition has its log


async def recover(
    processors: Mapping[int, Processor[Any]], journal: Journal, store: Store
) -> AsyncIterator[int]:
    """Replays every partition's log behind its state; yields how many events a piece had."""
    for partition, processor in processors.items():
        bounds = journal.bounds(TOPIC, partition)
        offset = processor.replay_from
        if processor.next_position > bounds.next:
            # An older state would hide it: records that were acknowledged are not there.
            raise DataLoss(
                f"Expected the log of partition {partition} to reach to"
                f" {processor.next_position - 1}, as the state does, but it ends before"
                f" {bounds.next}; restore the journal's folder from a copy",
                partition=partition,
            )
        if offset < bounds.earliest:
            raise store.damaged(
                f"it stands for position {offset} of partition {partition}, and the log begins at"
                f" {bounds.earliest}"
            )
        while entries := await journal.read(TOPIC, partition, offset, REPLAY_BYTES):
            applied = processor.replay(entries)
            offset = entries[-1].offset + 1
            if processor.state.changed_rows() > STORE_ROWS_MAX:
                write_state(processors.values(), store)
            yield applied


def write_state(processors: Collection[Processor[Any]], store: Store) -> None:
    """Hands all committed changes with the positions they stand for to the store at once."""
    puts: list[tuple[bytes, bytes]] = []
    deletes: list[bytes] = []
    for processor in processors:
        processor.state.drain(processor.progress, puts, deletes)
    if puts:
        store.write(puts, deletes)
