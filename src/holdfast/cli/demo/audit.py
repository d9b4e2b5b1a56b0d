"""What the journal itself says of every task, counted record by record."""

from collections import Counter
from pathlib import Path

import msgspec

from holdfast.cli.demo.log_walk import LogWalk
from holdfast.engine.incidents.values import IncidentIntent
from holdfast.engine.jobs.values import JobBatchIntent, JobIntent, NewJob
from holdfast.records import Record, RecordKind, ValueType


class Audit(LogWalk):
    """Counts what happened to tasks; the jobs of processes are another audit's."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.created: Counter[str] = Counter()  # by the reference of the task's effect
        self.completed: Counter[str] = Counter()
        self.failures = 0
        self.expired: set[int] = set()  # tasks whose worker died while it held them
        self.duplicates = 0
        self.incidents_raised = 0
        self.incidents_resolved = 0
        self._reference: dict[int, str] = {}  # task -> its effect
        self._holder: dict[int, str] = {}  # task -> worker that has taken it

    def doubled(self) -> set[str]:
        """What was created or completed more than once."""
        counts = (*self.created.items(), *self.completed.items())
        return {reference for reference, count in counts if count > 1}

    def held_by(self, worker: str) -> int:
        """How many tasks a worker has taken and not told about, as far as was read."""
        return sum(1 for holder in self._holder.values() if holder == worker)

    def take_up(self, record: Record) -> None:
        """Counts what is about a task."""
        match record.kind, record.value_type, record.intent:
            case RecordKind.EVENT, ValueType.JOB, JobIntent.CREATED:
                if record.value.instance_key:
                    return
                reference = self._reference[record.key] = _reference_of(record.value)
                self.created[reference] += 1
            case RecordKind.EVENT, ValueType.JOB, JobIntent.COMPLETED if self._is_task(record.key):
                self.completed[self._reference[record.key]] += 1
                self._holder.pop(record.key, None)
            case RecordKind.EVENT, ValueType.JOB, JobIntent.FAILED if self._is_task(record.key):
                self.failures += 1
                self._holder.pop(record.key, None)
            case RecordKind.EVENT, ValueType.JOB_BATCH, JobBatchIntent.ACTIVATED:
                self._holder.update(dict.fromkeys(record.value.jobs, record.value.worker))
            case RecordKind.EVENT, ValueType.JOB_BATCH, JobBatchIntent.EXPIRED:
                self.expired.update(record.value.jobs)
            case RecordKind.EVENT, ValueType.INCIDENT, IncidentIntent.CREATED:
                self.incidents_raised += self._is_task(record.value.job_key)
            case RecordKind.EVENT, ValueType.INCIDENT, IncidentIntent.RESOLVED:
                self.incidents_resolved += self._is_task(record.value.job_key)
            case RecordKind.REJECTION, ValueType.JOB, JobIntent.CREATE:
                self.duplicates += 1
            case _:
                pass

    def _is_task(self, key: int) -> bool:
        return key in self._reference


class _Order(msgspec.Struct):
    """What all payloads of the demo have in common."""

    order: int


def _reference_of(job: NewJob) -> str:
    """The name under which the ledger knows the effect of a task."""
    return f"{job.type}-{msgspec.json.decode(job.payload, type=_Order).order}"
