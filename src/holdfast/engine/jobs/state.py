"""The jobs of a partition: their column families and what can be asked of them."""

from collections import Counter
from collections.abc import Iterator
from itertools import islice

import msgspec

from holdfast.engine.due.dates import DueDates, DueKind
from holdfast.engine.families import Tag
from holdfast.engine.jobs.values import (
    FINAL_STATES,
    Job,
    JobState,
    Lease,
    NewJob,
    Outcome,
    TaskDefaults,
)
from holdfast.engine.jobs.waiting import WaitingJobs, check_priority
from holdfast.limits import WAITING_JOBS_LOOKED_AT, WAITING_PRIORITIES_LOOKED_AT
from holdfast.state import EMPTY, PartitionState
from holdfast.state.keys import TEXT, U64, U64_TEXT, U64_U64

_COMPLETED, _CANCELED = JobState.COMPLETED, JobState.CANCELED


class Jobs:
    """Everything a partition knows about its jobs."""

    def __init__(self, state: PartitionState, due: DueDates) -> None:
        self._due = due
        self.jobs = state.family(Tag.JOBS, U64, Job)
        self.waiting = WaitingJobs(state)
        self.active = state.family(Tag.JOBS_ACTIVE, U64, int)  # job -> lease
        self.leases = state.family(Tag.LEASES, U64, Lease)
        self._open = state.family(Tag.LEASES_OPEN, U64, int)  # lease -> jobs still held under it
        self._outcomes = state.family(Tag.JOB_OUTCOMES, U64_U64, Outcome)
        self._idempotency = state.family(Tag.JOB_IDEMPOTENCY, U64_TEXT, int)
        self.defaults = state.family(Tag.TASK_DEFAULTS, TEXT, TaskDefaults)
        self._buckets = state.family(Tag.JOB_BUCKETS, U64, bytes)
        self._bucket_cache: list[int] | None = None
        self._types_held: dict[int, str] | None = None  # by lease; None: read when asked for
        state.when_undone(self._forget)

    def _forget(self) -> None:
        self._types_held = None
        self._bucket_cache = None

    # --- what can be asked --------------------------------------------------------------------

    def state_of(self, key: int, job: Job) -> JobState:
        """Where a job that has not ended stands."""
        if job.incident_key:
            return JobState.ERROR_THROWN if job.error_code else JobState.INCIDENT
        if self.active.get(key) is not None:
            return JobState.ACTIVE
        return JobState.SCHEDULED if job.due_ms else JobState.WAITING

    def held_counts(self) -> Counter[str]:
        """How many jobs workers hold, by type; costs as much as there are leases."""
        if self._types_held is None:
            self._types_held = {key: lease.type for key, lease in self.leases.unordered()}
        counts: Counter[str] = Counter()
        for lease_key, type_ in self._types_held.items():
            counts[type_] += self._open.get(lease_key) or 0
        return counts

    def longest_waiting_ms(self, type_: str) -> int | None:
        """Since when the job waits that waits longest, of the first few of each priority.

        Jobs of a priority are in the order of their creation. One that was delayed or tried before
        may wait shorter than one behind it: then the answer is late by the time since it woke up.
        """
        found: int | None = None
        firsts = self.waiting.firsts(type_, WAITING_JOBS_LOOKED_AT)
        for keys in islice(firsts, WAITING_PRIORITIES_LOOKED_AT):
            jobs = self.jobs.get_many(keys)
            since = min(job.waiting_ms or job.created_ms for job in jobs if job is not None)
            found = since if found is None else min(found, since)
        return found

    def fetch(self, keys: list[int]) -> None:
        """Has the rows of jobs at hand that are to end: few looks into the store for many."""
        self.jobs.get_many(keys)
        self.active.get_many(keys)

    def outcome(self, key: int) -> Outcome | None:
        """How a job ended, while that is kept."""
        for bucket in self._live_buckets():
            if outcome := self._outcomes.get((bucket, key)):
                return outcome
        return None

    def by_idempotency_key(self, key: str, now_ms: int) -> int | None:
        """The job that was created with this idempotency key within its window."""
        for bucket in self._live_buckets():
            if bucket > now_ms and (job := self._idempotency.get((bucket, key))):
                return job
        return None

    def _live_buckets(self) -> list[int]:
        if self._bucket_cache is None:
            self._bucket_cache = [bucket for bucket, _ in self._buckets.scan()]
        return self._bucket_cache

    # --- what appliers change -----------------------------------------------------------------

    def create(self, key: int, submitted: NewJob, now_ms: int) -> None:
        delayed = submitted.due_ms > now_ms
        due_ms = submitted.due_ms if delayed else 0
        self.jobs.insert(key, Job(submitted, submitted.retries, due_ms, 0, 0, 0, now_ms))
        if delayed:
            check_priority(submitted.priority)  # with which it is to wait later
            self._due.add(due_ms, DueKind.JOB, key)
        else:
            self.waiting.add(submitted.type, submitted.priority, key)
        if submitted.idempotency_key:
            self.remember(submitted.idempotency_key, key, now_ms, submitted.window_ms)

    def wait_again(self, key: int, job: Job, now_ms: int) -> None:
        """A worker may have the job, from now on."""
        self.jobs.put(key, msgspec.structs.replace(job, waiting_ms=now_ms))
        self.waiting.add(job.submitted.type, job.submitted.priority, key)

    def lease(self, lease_key: int, lease: Lease) -> None:
        self.leases.insert(lease_key, lease)
        if self._types_held is not None:
            self._types_held[lease_key] = lease.type
        self._open.insert(lease_key, len(lease.jobs))
        self._due.add(lease.deadline_ms, DueKind.LEASE, lease_key)
        self.waiting.take(lease.type, lease.priority, lease.jobs)
        for key in lease.jobs:
            self.active.insert(key, lease_key)

    def _put_lease(self, lease_key: int, lease: Lease) -> None:
        self.leases.put(lease_key, lease)
        if self._types_held is not None:
            self._types_held[lease_key] = lease.type

    def extend(self, lease_key: int, until_ms: int) -> None:
        lease = self.leases.get(lease_key)
        assert lease is not None
        self._due.remove(lease.deadline_ms, DueKind.LEASE, lease_key)
        self._due.add(until_ms, DueKind.LEASE, lease_key)
        self.leases.put(lease_key, msgspec.structs.replace(lease, deadline_ms=until_ms))

    def let_go(self, key: int) -> bool:
        """The job is no longer held by a worker; a lease under which nothing is held ends."""
        lease_key = self.active.take(key)
        if lease_key is None:
            return False
        if self._open.add(lease_key, -1) <= 0:
            lease = self.leases.get(lease_key)
            assert lease is not None, "a job is held under a lease that is not there"
            self._open.delete(lease_key)
            self.leases.delete(lease_key)
            if self._types_held is not None:
                self._types_held.pop(lease_key, None)
            self._due.remove(lease.deadline_ms, DueKind.LEASE, lease_key)
        return True

    def reserve(self, key: int, by: int) -> None:
        """Takes a held job out of its lease into one that no worker knows and that has no end."""
        held = self.leases.get(self.active.get(key) or 0)
        assert held is not None, "a job is reserved that nobody holds"
        self.let_go(key)
        alone = msgspec.structs.replace(held, jobs=(key,), fixed=True, deadline_ms=0)
        self._put_lease(by, alone)
        self._open.put(by, 1)
        self.active.put(key, by)

    def give_back(self, key: int, lease_key: int, lease: Lease) -> None:
        """A reserved job is held as before; if its time is over meanwhile, it is so at once."""
        self.let_go(key)
        if self.leases.get(lease_key) is None:  # nothing else was held under it
            self._put_lease(lease_key, lease)
            self._due.add(lease.deadline_ms, DueKind.LEASE, lease_key)
        self._open.add(lease_key, 1)
        self.active.put(key, lease_key)

    def complete(self, key: int, job: Job, result: bytes, now_ms: int) -> None:
        """The job is done: its rows go, its result stays for as long as was asked."""
        new = job.submitted
        outcome = None
        if new.keep_ms:
            outcome = Outcome(_COMPLETED, result, "", now_ms, new.type, 0, 0, True)
        self.end(key, job, outcome)

    def cancel(self, key: int, job: Job, error: str, now_ms: int) -> None:
        """The job is not wanted any more: its rows go."""
        new = job.submitted
        outcome = None
        if new.keep_ms:
            outcome = Outcome(_CANCELED, b"null", error, now_ms, new.type, is_job=True)
        self.end(key, job, outcome)

    def end(self, key: int, job: Job, outcome: Outcome | None) -> None:
        """The job is over: its rows go, its outcome stays for as long as was asked."""
        if not self.let_go(key):
            if job.due_ms:
                self._due.remove(job.due_ms, DueKind.JOB, key)
            elif not job.incident_key:
                self.waiting.remove(job.submitted.type, job.submitted.priority, key)
        self.jobs.delete(key)
        if outcome is not None and job.submitted.keep_ms:
            self.keep(key, outcome, job.submitted.keep_ms)

    def keep(self, key: int, outcome: Outcome, keep_ms: int) -> None:
        """Keeps how a job or a process instance ended."""
        assert outcome.state in FINAL_STATES
        bucket = self._bucket(outcome.finished_ms, keep_ms)
        self._outcomes.insert((bucket, key), outcome)

    def forget(self, key: int) -> None:
        """How a process instance ended is wanted no longer."""
        for bucket in self._live_buckets():
            if self._outcomes.get((bucket, key)) is not None:
                self._outcomes.delete((bucket, key))

    def remember(self, idempotency_key: str, key: int, now_ms: int, window_ms: int) -> None:
        """Remembers which job or process instance an idempotency key made."""
        self._idempotency.insert((self._bucket(now_ms, window_ms), idempotency_key), key)

    def purge(self, bucket: int, rows: int) -> None:
        """Removes the first rows of a bucket, and the bucket with its last ones."""
        outcomes, keys = self.expired_rows(bucket, rows)
        for key in outcomes:
            self._outcomes.delete(key)
        for key in keys:
            self._idempotency.delete(key)
        self._due.remove(bucket, DueKind.BUCKET, bucket)
        if len(outcomes) + len(keys) < rows:
            self._buckets.delete(bucket)
            self._bucket_cache = None
        else:
            self._due.add(bucket, DueKind.BUCKET, bucket)

    def expired_rows(
        self, bucket: int, limit: int
    ) -> tuple[list[tuple[int, int]], list[tuple[int, str]]]:
        """Up to `limit` outcomes and idempotency keys of a bucket."""
        outcomes = [row for row, _ in _first(self._outcomes.scan((bucket,)), limit)]
        keys = [row for row, _ in _first(self._idempotency.scan((bucket,)), limit - len(outcomes))]
        return outcomes, keys

    def _bucket(self, now_ms: int, span_ms: int) -> int:
        """The bucket of what is to be forgotten after a span.

        A bucket ends on a multiple of an eighth of the span: rows live up to 1/8 longer than asked,
        a span has at most nine buckets to look into, and a whole bucket is forgotten together.
        """
        width = max(span_ms // 8, 1_000)
        bucket = -(-(now_ms + span_ms) // width) * width
        if bucket not in self._live_buckets():
            self._buckets.insert(bucket, EMPTY)
            self._due.add(bucket, DueKind.BUCKET, bucket)
            self._bucket_cache = None
        return bucket


def _first(rows: Iterator, limit: int) -> Iterator:
    for _ in range(limit):
        row = next(rows, None)
        if row is None:
            return
        yield row
