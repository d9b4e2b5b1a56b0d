"""What must hold in a simulated cluster of whole members, beside the rules of their journals."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

import msgspec
from tests.journal.cluster.checking import LogChecker, Violation

from holdfast.engine.jobs.values import JobIntent
from holdfast.engine.kernel.runner import TOPIC
from holdfast.engine.messages.values import MessageIntent
from holdfast.engine.partition import DISPATCH, open_partition
from holdfast.engine.processes.values import InstanceIntent
from holdfast.engine.transactions.values import TransactionIntent
from holdfast.engine.transactions.visibility import spans_in, whole
from holdfast.journal.api import Entry
from holdfast.records import Record, RecordKind, ValueType
from holdfast.sequence.api import Cut, CutPositions, LogKey
from holdfast.state.memory import MemoryStore

_ENDS = {
    (ValueType.JOB, JobIntent.COMPLETED),
    (ValueType.JOB, JobIntent.CANCELED),
    (ValueType.PROCESS_INSTANCE, InstanceIntent.COMPLETED),
    (ValueType.PROCESS_INSTANCE, InstanceIntent.CANCELED),
}


class CutsChecker:
    """One order: all members follow the same cuts, and no cut goes back."""

    def __init__(self) -> None:
        self.cuts: dict[int, CutPositions] = {}

    def followed(self, member: str, cut: Cut, at: CutPositions) -> None:
        there = self.cuts.setdefault(cut.number, at)
        if there != at:
            raise Violation(f"cut {cut.number} is {at} on {member}, but {there} elsewhere")
        before = self.cuts.get(cut.number - 1)
        for key, offset in (before.offsets if before is not None else {}).items():
            if at.offsets.get(key, 0) < offset:
                raise Violation(f"cut {cut.number} goes back in {key}")

    def check_named(self, marks: Mapping[LogKey, int]) -> None:
        last = self.cuts[max(self.cuts)] if self.cuts else CutPositions()
        for key, offset in last.offsets.items():
            if marks.get(key, 0) < offset:
                raise Violation(f"a cut names {offset} of {key}, which ends at {marks.get(key)}")


class EffectChecker:
    """What the logs of all partitions say of the work that clients were told of."""

    def __init__(self, logs: LogChecker, partitions: int) -> None:
        self.records: dict[int, list[tuple[int, Record]]] = {}
        self.created: Counter[str] = Counter()  # tasks by their idempotency keys
        self.named: Counter[str] = Counter()  # tasks by their payloads
        self.made: Counter[str] = Counter()  # jobs and instances by their keys
        self.ended: Counter[str] = Counter()
        self.published: Counter[str] = Counter()  # messages by their correlation keys
        self.decided: Counter[tuple[int, int]] = Counter()
        for partition in range(1, partitions + 1):
            entries = sorted(logs.entries.get(LogKey(TOPIC, partition), {}).items())
            records = DISPATCH.codec.decode_many([payload for _, payload in entries])
            self.records[partition] = list(
                zip((offset for offset, _ in entries), records, strict=True)
            )
            for record in records:
                if record.kind is RecordKind.EVENT:
                    self._count(record)

    def positions(self) -> None:
        """All records are there once, once all logs were read to their ends.

        Before that there may be gaps: entries that were not answered for survive, and are read
        later than those behind them are acknowledged.
        """
        for partition, records in self.records.items():
            positions = [each.position for _, each in records]
            if positions != list(range(len(positions))):
                raise Violation(f"records of partition {partition} have gaps or come twice")

    def _count(self, record: Record) -> None:
        what, value = (record.value_type, record.intent), record.value
        if what == (ValueType.JOB, JobIntent.CREATED):
            self.made[str(record.key)] += 1
            if value.idempotency_key:
                self.created[value.idempotency_key] += 1
            if isinstance(name := msgspec.json.decode(value.payload or b"null"), str):
                self.named[name] += 1
        elif what == (ValueType.PROCESS_INSTANCE, InstanceIntent.CREATED):
            self.made[str(record.key)] += 1
        elif what in _ENDS:
            self.ended[str(record.key)] += 1
        elif what == (ValueType.MESSAGE, MessageIntent.PUBLISHED):
            self.published[value.correlation] += 1
        elif record.value_type == ValueType.TRANSACTION:
            self.decided[record.key, record.intent] += 1

    def once(self, found: Counter[str], told: set[str], what: str) -> None:
        """All that somebody was told of is there, and nothing is there twice."""
        if missing := sorted(told - found.keys()):
            raise Violation(f"{what}: told, but not on the log: {missing}")
        if twice := [each for each, count in found.items() if count > 1]:
            raise Violation(f"{what}: more than once on the log: {twice}")

    def transactions(self, cuts: Mapping[int, CutPositions]) -> None:
        """A transaction is decided once, done by all that are told, and whole at every cut."""
        spans = [each for p, placed in self.records.items() for each in spans_in(p, placed)]
        for (key, intent), count in self.decided.items():
            ends = (TransactionIntent.COMMITTED, TransactionIntent.ABORTED)
            if intent in ends and (count > 1 or sum(self.decided[key, each] for each in ends) > 1):
                raise Violation(f"transaction {key} was decided more than once")
        parts: dict[int, list[Any]] = {}
        for span in spans:
            parts.setdefault(span.transaction, []).append(span)
        for key, found in parts.items():
            told = [each for span in found for each in (span.partition, *span.told)]
            if sorted(set(told)) != sorted(each.partition for each in found):
                raise Violation(f"transaction {key} is not whole: {found}")
        for number, cut in cuts.items():
            at = {key.partition: end for key, end in cut.offsets.items() if key.topic == TOPIC}
            seen = whole(at, spans)
            if any(end > at.get(partition, 0) for partition, end in seen.items()):
                raise Violation(f"cut {number} shows what is not in it: {seen} of {at}")
            for key, found in parts.items():
                if len({each.end <= seen.get(each.partition, 0) for each in found}) > 1:
                    raise Violation(f"cut {number} has a part of transaction {key}")

    def replayed(self, logs: LogChecker, partition: int, partitions: int) -> Any:
        """The state of a partition, made anew from its log."""
        processor = open_partition(MemoryStore(), partition, partitions)
        entries = sorted(logs.entries.get(LogKey(TOPIC, partition), {}).items())
        processor.replay([Entry(offset, 0, payload) for offset, payload in entries])
        return processor.state.dump()
