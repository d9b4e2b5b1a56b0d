"""Tasks: submit them, see them, wait for their results."""

import asyncio
from collections.abc import Iterator, Sequence
from itertools import count

import msgspec
from msgspec import UNSET

from holdfast.clock import Clock
from holdfast.config import Config
from holdfast.engine.jobs.values import Job, JobEnded, JobIntent, JobRef, JobState, NewJob, Outcome
from holdfast.engine.kernel import Command, Reply
from holdfast.engine.state import EngineState
from holdfast.errors import Code, InvalidArgument, NotFound
from holdfast.gateway import checks
from holdfast.gateway.access.asking import Asked
from holdfast.gateway.access.reading import may_read_instance, may_read_job, may_read_outcome
from holdfast.gateway.tasks.defaults import DefaultsOfTasks
from holdfast.gateway.tasks.shapes import (
    NewTask,
    TaskOutcome,
    TaskPage,
    TaskQuery,
    TaskReceipt,
    TaskView,
)
from holdfast.limits import (
    PAGE_ITEMS_MAX,
    REQUEST_BYTES_MAX,
    TASKS_PER_SUBMIT_MAX,
    WAIT_MS_MAX,
)
from holdfast.records import ValueType, partition_for, partition_of
from holdfast.records.keys import NO_KEY

_CREATE, _JOB = JobIntent.CREATE, ValueType.JOB


