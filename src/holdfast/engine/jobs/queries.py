"""What can be asked of the jobs of a partition."""

from itertools import islice

import msgspec

from holdfast.engine.jobs.values import Job, JobState, Outcome, TaskDefaults
from holdfast.engine.kernel.query import Query, questions
from holdfast.engine.reader import Reader
from holdfast.engine.transactions.values import PROMISED
from holdfast.limits import QUERY_ROWS_MAX


class _Answer(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What all answers have in common."""


class FoundTask(_Answer, frozen=True):
    """A task that has not ended, or how it ended."""

    key: int
    job: Job | None = None
    state: JobState = JobState.WAITING
    payload: bytes = b""  # what its worker gets
    worker: str = ""  # who holds it
    outcome: Outcome | None = None


class FindTask(Query[FoundTask | None], frozen=True):
    """A task by its key; None if it is unknown, no longer kept, or not for the asker."""

    key: int


def find_task(reader: Reader, query: FindTask) -> FoundTask | None:
    state, key = reader.state, query.key
    job = state.jobs.jobs.get(key)
    if job is not None and reader.may_read_job(job):
        new = job.submitted
        payload = new.payload
        if new.instance_key:  # the variables as they are now
            payload, *_ = state.processes.work_of(new.element_key, new.instance_key, None)
        return _found(reader, key, job, payload)
    outcome = state.jobs.outcome(key)
    # One with a definition is that of a process instance, which is no task.
    if outcome is None or outcome.definition or not reader.may_read_outcome(outcome):
        reader.check_promised(key)
        return None
    return FoundTask(key, None, outcome.state, outcome=outcome)


def _found(reader: Reader, key: int, job: Job, payload: bytes) -> FoundTask:
    jobs = reader.state.jobs
    lease = jobs.active.get(key)
    holder = jobs.leases.get(lease) if lease else None
    return FoundTask(key, job, jobs.state_of(key, job), payload, holder.worker if holder else "")


class TaskRows(_Answer, frozen=True):
    """Some tasks, and behind which key to go on; 0 if there are no more."""

    items: list[FoundTask]
    next_after: int = 0


class ListTasks(Query[TaskRows], frozen=True):
    """Tasks that have not ended behind a key, in the order of their keys; a bounded look."""

    after: int
    limit: int
    type: str | None = None
    state: JobState | None = None


def list_tasks(reader: Reader, query: ListTasks) -> TaskRows:
    jobs = reader.state.jobs
    items: list[FoundTask] = []
    key = looked_at = 0
    for key, job in islice(jobs.jobs.scan(start=query.after + 1), QUERY_ROWS_MAX):
        looked_at += 1
        if query.type is not None and job.submitted.type != query.type:
            continue
        if not reader.may_read_job(job):
            continue
        if query.state is not None and jobs.state_of(key, job) != query.state:
            continue
        bare = msgspec.structs.replace(job.submitted, payload=b"")  # a list has no payloads
        items.append(_found(reader, key, msgspec.structs.replace(job, submitted=bare), b""))
        if len(items) == query.limit:
            return TaskRows(items, key)
    return TaskRows(items, key if looked_at == QUERY_ROWS_MAX else 0)


class Standing(_Answer, frozen=True):
    """Where a task or a process instance stands."""

    state: JobState | None = None  # None: it is unknown, or not for the asker
    is_over: bool = True  # nothing more is to be waited for
    error: str = ""  # why it is stuck
    outcome: Outcome | None = None  # how it ended


class FindStandings(Query[list[Standing]], frozen=True):
    """Where tasks stand, in the order of the keys."""

    keys: tuple[int, ...]


def find_standings(reader: Reader, query: FindStandings) -> list[Standing]:
    return [_standing(reader, key) for key in query.keys]


_UNKNOWN = Standing()
_RUNNING = Standing(JobState.ACTIVE, is_over=False)
_PROMISED = Standing(JobState.WAITING, is_over=False)  # its key was told with the commit


def _standing(reader: Reader, key: int) -> Standing:
    state = reader.state
    job = state.jobs.jobs.get(key)
    if job is not None:
        if not reader.may_read_job(job):
            return _UNKNOWN
        return Standing(state.jobs.state_of(key, job), bool(job.incident_key), job.error)
    instance = state.processes.instances.get(key)
    if instance is not None:
        definition = state.processes.definitions.get(instance.definition)
        assert definition is not None
        return _RUNNING if reader.may_read_instance(definition.process_id) else _UNKNOWN
    kept = state.jobs.outcome(key)
    if kept is None and state.transactions.reserver(PROMISED, key) is not None:
        return _PROMISED
    if kept is None or not reader.may_read_outcome(kept):
        return _UNKNOWN
    return Standing(kept.state, True, kept.error, kept)


class FindWaitingTypes(Query[list[str]], frozen=True):
    """Those of some types that have waiting jobs."""

    is_fresh = False  # a caller that hears of one activates it, which is on the log
    types: tuple[str, ...]


def find_waiting_types(reader: Reader, query: FindWaitingTypes) -> list[str]:
    return [each for each in query.types if reader.state.jobs.waiting.has(each)]


class FindTaskDefaults(Query[TaskDefaults | None], frozen=True):
    """What workers said about a type of tasks."""

    is_settled = is_fresh = False  # they are asked for by submissions, which wait for nobody
    type: str


def find_task_defaults(reader: Reader, query: FindTaskDefaults) -> TaskDefaults | None:
    return reader.state.jobs.defaults.get(query.type)


class FoundJob(_Answer, frozen=True):
    """A job that has not ended, and the lease under which a worker holds it."""

    job: Job
    lease: int = 0


class FindJob(Query[FoundJob | None], frozen=True):
    """A job by its key, for the gateway to act on it."""

    is_settled = False
    key: int


def find_job(reader: Reader, query: FindJob) -> FoundJob | None:
    jobs = reader.state.jobs
    job = jobs.jobs.get(query.key)
    return None if job is None else FoundJob(job, jobs.active.get(query.key) or 0)


QUERIES = questions(
    find_task, list_tasks, find_standings, find_waiting_types, find_task_defaults, find_job
)
