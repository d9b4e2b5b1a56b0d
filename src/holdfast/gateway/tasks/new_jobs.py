"""Tasks as the engine has them: a job of a submission, and what a worker says of its tasks."""

from collections.abc import Callable
from functools import lru_cache

from holdfast.config import Config
from holdfast.engine.jobs.values import Backoff, BackoffKind, HeadedJob, NewJob, TaskDefaults
from holdfast.errors import InvalidArgument
from holdfast.gateway.checks import headers, kind, name, within
from holdfast.gateway.tasks.shapes import NewTask, RetryBackoff, TaskOptions
from holdfast.limits import PAYLOAD_BYTES_MAX, PRIORITY_MAX, RETRIES_MAX, SPAN_MS_MAX

_BUILT_IN = TaskDefaults("")

DefaultsOf = Callable[[str], TaskDefaults | None]
"""What the worker of a type of tasks has said about them; None if it has said nothing."""


def new_job(task: NewTask, now_ms: int, config: Config, defaults_of: DefaultsOf) -> NewJob:
    """The job that a submitted task becomes."""
    payload, type_ = bytes(task.payload), name(task.type, "type")
    defaults = defaults_of(type_) or _BUILT_IN
    priority = defaults.priority if task.priority is None else task.priority
    retries = defaults.retries if task.retries is None else task.retries
    backoff = defaults.backoff if task.backoff is None else _stored(task.backoff)
    timeout_ms = defaults.timeout_ms if task.timeout_ms is None else task.timeout_ms
    window_ms = defaults.window_ms if task.window_ms is None else task.window_ms
    keep_ms = defaults.keep_ms if task.keep_ms is None else task.keep_ms
    if keep_ms is None:
        keep_ms = config.keep_result_ms
    key = ""
    if task.key is None:
        window_ms = 0
    else:
        key = name(task.key, "key")
        window_ms = config.idempotency_window_ms if window_ms is None else window_ms
        within(window_ms, 1, SPAN_MS_MAX, "windowMs")
        keep_ms = max(keep_ms, window_ms)  # the same key finds the same result
    # All at once, for each of a million tasks; only when one is wrong it matters which.
    if not (
        len(payload) <= PAYLOAD_BYTES_MAX
        and -PRIORITY_MAX <= priority <= PRIORITY_MAX
        and 0 <= retries <= RETRIES_MAX
        and 0 <= timeout_ms <= SPAN_MS_MAX
        and 0 <= keep_ms <= SPAN_MS_MAX
        # see `within`: what is no int could be written, and never read again
        and type(priority) is type(retries) is type(timeout_ms) is type(keep_ms) is int
    ):
        _refuse(len(payload), priority, retries, timeout_ms, keep_ms)
    at_ms = due_ms(task, now_ms) if task.delay_ms or task.due else 0
    if task.headers:
        return HeadedJob(
            type_, payload, priority, retries, backoff, timeout_ms, at_ms, key, window_ms, keep_ms,
            headers=headers(task.headers),
        )  # fmt: skip
    return NewJob(
        type_, payload, priority, retries, backoff, timeout_ms, at_ms, key, window_ms, keep_ms
    )


def task_defaults(type_: str, options: TaskOptions) -> TaskDefaults:
    """What a worker says about its tasks of a type, as the engine has it."""
    keep_ms = 0 if options.keep_ms is None else options.keep_ms
    _refuse(0, options.priority, options.retries, options.timeout_ms, keep_ms)
    if options.window_ms is not None:
        within(options.window_ms, 1, SPAN_MS_MAX, "windowMs")
    return TaskDefaults(
        name(type_, "type"), options.priority, options.retries, _stored(options.backoff),
        options.timeout_ms, options.window_ms, options.keep_ms,
    )  # fmt: skip


def _refuse(payload_bytes: int, priority: int, retries: int, timeout_ms: int, keep_ms: int) -> None:
    """Says which of a task's numbers is outside its limits."""
    if payload_bytes > PAYLOAD_BYTES_MAX:
        raise InvalidArgument(
            f"Expected a payload of at most {PAYLOAD_BYTES_MAX} bytes, but found {payload_bytes};"
            " put large content elsewhere and submit a reference to it"
        )
    within(priority, -PRIORITY_MAX, PRIORITY_MAX, "priority")
    within(retries, 0, RETRIES_MAX, "retries")
    within(timeout_ms, 0, SPAN_MS_MAX, "timeoutMs")
    within(keep_ms, 0, SPAN_MS_MAX, "keepMs")


@lru_cache(maxsize=256)
def _stored(backoff: RetryBackoff) -> Backoff:
    return Backoff(
        kind(backoff.kind, BackoffKind, "backoff.kind"),
        within(backoff.base_ms, 1, SPAN_MS_MAX, "backoff.baseMs"),
        within(backoff.cap_ms, 1, SPAN_MS_MAX, "backoff.capMs"),
        within(backoff.jitter_percent, 0, 100, "backoff.jitterPercent"),
    )


def due_ms(task: NewTask, now_ms: int) -> int:
    """When the task may run: 0 for at once."""
    if task.due is None:
        return now_ms + within(task.delay_ms, 0, SPAN_MS_MAX, "delayMs") if task.delay_ms else 0
    if task.delay_ms:
        raise InvalidArgument("Expected a delay or a point in time, but found both", field="due")
    if task.due.tzinfo is None:
        raise InvalidArgument(
            "Expected a time with a time zone in `due`, but it has none", field="due"
        )
    return within(int(task.due.timestamp() * 1000), 0, now_ms + SPAN_MS_MAX, "due")
