"""Which effects of transactions a reader as of some positions shows.

Positions say for each partition up to where its log counts: those of a cut, or how far a table has
come. A transaction counts if its decision does. The home decides before anybody applies it, but
positions of different partitions are not of one moment: they may include what a partition applied
and not yet the decision. `consistent` takes such positions back until they fit together.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from holdfast.engine.transactions.values import TransactionDecision, TransactionIntent
from holdfast.records import Record, RecordKind, ValueType

Positions = Mapping[int, int]
"""Partition -> the first position that does not count."""


class Applied(NamedTuple):
    """What a partition did for a transaction that another one decided."""

    partition: int
    source_position: int  # of the command; all that was done for it has the same source
    decision: TransactionDecision


def applied_in(partition: int, records: Iterable[Record]) -> Iterator[Applied]:
    """What a log says of transactions that other partitions decided."""
    for record in records:
        if (
            record.value_type == ValueType.TRANSACTION
            and record.kind is RecordKind.EVENT
            and record.intent == TransactionIntent.APPLIED
        ):
            yield Applied(partition, record.source_position, record.value)


def is_visible(decision: TransactionDecision, positions: Positions) -> bool:
    """Whether a transaction counts as of these positions; an unknown partition has come nowhere."""
    return decision.is_committed and decision.position < positions.get(decision.home, 0)


def consistent(positions: Positions, applied: Iterable[Applied]) -> dict[int, int]:
    """The latest positions, none later than these, at which no effect is without its decision.

    What came on a log after such an effect may depend on it, so the log counts up to it only.
    """
    found, waiting = dict(positions), list(applied)
    while True:
        hidden = [
            each
            for each in waiting
            if each.source_position < found.get(each.partition, 0)
            and not is_visible(each.decision, found)
        ]
        if not hidden:
            return found
        for each in hidden:
            found[each.partition] = min(found[each.partition], each.source_position)
