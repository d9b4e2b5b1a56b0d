"""What the end of a partition's log tells of tasks, instances and incidents that have ended.

This is memory and no state: nothing is stored, and nothing is noted while work goes on. A question
reads the log on from where the last one stopped, so only those who ask pay for it.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence

import msgspec

from holdfast.engine.ended.values import EndedKind, EndedThing
from holdfast.engine.incidents.values import (
    IncidentIntent,
    IncidentState,
    JobIncident,
    error_line,
)
from holdfast.engine.jobs.values import (
    Completion,
    Ending,
    FailureRecorded,
    JobBatchIntent,
    JobIntent,
    JobState,
    Lease,
    NewJob,
    ThrowError,
)
from holdfast.engine.kernel.others import one_at_a_time
from holdfast.engine.processes.values import Advance, InstanceIntent
from holdfast.limits import ENDED_BEGUN_RATIO
from holdfast.records import Record, RecordKind, ValueType

_EVENT = RecordKind.EVENT


class Begun(msgspec.Struct, gc=False):
    """Something that has not ended as far as the log was read."""

    type: str = ""
    created_ms: int = 0
    created_at: int = -1
    failures: int = 0
    error: str = ""
    worker: str = ""
    instance_key: int = 0


_NOTHING = Begun()


class RecentlyEnded:
    """The last things of each kind that ended on a partition, oldest first."""

    def __init__(self) -> None:
        self.looking = one_at_a_time()  # its holder reads the log
        self.next_offset = -1  # where the log is read on; -1: it was not read
        self.things: tuple[OrderedDict[int, EndedThing], ...] = tuple(
            OrderedDict[int, EndedThing]() for _ in EndedKind
        )
        self._begun: OrderedDict[int, Begun] = OrderedDict()  # jobs and instances
        self._things_max = 0  # of each kind
        # since when everything is known, of each kind; 0: since the partition began
        self._since_ms = [0 for _ in EndedKind]
        self._first_ms: int | None = None  # when the first record was written that was read

    # --- what was read ------------------------------------------------------------------------

    def fit(self, things_max: int) -> None:
        """Keeps so many of each kind."""
        if things_max > self._things_max:
            self.next_offset = -1  # what was let go is read again
        self._things_max = things_max
        for kind in EndedKind:
            self._let_go(kind, lambda things, _: len(things) > things_max)

    def begin(self, offset: int) -> None:
        """What is known is not needed: reading begins at an offset."""
        self.next_offset = offset
        self._begun.clear()
        self._since_ms = [0 for _ in EndedKind]
        self._first_ms = None
        for things in self.things:
            things.clear()

    def forget_before(self, oldest_ms: int) -> None:
        """What ended before a time has been kept for long enough."""
        for kind in EndedKind:
            self._let_go(kind, lambda _, oldest: oldest.ended_ms < oldest_ms)
            if self._first_ms is not None and self._first_ms < oldest_ms:
                self._since_ms[kind] = max(self._since_ms[kind], oldest_ms)

    def since_ms(self, kind: EndedKind) -> int:
        """Since when all that ended is known; 0: since the partition began."""
        return self._since_ms[kind]

    def size(self) -> int:
        """How many things are kept in memory, and how many of them that have not ended."""
        return len(self._begun) + sum(map(len, self.things))

    def _let_go(
        self, kind: EndedKind, is_over: Callable[[OrderedDict[int, EndedThing], EndedThing], bool]
    ) -> None:
        things = self.things[kind]
        while things:
            oldest = next(iter(things.values()))
            if not is_over(things, oldest):
                return
            things.popitem(last=False)
            # others of the same moment may be gone with it
            self._since_ms[kind] = max(self._since_ms[kind], oldest.ended_ms + 1)

    # --- reading ------------------------------------------------------------------------------

    def read(self, records: Sequence[Record], offsets: Iterable[int]) -> None:
        """Goes on with further records of the log, and the offsets that they have."""
        if self._first_ms is None and records:
            self._first_ms = records[0].timestamp_ms
            if records[0].position > 0:
                self._since_ms = [self._first_ms + 1 for _ in EndedKind]
        for record, offset in zip(records, offsets, strict=True):
            if record.kind is _EVENT:
                note = _NOTES.get((record.value_type, record.intent))
                if note is not None:
                    note(self, record, offset)
            self.next_offset = offset + 1

    def note_begun(self, key: int, begun: Begun) -> None:
        """Something began: how it did is of use when it ends."""
        self._begun[key] = begun
        if len(self._begun) > ENDED_BEGUN_RATIO * self._things_max:
            self._begun.popitem(last=False)

    def begun(self, key: int) -> Begun:
        """How something began, to be changed; of something old it is not known."""
        found = self._begun.get(key)
        if found is None:
            found = Begun()
            self.note_begun(key, found)
        return found

    def how_begun(self, key: int) -> Begun:
        """How something began that has ended."""
        return self._begun.pop(key, _NOTHING)

    def note_ended(self, kind: EndedKind, thing: EndedThing) -> None:
        """Something ended."""
        things = self.things[kind]
        things[thing.key] = thing
        if len(things) > self._things_max:
            self._let_go(kind, lambda things, _: len(things) > self._things_max)

    def note_deleted(self, kind: EndedKind, key: int) -> None:
        """Something that ended is wanted no longer."""
        self.things[kind].pop(key, None)


# --- one function an event --------------------------------------------------------------------

Note = Callable[[RecentlyEnded, Record, int], None]


def _job_created(ended: RecentlyEnded, event: Record, offset: int) -> None:
    new: NewJob = event.value
    begun = Begun(new.type, event.timestamp_ms, offset, instance_key=new.instance_key)
    ended.note_begun(event.key, begun)


def _job_failed(ended: RecentlyEnded, event: Record, offset: int) -> None:
    failure: FailureRecorded = event.value
    begun = ended.begun(event.key)
    begun.failures += 1
    begun.error = error_line(failure.error)


def _leased(ended: RecentlyEnded, event: Record, offset: int) -> None:
    lease: Lease = event.value
    for key in lease.jobs:
        begun = ended.begun(key)
        begun.type, begun.worker = lease.type, lease.worker


def _job_ended(state: JobState) -> Note:
    def note(ended: RecentlyEnded, event: Record, offset: int) -> None:
        value = event.value
        if isinstance(value, ThrowError) and value.incident_key:
            return  # nobody caught the error: the job waits for a person
        began = ended.how_begun(event.key)
        error = error_line(_error_of(value)) or began.error
        thing = EndedThing(
            event.key, state, event.timestamp_ms, offset, began.type, began.created_ms,
            began.created_at, began.failures, error if state is not JobState.COMPLETED else "",
            began.worker, began.instance_key,
        )  # fmt: skip
        ended.note_ended(EndedKind.TASK, thing)

    return note


def _error_of(value: Completion | Ending | ThrowError) -> str:
    if isinstance(value, ThrowError):
        return value.message or value.code
    return value.error if isinstance(value, Ending) else ""


def _instance_created(ended: RecentlyEnded, event: Record, offset: int) -> None:
    ended.note_begun(event.key, Begun("", event.timestamp_ms, offset))


def _instance_ended(state: JobState) -> Note:
    def note(ended: RecentlyEnded, event: Record, offset: int) -> None:
        step: Advance = event.value
        began = ended.how_begun(event.key)
        thing = EndedThing(
            event.key, state, event.timestamp_ms, offset, "", began.created_ms, began.created_at,
            definition=step.definition,
        )  # fmt: skip
        ended.note_ended(EndedKind.INSTANCE, thing)

    return note


def _instance_deleted(ended: RecentlyEnded, event: Record, offset: int) -> None:
    ended.note_deleted(EndedKind.INSTANCE, event.key)


def _incident_created(ended: RecentlyEnded, event: Record, offset: int) -> None:
    ended.note_begun(event.key, Begun("", event.timestamp_ms, offset))


def _incident_ended(state: IncidentState) -> Note:
    def note(ended: RecentlyEnded, event: Record, offset: int) -> None:
        told: JobIncident = event.value
        about = told.incident
        if about is None:  # an earlier version wrote it, which said nothing more
            return
        began = ended.how_begun(event.key)
        thing = EndedThing(
            event.key, state, event.timestamp_ms, offset, about.job_type, about.created_ms,
            began.created_at, error=error_line(about.error), instance_key=about.instance_key,
            process_id=about.process_id, incident=about,
        )  # fmt: skip
        ended.note_ended(EndedKind.INCIDENT, thing)

    return note


_JOB, _INSTANCE, _INCIDENT = ValueType.JOB, ValueType.PROCESS_INSTANCE, ValueType.INCIDENT
_NOTES: dict[tuple[int, int], Note] = {
    (_JOB, JobIntent.CREATED): _job_created,
    (_JOB, JobIntent.FAILED): _job_failed,
    (_JOB, JobIntent.COMPLETED): _job_ended(JobState.COMPLETED),
    (_JOB, JobIntent.CANCELED): _job_ended(JobState.CANCELED),
    (_JOB, JobIntent.DISCARDED): _job_ended(JobState.DISCARDED),
    (_JOB, JobIntent.ERROR_THROWN): _job_ended(JobState.ERROR_THROWN),
    (ValueType.JOB_BATCH, JobBatchIntent.ACTIVATED): _leased,
    (_INSTANCE, InstanceIntent.CREATED): _instance_created,
    (_INSTANCE, InstanceIntent.COMPLETED): _instance_ended(JobState.COMPLETED),
    (_INSTANCE, InstanceIntent.CANCELED): _instance_ended(JobState.CANCELED),
    (_INSTANCE, InstanceIntent.DELETED): _instance_deleted,
    (_INCIDENT, IncidentIntent.CREATED): _incident_created,
    (_INCIDENT, IncidentIntent.RESOLVED): _incident_ended(IncidentState.RESOLVED),
    (_INCIDENT, IncidentIntent.DISCARDED): _incident_ended(IncidentState.DISCARDED),
}