class Tasks:
    """What can be asked about tasks."""

    def __init__(
        self, runner: Asked, config: Config, clock: Clock, defaults: DefaultsOfTasks
    ) -> None:
        self._runner = runner
        self._defaults = defaults
        self._config = config
        self._clock = clock
        self._partitions = len(runner.processors)
        self._turn = count()
        self._waiters: dict[int, list[asyncio.Future[Outcome]]] = {}

    # --- submitting ---------------------------------------------------------------------------

    async def submit(self, tasks: Sequence[NewTask]) -> list[TaskReceipt]:
        """Tasks without a key go to one partition in one append; a key decides its partition."""
        checks.within(len(tasks), 1, TASKS_PER_SUBMIT_MAX, "number of tasks")
        now_ms, config = self._clock.now_ms(), self._config
        anywhere = next(self._turn) % self._partitions + 1
        groups: dict[int, tuple[list[int], list[Command]]] = {}
        size_bytes = 0
        defaults_of = self._defaults.of
        for index, task in enumerate(tasks):
            job: NewJob = checks.new_job(task, now_ms, config, defaults_of)
            size_bytes += len(job.payload)
            key = job.idempotency_key
            partition = partition_for(key, self._partitions) if key else anywhere
            group = groups.get(partition)
            if group is None:
                group = groups[partition] = ([], [])
            group[0].append(index)
            group[1].append(Command(_JOB, _CREATE, NO_KEY, job))
        checks.within(size_bytes, 0, REQUEST_BYTES_MAX, "bytes of payload in one request")
        tickets = self._runner.submit_all(
            {partition: group[1] for partition, group in groups.items()}, size_bytes
        )
        if len(tickets) == 1:
            return [_receipt(reply) for reply in await tickets[0]]
        receipts: list[TaskReceipt | None] = [None] * len(tasks)
        for (indexes, _), replies in zip(
            groups.values(), await asyncio.gather(*tickets), strict=True
        ):
            for index, reply in zip(indexes, replies, strict=True):
                receipts[index] = _receipt(reply)
        return [receipt for receipt in receipts if receipt is not None]

    async def cancel(self, task_key: str) -> None:
        key = checks.key_from(task_key, self._partitions, "task")
        command = Command(_JOB, JobIntent.CANCEL, key, JobRef())
        (reply,) = await self._runner.submit(partition_of(key), [command])
        if error := reply.error():
            raise error

    # --- looking ------------------------------------------------------------------------------

    async def task(self, task_key: str) -> TaskView:
        key = checks.key_from(task_key, self._partitions, "task")
        await self._runner.settled()
        state = self._state(key)
        job = state.jobs.jobs.get(key)
        if job is not None and may_read_job(self._runner, job, state):
            return self._view(key, job, state)
        outcome = state.jobs.outcome(key)
        if (
            outcome is not None
            and not outcome.definition  # of a process instance, which is no task
            and may_read_outcome(self._runner, outcome, state)
        ):
            return TaskView(
                task_key, outcome.type, outcome.state,
                result=_raw(outcome), error=outcome.error or None,
                finished=checks.moment(outcome.finished_ms),
            )  # fmt: skip
        raise NotFound(
            f"Expected a task with key {task_key}, but it is unknown or no longer kept",
            key=task_key,
        )

    async def tasks(self, query: TaskQuery) -> TaskPage:
        """Tasks that have not ended, in the order of their keys."""
        limit = checks.within(query.limit, 1, PAGE_ITEMS_MAX, "limit")
        after = checks.key_after(query.after, self._partitions, "task")
        if query.state in (JobState.COMPLETED, JobState.CANCELED, JobState.DISCARDED):
            raise InvalidArgument(
                f"Expected a state of tasks that have not ended, but found {query.state}"
            )
        await self._runner.settled()
        items: list[TaskView] = []
        for looked_at, (key, job, state) in enumerate(self._walk(after)):
            if looked_at % 10_000 == 9_999:
                await asyncio.sleep(0)  # a long walk lets others pass
                await self._runner.settled()
            if query.type is not None and job.submitted.type != query.type:
                continue
            if not may_read_job(self._runner, job, state):
                continue
            if query.state is not None and state.jobs.state_of(key, job) != query.state:
                continue
            items.append(self._view(key, job, state, with_payload=False))
            if len(items) == limit:
                return TaskPage(items, items[-1].task_key)
        return TaskPage(items)

    def _walk(self, after: int) -> Iterator[tuple[int, Job, EngineState]]:
        """All jobs behind a key. Each chunk is read at once, because the state changes between."""
        for partition in range(max(partition_of(after), 1), self._partitions + 1):
            state, last = self._runner.processors[partition].view, after
            while True:
                chunk: list[tuple[int, Job]] = []
                for row in state.jobs.jobs.scan(start=last + 1):
                    chunk.append(row)
                    if len(chunk) == 1_000:
                        break
                for key, job in chunk:
                    yield key, job, state
                if len(chunk) < 1_000:
                    break
                last = chunk[-1][0]
            after = 0

    def _state(self, key: int) -> EngineState:
        return self._runner.processors[partition_of(key)].view

    def _view(
        self, key: int, job: Job, state: EngineState, *, with_payload: bool = True
    ) -> TaskView:
        new, lease = job.submitted, state.jobs.active.get(key)
        holder = state.jobs.leases.get(lease) if lease else None
        return TaskView(
            str(key), new.type, state.jobs.state_of(key, job),
            payload=_payload(new, state) if with_payload else UNSET,
            error=job.error or None, priority=new.priority, retries=job.retries,
            failures=job.failures, created=checks.moment(job.created_ms),
            due=checks.moment(job.due_ms), worker=holder.worker if holder else None,
            incident_key=str(job.incident_key) if job.incident_key else None,
        )  # fmt: skip

    # --- waiting ------------------------------------------------------------------------------

    async def results(self, task_keys: Sequence[str], wait_ms: int) -> list[TaskOutcome]:
        """How tasks ended; those that did not in time come with the state they are in."""
        checks.within(len(task_keys), 1, TASKS_PER_SUBMIT_MAX, "number of tasks")
        checks.within(wait_ms, 0, WAIT_MS_MAX, "waitMs")
        keys = [checks.key_from(key, self._partitions, "task") for key in task_keys]
        await self._runner.settled()
        waiting: dict[int, asyncio.Future[Outcome]] = {}
        found: dict[int, TaskOutcome] = {}
        for key in keys:
            outcome = self._outcome(key)
            if outcome is not None:
                found[key] = outcome
            elif wait_ms:
                waiting[key] = self._wait(key)
        try:
            if waiting:
                await asyncio.wait(waiting.values(), timeout=wait_ms / 1000)
        finally:
            for key, future in waiting.items():
                self._stop_waiting(key, future)
        for key, future in waiting.items():
            if future.done() and not future.cancelled():
                found[key] = _outcome_shape(key, future.result())
        return [found.get(key) or TaskOutcome(str(key), self._standing(key)) for key in keys]

    def _outcome(self, key: int) -> TaskOutcome | None:
        """How a task ended or why it is stuck; None while it is on its way."""
        state = self._state(key)
        job = state.jobs.jobs.get(key)
        if job is None:
            instance = state.processes.instances.get(key)
            if instance is not None:
                definition = state.processes.definitions.get(instance.definition)
                assert definition is not None
                hidden = not may_read_instance(self._runner, definition.process_id)
                return TaskOutcome(str(key), None) if hidden else None
            kept = state.jobs.outcome(key)
            if kept is None or not may_read_outcome(self._runner, kept, state):
                return TaskOutcome(str(key), None)
            return _outcome_shape(key, kept)
        if not may_read_job(self._runner, job, state):
            return TaskOutcome(str(key), None)
        if job.incident_key:
            return TaskOutcome(str(key), state.jobs.state_of(key, job), error=job.error)
        return None

    def _standing(self, key: int) -> JobState | None:
        state = self._state(key)
        job = state.jobs.jobs.get(key)
        if job is not None:
            return state.jobs.state_of(key, job)
        running = state.processes.instances.get(key) is not None
        return JobState.ACTIVE if running else None

    def _wait(self, key: int) -> "asyncio.Future[Outcome]":
        future: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self._waiters.setdefault(key, []).append(future)
        return future

    def _stop_waiting(self, key: int, future: "asyncio.Future[Outcome]") -> None:
        waiters = self._waiters.get(key)
        if waiters and future in waiters:
            waiters.remove(future)
            if not waiters:
                del self._waiters[key]

    def ended(self, event: JobEnded) -> None:
        """A job ended: whoever waits for it is told."""
        for future in self._waiters.pop(event.key, ()) if self._waiters else ():
            if not future.done():
                future.set_result(event.outcome)


def _receipt(reply: Reply) -> TaskReceipt:
    rejection = reply.rejection
    if rejection is None:
        return TaskReceipt(str(reply.key), True)
    if rejection.code == Code.ALREADY_EXISTS:
        return TaskReceipt(str(reply.key), False)
    error = reply.error()
    assert error is not None
    raise error


def _payload(new: NewJob, state: EngineState) -> msgspec.Raw:
    """What its worker gets; of a process's job, that is the variables as they are now."""
    if not new.instance_key:
        return msgspec.Raw(new.payload)
    variables, _ = state.processes.work_of(new.element_key, new.instance_key, None)
    return msgspec.Raw(variables)


def _raw(outcome: Outcome) -> msgspec.Raw | msgspec.UnsetType:
    return msgspec.Raw(outcome.result) if outcome.state == JobState.COMPLETED else UNSET


def _outcome_shape(key: int, outcome: Outcome) -> TaskOutcome:
    return TaskOutcome(str(key), outcome.state, _raw(outcome), outcome.error or None)
