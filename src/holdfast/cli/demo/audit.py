"""What the journal itself says of every task, counted record by record."""

from collections import Counter
from pathlib import Path

import msgspec

from holdfast.cli.journal_files import open_reader, partitions_of
from holdfast.engine.incidents.values import IncidentIntent
from holdfast.engine.jobs.values import JobBatchIntent, JobIntent, NewJob
from holdfast.engine.kernel.runner import TOPIC
from holdfast.engine.partition import TABLES
from holdfast.records import Record, RecordKind, ValueType


class Audit:
    """Reads a node's log from its first record on, as far as it goes, again and again."""

    def __init__(self, folder: Path) -> None:
        self._reader = open_reader(folder)
        self._offsets = dict.fromkeys(partitions_of(self._reader, None), 0)
        self.records = 0
        self.created: Counter[str] = Counter()  # by the reference of the task's effect
        self.completed: Counter[str] = Counter()
        self.failures = 0
        self.expired: set[int] = set()  # tasks whose worker died while it held them
        self.duplicates = 0
        self.incidents_raised = 0
        self.incidents_resolved = 0
        self._reference: dict[int, str] = {}  # task -> its effect
        self._holder: dict[int, str] = {}  # task -> worker that has taken it

    def read_on(self) -> None:
        """Takes up what was written since the last time."""
        decode = TABLES.codec.decode
        for partition, offset in self._offsets.items():
            while entries := self._reader.read(TOPIC, partition, offset):
                for entry in entries:
                    self._take_up(decode(entry.payload))
                offset = self._offsets[partition] = entries[-1].offset + 1

    def doubled(self) -> set[str]:
        """What was created or completed more than once."""
        counts = (*self.created.items(), *self.completed.items())
        return {reference for reference, count in counts if count > 1}

    def held_by(self, worker: str) -> int:
        """How many tasks a worker has taken and not told about, as far as was read."""
        return sum(1 for holder in self._holder.values() if holder == worker)

    def _take_up(self, record: Record) -> None:
        self.records += 1
        match record.kind, record.value_type, record.intent:
            case RecordKind.EVENT, ValueType.JOB, JobIntent.CREATED:
                reference = self._reference[record.key] = _reference_of(record.value)
                self.created[reference] += 1
            case RecordKind.EVENT, ValueType.JOB, JobIntent.COMPLETED:
                self.completed[self._reference[record.key]] += 1
                self._holder.pop(record.key, None)
            case RecordKind.EVENT, ValueType.JOB, JobIntent.FAILED:
                self.failures += 1
                self._holder.pop(record.key, None)
            case RecordKind.EVENT, ValueType.JOB_BATCH, JobBatchIntent.ACTIVATED:
                self._holder.update(dict.fromkeys(record.value.jobs, record.value.worker))
            case RecordKind.EVENT, ValueType.JOB_BATCH, JobBatchIntent.EXPIRED:
                self.expired.update(record.value.jobs)
            case RecordKind.EVENT, ValueType.INCIDENT, IncidentIntent.CREATED:
                self.incidents_raised += 1
            case RecordKind.EVENT, ValueType.INCIDENT, IncidentIntent.RESOLVED:
                self.incidents_resolved += 1
            case RecordKind.REJECTION, ValueType.JOB, JobIntent.CREATE:
                self.duplicates += 1
            case _:
                pass


class _Order(msgspec.Struct):
    """What all payloads of the demo have in common."""

    order: int


def _reference_of(job: NewJob) -> str:
    """The name under which the ledger knows the effect of a task."""
    return f"{job.type}-{msgspec.json.decode(job.payload, type=_Order).order}"
