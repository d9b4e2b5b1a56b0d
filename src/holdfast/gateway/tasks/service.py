"""Tasks: submit them, see them, wait for their results."""

import asyncio
from collections.abc import Sequence

import msgspec
from msgspec import UNSET

from holdfast.clock import Clock
from holdfast.config import Config
from holdfast.engine.ended.queries import FoundEnded
from holdfast.engine.ended.values import EndedKind, EndedThing
from holdfast.engine.jobs.queries import FindStandings, FindTask, FoundTask, ListTasks, Standing
from holdfast.engine.jobs.values import (
    FINAL_STATES,
    JobIntent,
    JobRef,
    JobState,
    NewJob,
    Outcome,
)
from holdfast.engine.kernel import Command, Reply
from holdfast.errors import Code, NotFound
from holdfast.gateway import checks
from holdfast.gateway.access.asking import Asked
from holdfast.gateway.ended import OLDER, EndedPage, EndedThings, page_of
from holdfast.gateway.shapes import ListScope
from holdfast.gateway.tasks.api import TaskApi
from holdfast.gateway.tasks.defaults import DefaultsOfTasks
from holdfast.gateway.tasks.ends import TaskEnds
from holdfast.gateway.tasks.new_jobs import new_job
from holdfast.gateway.tasks.shapes import (
    NewTask,
    TaskOutcome,
    TaskPage,
    TaskQuery,
    TaskReceipt,
    TaskView,
)
from holdfast.gateway.walk import walk
from holdfast.limits import (
    PAGE_ITEMS_MAX,
    REQUEST_BYTES_MAX,
    TASKS_PER_SUBMIT_MAX,
    WAIT_MS_MAX,
)
from holdfast.records import ValueType, partition_for, partition_of
from holdfast.records.keys import NO_KEY

_CREATE, _JOB = JobIntent.CREATE, ValueType.JOB


