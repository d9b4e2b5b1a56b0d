"""How one attempt of a job ended: what the node is told of it, and what is logged."""

import traceback
from collections.abc import Mapping
from typing import Any

import msgspec

from holdfast.client.codec import PLAIN_VALUES, Values
from holdfast.client.fitting import UnfitArguments
from holdfast.client.task import Task
from holdfast.engine.jobs.backoff import pause_ms
from holdfast.engine.jobs.values import Backoff
from holdfast.errors import InvalidArgument
from holdfast.gateway.tasks.shapes import ActivatedJob, JobError
from holdfast.logs import log


class RetryLaterError(Exception):
    """Raised by a task: retry after this many seconds, instead of the back-off."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"asked to be retried in {seconds} s")
        self.seconds = seconds


class GiveUpError(Exception):
    """Raised by a task: a retry cannot help."""


class BusinessError(Exception):
    """Raised by a task of a process: the work ends in an error that the process handles.

    A boundary event with the code catches it; variables go along. Outside a process it is a failure
    that trying again does not fix.
    """

    def __init__(self, code: str, message: str = "", **variables: Any) -> None:
        super().__init__(f"{code}: {message}" if message else code)
        self.error_code = code
        self.message = message
        self.variables = variables

    def __reduce__(self) -> tuple[Any, ...]:
        return _business_error, (self.error_code, self.message, self.variables)


def _business_error(code: str, message: str, variables: dict[str, Any]) -> BusinessError:
    return BusinessError(code, message, **variables)


class Done(msgspec.Struct, frozen=True, gc=False):
    """What became of one job."""

    job: ActivatedJob
    result: bytes | None = None  # JSON; None with an error
    error: str | None = None
    final: bool = False
    retry_after_ms: int | None = None
    thrown: BusinessError | None = None  # for the process that the job belongs to
    is_over: bool = False  # a transaction completed it: there is nothing to report
    is_expected: bool = False  # the task raised one of the errors above, as part of its work


def raised(job: ActivatedJob, error: BaseException, values: Values = PLAIN_VALUES) -> Done:
    """What is told of an attempt that raised."""
    if isinstance(error, BusinessError) and job.origin is not None:
        try:
            values.variables(error.variables)
        except InvalidArgument as refused:
            return Done(job, error=f"{error}, but its variables: {refused.message}", final=True)
        return Done(job, thrown=error, is_expected=True)
    if isinstance(error, RetryLaterError):
        after_ms = int(error.seconds * 1000)
        return Done(job, error=str(error), retry_after_ms=after_ms, is_expected=True)
    text = "".join(traceback.format_exception(error)).rstrip()
    is_expected = isinstance(error, BusinessError)
    final = is_expected or isinstance(error, GiveUpError | UnfitArguments)
    return Done(job, error=text, final=final, is_expected=is_expected)


def job_error(done: Done, tasks: Mapping[str, Task[..., Any]]) -> JobError:
    """The error of a job as the node is told it."""
    thrown = done.thrown
    assert thrown is not None
    variables = tasks[done.job.type].app.values.variables(thrown.variables)
    return JobError(done.job.job_key, done.job.lease, thrown.error_code, thrown.message, variables)


# --- what is logged ---------------------------------------------------------------------------


def log_failure(task: Task[..., Any], done: Done, error: BaseException | None = None) -> None:
    """Logs an attempt that failed: which task, which attempt, what happens next, and why.

    Without the exception itself, which does not travel from a child process, the text of its
    traceback is logged.
    """
    job = done.job
    fields: dict[str, Any] = {"task": job.type, "key": job.job_key, "attempt": job.attempt}
    if job.origin is not None:
        fields |= {
            "process": job.origin.process_id,
            "instance": job.origin.process_instance_key,
            "element": job.origin.element_id,
        }
    fields["next"] = _next(task, done)
    if done.is_expected:
        text = str(done.thrown) if done.thrown else (done.error or "").rsplit("\n", 1)[-1]
        is_calm = done.thrown is not None or _is_retried(done)
        (log.info if is_calm else log.warning)(_event(done), **fields, error=text)
        return
    why: dict[str, Any] = {"traceback": done.error} if error is None else {"exc_info": error}
    is_calm = done.is_over or _is_retried(done)
    (log.warning if is_calm else log.error)(_event(done), **fields, **why)


def _is_retried(done: Done) -> bool:
    return not done.final and done.job.retries > 0


def _event(done: Done) -> str:
    if done.is_over:
        return "task raised after its job was completed"
    if done.thrown is not None:
        return "task threw a business error"
    return "task asked to be retried" if done.retry_after_ms is not None else "task failed"


def _next(task: Task[..., Any], done: Done) -> str:
    """What the node will do about it."""
    job = done.job
    if done.is_over:
        return "nothing: a transaction completed the job"
    if done.thrown is not None:
        return f"the process gets error {done.thrown.error_code!r}"
    if not _is_retried(done):
        return f"incident: {'not to be retried' if done.final else 'no retries left'}"
    left = "1 retry" if job.retries == 1 else f"{job.retries} retries"
    if done.retry_after_ms is not None:
        return f"retried in {done.retry_after_ms / 1000:g} s ({left} left)"
    # About, because a submission may set another back-off than its task, and only the node knows.
    return f"retried in about {_pause_ms(task, job) / 1000:.1f} s ({left} left)"


def _pause_ms(task: Task[..., Any], job: ActivatedJob) -> int:
    backoff = Backoff()  # of all jobs of processes
    if job.origin is None:
        own = task.options.backoff
        backoff = Backoff(own.kind, own.base_ms, own.cap_ms, own.jitter_percent)
    return pause_ms(backoff, job.attempt, int(job.job_key))
