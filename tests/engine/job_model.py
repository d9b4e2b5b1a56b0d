"""What jobs should do, as plain dicts: the model that the engine is driven against."""

from dataclasses import dataclass, field

from holdfast.engine.jobs.values import JobState, NewJob

LEASE_EXPIRIES_MAX = 3  # the engine's limit, lowered so that a random walk reaches it

PAUSE_MS = 2_000


@dataclass
class ModelJob:
    """A job as the model knows it."""

    key: int
    new: NewJob
    state: JobState
    retries: int
    due_ms: int = 0
    failures: int = 0
    expiries: int = 0
    lease: int = 0
    incident: int = 0
    result: bytes = b"null"
    finished_ms: int = 0

    @property
    def ended(self) -> bool:
        return self.state in (JobState.COMPLETED, JobState.CANCELED, JobState.DISCARDED)

    def expire(self) -> None:
        """Its worker did not come back."""
        self.expiries += 1
        self.wait()
        if self.expiries >= LEASE_EXPIRIES_MAX:
            self.state = JobState.INCIDENT

    def fail(self, now_ms: int, *, final: bool = False, retry_after_ms: int | None = None) -> None:
        """Its attempt failed, or took longer than the timeout of its own."""
        self.failures += 1
        self.expiries = 0
        self.wait()
        if final or self.retries == 0:
            self.state, self.retries = JobState.INCIDENT, 0
        else:
            pause_ms = PAUSE_MS if retry_after_ms is None else max(retry_after_ms, 1)
            self.state, self.retries = JobState.SCHEDULED, self.retries - 1
            self.due_ms = now_ms + pause_ms

    def wait(self) -> None:
        self.state, self.lease, self.due_ms, self.incident = JobState.WAITING, 0, 0, 0

    def end(self, state: JobState, now_ms: int) -> None:
        assert not self.ended, "a job ends once"
        self.state, self.finished_ms = state, now_ms
        self.lease = self.incident = self.due_ms = 0


@dataclass
class ModelLease:
    """A lease: until when, and whether it can be extended."""

    deadline_ms: int
    fixed: bool


@dataclass
class Known:
    """What an idempotency key stands for, and since when."""

    job: int
    created_ms: int
    window_ms: int

    def must_be_known(self, now_ms: int) -> bool:
        return now_ms < self.created_ms + self.window_ms

    def may_be_known(self, now_ms: int) -> bool:
        """A window is an eighth longer at most, and a second for the shortest."""
        return now_ms < self.created_ms + self.window_ms + max(self.window_ms // 8, 1_000)


@dataclass
class Model:
    """All jobs there ever were."""

    jobs: dict[int, ModelJob] = field(default_factory=dict)
    leases: dict[int, ModelLease] = field(default_factory=dict)
    keys: dict[str, Known] = field(default_factory=dict)

    def in_state(self, *states: JobState) -> list[int]:
        return [key for key, job in self.jobs.items() if job.state in states]

    def open(self) -> list[int]:
        return [key for key, job in self.jobs.items() if not job.ended]

    def waiting(self, type_: str) -> list[ModelJob]:
        """In the order in which workers get them."""
        found = [
            job
            for job in self.jobs.values()
            if job.state == JobState.WAITING and job.new.type == type_
        ]
        return sorted(found, key=lambda job: (-job.new.priority, job.key))

    def expected_activation(self, types: tuple[str, ...], jobs_max: int) -> list[int]:
        """Who is next; jobs that share a lease come together."""
        chosen = [job for type_ in types for job in self.waiting(type_)][:jobs_max]
        groups: dict[tuple[str, int, int], list[int]] = {}
        for job in chosen:
            group = (job.new.type, job.new.priority, job.new.timeout_ms)
            groups.setdefault(group, []).append(job.key)
        return [key for group in groups.values() for key in group]

    def held_under(self, lease: int) -> list[int]:
        return [key for key, job in self.jobs.items() if job.lease == lease]

    def drop_empty_leases(self) -> None:
        held = {job.lease for job in self.jobs.values()}
        self.leases = {key: lease for key, lease in self.leases.items() if key in held}

    def settle(self, now_ms: int) -> list[int]:
        """Lets everything happen that is due; returns the jobs that came to an incident."""
        stuck: list[int] = []
        for job in self.jobs.values():
            if job.state == JobState.SCHEDULED and job.due_ms <= now_ms:
                job.wait()
            elif job.state == JobState.ACTIVE and self.leases[job.lease].deadline_ms <= now_ms:
                if self.leases[job.lease].fixed:
                    job.fail(now_ms)
                else:
                    job.expire()
                if job.state == JobState.INCIDENT:
                    stuck.append(job.key)
        self.drop_empty_leases()
        return stuck
