"""A function that runs for a job: how it is called, and how it knows what it was called for."""

import traceback
from collections.abc import Collection
from contextvars import ContextVar
from typing import Any

import msgspec

from holdfast.client.attempt import Done, raised
from holdfast.client.codec import PLAIN_VALUES, Values
from holdfast.client.task import Task
from holdfast.client.views import JobDetails, job_of
from holdfast.errors import InvalidState
from holdfast.gateway.tasks.shapes import ActivatedJob


class _Running(msgspec.Struct, gc=False, eq=False):
    """The job that a function was called for, and whether a transaction has completed it."""

    job: ActivatedJob
    values: Values
    is_over: bool = False


_current: ContextVar[_Running] = ContextVar("job")


def current_job() -> JobDetails:
    """The job that the running function was called for: its key, attempt, process and headers."""
    try:
        running = _current.get()
        return job_of(running.job, running.values)
    except LookupError:
        raise InvalidState("Expected to be inside a running task, but this is none") from None


def completed(job_keys: Collection[str]) -> None:
    """Jobs are completed: if that of the running function is, its worker reports nothing."""
    running = _current.get(None)
    if running is not None and running.job.job_key in job_keys:
        running.is_over = True


def enter_job(task: Task[..., Any], job: ActivatedJob) -> None:
    """What runs from here on in this context runs for this job."""
    _current.set(_Running(job, task.app.values))


def run_function(task: Task[..., Any], job: ActivatedJob) -> Any:
    """Calls the task's function with the arguments in a job's payload."""
    _current.set(_Running(job, task.app.values))
    return task.function(**task.arguments.decode(job.payload))


def returned(task: Task[..., Any], job: ActivatedJob, result: Any) -> Done:
    """What is told of an attempt that came to its end."""
    if _current.get().is_over:
        return Done(job, is_over=True)
    return Done(job, encoded_result(task, job, result))


def encoded_result(task: Task[..., Any], job: ActivatedJob, result: Any) -> bytes:
    """What the function returned, as the node gets it."""
    values = task.app.values
    data = values.encode(result, place="the result", is_open=task.arguments.is_result_open)
    return values.sealed_result(job, data) if values.seals else data


def failed(job: ActivatedJob, error: BaseException) -> Done:
    """What is told of an attempt that raised."""
    running = _current.get(None)
    if running is not None and running.is_over and running.job.job_key == job.job_key:
        text = "".join(traceback.format_exception(error)).rstrip()
        return Done(job, error=text, is_over=True)
    return raised(job, error, PLAIN_VALUES if running is None else running.values)
