"""Which transactions a reader as of some positions shows, and where it ends so that all are whole.

Positions say for each partition up to where its log counts: those of a cut, or how far a table has
come. A transaction counts if its decision does. But positions of different partitions are not of
one moment: they may include the decision and not yet what another partition applied, or the other
way round. `whole` takes such positions back until each transaction is within them, or is not.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import NamedTuple

from holdfast.engine.transactions.values import (
    TransactionDecision,
    TransactionIntent,
    TransactionOutcome,
)
from holdfast.records import Record, RecordKind, ValueType

Positions = Mapping[int, int]
"""Partition -> the first position that does not count."""


def is_visible(decision: TransactionDecision, positions: Positions) -> bool:
    """Whether a transaction counts as of these positions; an unknown partition has come nowhere."""
    return decision.is_committed and decision.position < positions.get(decision.home, 0)


class TransactionSpan(NamedTuple):
    """What a partition did for a committed transaction: a part of its log without gaps."""

    transaction: int
    partition: int
    start: int
    end: int  # behind its last record
    told: tuple[int, ...] = ()  # at the home: the partitions that do their parts, too


def spans_in(partition: int, records: Iterable[tuple[int, Record]]) -> Iterator[TransactionSpan]:
    """What records, each with its place on the log, say of transactions over several partitions.

    All that a command leads to stands together and has the same source: the decision with the
    home's own part, and APPLIED with the part of another.
    """
    for _, run in groupby(records, key=lambda each: each[1].source_position):
        placed = list(run)
        for _, record in placed:
            if record.value_type != ValueType.TRANSACTION or record.kind is not RecordKind.EVENT:
                continue
            start, end = placed[0][0], placed[-1][0] + 1
            if record.intent == TransactionIntent.APPLIED:
                yield TransactionSpan(record.key, partition, start, end)
            elif record.intent == TransactionIntent.COMMITTED:
                outcome: TransactionOutcome = record.value
                if outcome.told:
                    yield TransactionSpan(record.key, partition, start, end, outcome.told)


def whole(positions: Positions, spans: Iterable[TransactionSpan]) -> dict[int, int]:
    """The latest positions, none later than these, that have all of a transaction or nothing.

    What came on a log after a part that is left out may depend on it, so it is left out as well.
    """
    found = dict(positions)
    transactions: dict[int, list[TransactionSpan]] = {}
    for span in spans:
        transactions.setdefault(span.transaction, []).append(span)
    left = list(transactions.values())
    while True:
        broken = [parts for parts in left if not _is_within(parts, found)]
        if not broken:
            return found
        for span in (span for parts in broken for span in parts):
            found[span.partition] = min(found.get(span.partition, 0), span.start)
        left = [parts for parts in left if parts not in broken]


def _is_within(parts: list[TransactionSpan], positions: Positions) -> bool:
    """Whether all parts count: the home's, and those of all that were told."""
    wanted = {each for part in parts for each in (part.partition, *part.told)}
    known = {part.partition for part in parts if part.end <= positions.get(part.partition, 0)}
    return known == wanted and any(part.told for part in parts)