class TaskService(TaskApi):
    """What can be asked about tasks."""

    def __init__(
        self, asked: Asked, config: Config, clock: Clock, defaults: DefaultsOfTasks
    ) -> None:
        self._asked = asked
        self._ended = EndedThings(asked, config)
        self._defaults = defaults
        self._config = config
        self._clock = clock

    # --- submitting ---------------------------------------------------------------------------

    async def submit(self, tasks: Sequence[NewTask]) -> list[TaskReceipt]:
        """Tasks without a key go to one partition in one append; a key decides its partition."""
        checks.within(len(tasks), 1, TASKS_PER_SUBMIT_MAX, "number of tasks")
        now_ms, config = self._clock.now_ms(), self._config
        anywhere = self._asked.anywhere(len(tasks))
        groups: dict[int, tuple[list[int], list[Command]]] = {}
        size_bytes = 0
        await self._defaults.learn({task.type for task in tasks})
        defaults_of = self._defaults.of
        for index, task in enumerate(tasks):
            job: NewJob = new_job(task, now_ms, config, defaults_of)
            size_bytes += len(job.payload)
            if task.headers:
                size_bytes += checks.headers_bytes(task.headers)
            key = job.idempotency_key
            partition = partition_for(key, self._asked.count) if key else anywhere
            group = groups.get(partition)
            if group is None:
                group = groups[partition] = ([], [])
            group[0].append(index)
            group[1].append(Command(_JOB, _CREATE, NO_KEY, job))
        checks.within(size_bytes, 0, REQUEST_BYTES_MAX, "bytes of payload in one request")
        tickets = self._asked.submit_all(
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
        key = checks.key_from(task_key, self._asked.count, "task")
        command = Command(_JOB, JobIntent.CANCEL, key, JobRef())
        (reply,) = await self._asked.submit(partition_of(key), [command])
        if error := reply.error():
            raise error

    # --- looking ------------------------------------------------------------------------------

    async def get(self, task_key: str) -> TaskView:
        key = checks.key_from(task_key, self._asked.count, "task")
        found = await self._asked.ask(partition_of(key), FindTask(key))
        if found is None:
            raise _unknown(task_key)
        return _view(found)

    async def details(self, task_key: str) -> TaskView:
        """The log is read only for a task that has ended."""
        key = checks.key_from(task_key, self._asked.count, "task")
        found = await self._asked.ask(partition_of(key), FindTask(key))
        if found is not None and found.job is not None:
            return _view(found)
        ended = await self._ended.find(EndedKind.TASK, key)
        if ended is not None:
            return details_view(ended)
        if found is None:
            raise NotFound(
                f"Expected a task with key {task_key}, but it is unknown or ended too long ago;"
                f" {OLDER}",
                key=task_key,
            )
        return _view(found)

    async def page(self, query: TaskQuery) -> TaskPage:
        """Open tasks are asked for one partition after the other, ended ones all at once."""
        limit = checks.within(query.limit, 1, PAGE_ITEMS_MAX, "limit")

        async def list_open(after: str | None, left: int) -> tuple[list[TaskView], int]:
            start = checks.key_after(after, self._asked.count, "task")
            found, last = await walk(
                self._asked, start, left,
                lambda after, left: ListTasks(after, left, query.type, query.state),
            )  # fmt: skip
            return [_view(each, with_payload=False) for each in found], last

        async def list_ended(after: str | None, left: int) -> EndedPage:
            return await self._ended.page(
                EndedKind.TASK, after, left, type=query.type, state=query.state
            )

        scope, state = query.scope, query.state
        if state in FINAL_STATES - {JobState.ERROR_THROWN}:  # which one with an incident has, too
            scope = ListScope.ENDED
        elif state is not None and state not in FINAL_STATES:
            scope = ListScope.OPEN
        page = await page_of(scope, query.after, limit, list_open, list_ended, ended_view)
        return TaskPage(page.items, page.after, page.ended_since)

    # --- waiting ------------------------------------------------------------------------------

    async def results(self, task_keys: Sequence[str], wait_ms: int) -> list[TaskOutcome]:
        """How tasks ended; those that did not in time come with the state they are in."""
        checks.within(len(task_keys), 1, TASKS_PER_SUBMIT_MAX, "number of tasks")
        checks.within(wait_ms, 0, WAIT_MS_MAX, "waitMs")
        keys = [checks.key_from(key, self._asked.count, "task") for key in task_keys]
        ends = TaskEnds(self._asked)
        try:
            if wait_ms:  # before it is asked: what ends in between is told
                ends.follow(keys)
            standing = await self._standing(keys)
            waiting = [key for key, each in standing.items() if not each.is_over]
            if waiting and wait_ms:
                await ends.wait(waiting, wait_ms, self._standing)
            ended = ends.outcomes
        finally:
            ends.stop()
        missing = [key for key in waiting if key not in ended]
        if missing and wait_ms:
            standing |= await self._standing(missing)
        return [
            _outcome_shape(key, ended[key]) if key in ended and not standing[key].is_over
            else _standing_shape(key, standing[key])
            for key in keys
        ]  # fmt: skip

    async def _standing(self, keys: Sequence[int]) -> dict[int, Standing]:
        """Where tasks stand, one query for each partition that has some of them."""
        groups: dict[int, list[int]] = {}
        for key in keys:
            groups.setdefault(partition_of(key), []).append(key)
        found: dict[int, Standing] = {}
        for partition, group in groups.items():
            answers = await self._asked.ask(partition, FindStandings(tuple(group)))
            found.update(zip(group, answers, strict=True))
        return found


def _receipt(reply: Reply) -> TaskReceipt:
    rejection = reply.rejection
    if rejection is None:
        return TaskReceipt(str(reply.key), True)
    if rejection.code == Code.ALREADY_EXISTS:
        return TaskReceipt(str(reply.key), False)
    error = reply.error()
    assert error is not None
    raise error


def _unknown(task_key: str) -> NotFound:
    return NotFound(f"Task {task_key} is unknown or no longer kept", key=task_key)


def ended_view(thing: EndedThing) -> TaskView:
    """A task that ended, as a list shows it."""
    return TaskView(
        str(thing.key), thing.type, JobState(thing.state), error=thing.error or None,
        failures=thing.failures, created=checks.moment(thing.created_ms),
        finished=checks.moment(thing.ended_ms), worker=thing.worker or None,
    )  # fmt: skip


def details_view(found: FoundEnded) -> TaskView:
    """A task that ended, with all that the log tells of it."""
    view, job = ended_view(found.thing), found.job
    is_done = view.state is JobState.COMPLETED
    return msgspec.structs.replace(
        view,
        payload=msgspec.Raw(job.payload) if job is not None and not job.instance_key else UNSET,
        result=msgspec.Raw(found.result) if is_done and found.result else UNSET,
        error=(None if is_done else found.error) or None,
        priority=job.priority if job is not None else None,
    )


def _view(found: FoundTask, *, with_payload: bool = True) -> TaskView:
    job, outcome, key = found.job, found.outcome, str(found.key)
    if job is None:
        assert outcome is not None, "a task is found that neither waits nor ended"
        return TaskView(
            key, outcome.type, outcome.state,
            result=_raw(outcome), error=outcome.error or None,
            finished=checks.moment(outcome.finished_ms),
        )  # fmt: skip
    new = job.submitted
    return TaskView(
        key, new.type, found.state,
        payload=msgspec.Raw(found.payload) if with_payload else UNSET,
        error=job.error or None, priority=new.priority, retries=job.retries,
        failures=job.failures, created=checks.moment(job.created_ms),
        due=checks.moment(job.due_ms), worker=found.worker or None,
        incident_key=str(job.incident_key) if job.incident_key else None,
    )  # fmt: skip


def _raw(outcome: Outcome) -> msgspec.Raw | msgspec.UnsetType:
    return msgspec.Raw(outcome.result) if outcome.state == JobState.COMPLETED else UNSET


def _outcome_shape(key: int, outcome: Outcome) -> TaskOutcome:
    return TaskOutcome(str(key), outcome.state, _raw(outcome), outcome.error or None)


def _standing_shape(key: int, standing: Standing) -> TaskOutcome:
    if standing.outcome is not None:
        return _outcome_shape(key, standing.outcome)
    return TaskOutcome(str(key), standing.state, error=standing.error or None)
