"""What the gateway accepts: shapes become the engine's values here, or a clear error."""

from collections.abc import Callable
from datetime import UTC, datetime
from enum import Enum
from functools import lru_cache
from typing import TypeVar

import msgspec

from holdfast.config import Config
from holdfast.engine.jobs.values import Backoff, BackoffKind, NewJob, TaskDefaults
from holdfast.errors import InvalidArgument, NotFound
from holdfast.gateway.tasks.shapes import NewTask, RetryBackoff, TaskOptions
from holdfast.limits import (
    ERROR_CHARS_MAX,
    KEY_COUNTER_BITS,
    NAME_CHARS_MAX,
    PAYLOAD_BYTES_MAX,
    PRIORITY_MAX,
    RETRIES_MAX,
    SPAN_MS_MAX,
    TIMESTAMP_MS_MAX,
)


def key_from(text: str, partitions: int, what: str) -> int:
    """The key in a string; NotFound where no partition of ours can have made it."""
    if len(text) <= 19 and text.isascii() and text.isdigit():
        key = int(text)
        if 1 <= key >> KEY_COUNTER_BITS <= partitions:
            return key
        raise NotFound(f"Expected {_a(what)} with key {text}, but there is none", key=text)
    raise InvalidArgument(f"Expected the key of {_a(what)}, but found {text!r}")


def _a(what: str) -> str:
    return f"an {what}" if what[0] in "aeiou" else f"a {what}"


# All jobs of a report mostly have the same lease: what was looked at just now need not be again.
recent_key_from = lru_cache(maxsize=256)(key_from)


def text(value: str, what: str) -> str:
    """Any text, as against what a program may give in its place."""
    if not isinstance(value, str):
        raise InvalidArgument(f"Expected a text for {what}, but found {value!r}", field=what)
    return value


E = TypeVar("E", bound=Enum)


def kind(value: E, enum: type[E], what: str) -> E:
    """A member of an enum, or the word for it."""
    try:
        return enum(value)
    except ValueError:
        words = ", ".join(str(each.value) for each in enum)
        raise InvalidArgument(
            f"Expected one of {words} for {what}, but found {value!r}", field=what
        ) from None


def name(text: str, what: str) -> str:
    """A name that can be stored, listed and typed."""
    if not isinstance(text, str):
        raise InvalidArgument(f"Expected a {what}, but found {text!r}", field=what)
    if not text or len(text) > NAME_CHARS_MAX or not text.isprintable():
        raise InvalidArgument(
            f"Expected a {what} of 1 to {NAME_CHARS_MAX} printable characters,"
            f" but found {text[:50]!r}"
        )
    return text


def optional_name(text: str | None, what: str) -> str:
    """A name, or "" for none. An empty one is refused: whoever sends it has lost the name."""
    return "" if text is None else name(text, what)


def key_after(text: str | None, partitions: int, what: str) -> int:
    """The key behind which a page begins; 0 for the first page."""
    return 0 if text is None else key_from(text, partitions, what)


def within(value: int, low: int, high: int, what: str) -> int:
    """A whole number inside its limits.

    A program that a node is embedded in may give anything. What is no int would be written, and
    could not be read again: True, 1.0 and numpy's integers are refused here.
    """
    if type(value) is not int:
        raise InvalidArgument(
            f"Expected a whole number for {what}, but found {value!r}", field=what
        )
    if not low <= value <= high:
        raise InvalidArgument(
            f"Expected {what} from {low} to {high}, but found {value}", field=what
        )
    return value


def shortened(error: str) -> str:
    """An error text of bearable length: its beginning and its end say most."""
    text(error, "error")
    if len(error) <= ERROR_CHARS_MAX:
        return error
    half = ERROR_CHARS_MAX // 2 - 10
    return f"{error[:half]}\n[...]\n{error[-half:]}"


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
    return NewJob(
        type_,
        payload,
        priority,
        retries,
        backoff,
        timeout_ms,
        due_ms(task, now_ms) if task.delay_ms or task.due else 0,
        key,
        window_ms,
        keep_ms,
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


def raw(json: bytes) -> msgspec.Raw:
    """JSON that goes out as it is."""
    return msgspec.Raw(json)


def moment(ms: int) -> datetime | None:
    """A stored time for people; None for 0, and for one that no date has.

    A row that an earlier version let in with such a time must not hide the others of its list.
    """
    return datetime.fromtimestamp(ms / 1000, UTC) if 0 < ms <= TIMESTAMP_MS_MAX else None
