"""The errors of holdfast: one shallow tree, each with a stable code.

Operating errors (bad input, a full disk, a lost lease) are values of this tree; a bug is any other
exception.
"""

from enum import StrEnum
from typing import Any, ClassVar


class Code(StrEnum):
    """The stable name of what went wrong; the same on the log, over HTTP and in Python."""

    INVALID_ARGUMENT = "INVALID_ARGUMENT"
    NOT_FOUND = "NOT_FOUND"
    ALREADY_EXISTS = "ALREADY_EXISTS"
    INVALID_STATE = "INVALID_STATE"
    UNAUTHORIZED = "UNAUTHORIZED"
    FORBIDDEN = "FORBIDDEN"
    RESOURCE_EXHAUSTED = "RESOURCE_EXHAUSTED"
    DEADLINE_EXCEEDED = "DEADLINE_EXCEEDED"
    UNAVAILABLE = "UNAVAILABLE"
    MOVED = "MOVED"
    UNKNOWN = "UNKNOWN"
    DATA_LOSS = "DATA_LOSS"
    TASK_FAILED = "TASK_FAILED"
    ABORTED = "ABORTED"
    INTERNAL = "INTERNAL"


class HoldfastError(Exception):
    """A request to holdfast failed; `code`, `message` and `fields` tell why."""

    code: ClassVar[Code] = Code.INTERNAL

    def __init__(self, message: str, **fields: Any) -> None:
        super().__init__(message)
        self.message = message
        self.fields = fields

    @property
    def retry_after_ms(self) -> int:
        """Above 0: nothing was done, and the same request may succeed after this time."""
        return int(self.fields.get("retry_after_ms") or 0)

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.message, self.fields)


def _rebuild(kind: type[HoldfastError], message: str, fields: dict[str, Any]) -> HoldfastError:
    return kind(message, **fields)


class InvalidArgument(HoldfastError):
    """The request is invalid; a retry will not help."""

    code = Code.INVALID_ARGUMENT


class NotFound(HoldfastError):
    """The resource does not exist, or no longer does."""

    code = Code.NOT_FOUND


class AlreadyExists(HoldfastError):
    """The resource exists already; `fields["key"]` is its key, if it has one."""

    code = Code.ALREADY_EXISTS


class InvalidState(HoldfastError):
    """The resource exists, but its state does not allow this operation."""

    code = Code.INVALID_STATE


class Unauthorized(HoldfastError):
    """The request has no credentials, or wrong ones."""

    code = Code.UNAUTHORIZED


class Forbidden(HoldfastError):
    """The user or client is authenticated, but lacks the permission."""

    code = Code.FORBIDDEN


class ResourceExhausted(HoldfastError):
    """A named limit is reached; retry after `retry_after_ms`."""

    code = Code.RESOURCE_EXHAUSTED


class DeadlineExceeded(HoldfastError):
    """There was no response within the timeout of the caller."""

    code = Code.DEADLINE_EXCEEDED


class Unavailable(HoldfastError):
    """The node is not reachable or is closing; a retry may succeed.

    With `fields["lasting"]`, waiting does not help: the message says what to do.
    """

    code = Code.UNAVAILABLE


class Moved(HoldfastError):
    """Another member owns the partition now; nothing was done, and a retry finds the owner."""

    code = Code.MOVED


class Unknown(HoldfastError):
    """The request may have been executed or not; retry it with the same request id.

    The Python client has retried for as long as its patience lasted. Check whether the request was
    executed before you repeat it. A request with a key of its own can be repeated at once.
    """

    code = Code.UNKNOWN


class DataLoss(HoldfastError):
    """Stored bytes are damaged; the fields name the file and the position."""

    code = Code.DATA_LOSS


class TaskFailed(HoldfastError):
    """The task has no result: its retries are used up, or it was discarded or canceled."""

    code = Code.TASK_FAILED


class TransactionAborted(HoldfastError):
    """Nothing of the transaction was done; `refused` has each rejected operation."""

    code = Code.ABORTED

    @property
    def refused(self) -> list[dict[str, Any]]:
        """For each rejected operation its index (-1: all), code, reason and key."""
        return list(self.fields.get("refused") or ())


class Internal(HoldfastError):
    """A bug in holdfast, reported instead of hidden."""

    code = Code.INTERNAL


ERRORS: dict[Code, type[HoldfastError]] = {
    kind.code: kind
    for kind in (
        InvalidArgument, NotFound, AlreadyExists, InvalidState, Unauthorized, Forbidden,
        ResourceExhausted, DeadlineExceeded, Unavailable, Moved, Unknown, DataLoss, TaskFailed,
        TransactionAborted, Internal,
    )
}  # fmt: skip


def raised_line(error: str) -> str:
    """The line of a traceback that says what was raised; of any other text the last line.

    A message may have several lines, and notes follow it: the first line after the last frame
    says the most.
    """
    lines = error.strip().splitlines() or [""]
    frames = [at for at, line in enumerate(lines) if line.startswith('  File "')]
    if not frames:
        return lines[-1].strip()
    after = [line for line in lines[frames[-1] + 1 :] if not line.startswith("    ")]
    return (after or lines[-1:])[0].strip()


def error_of(code: str, message: str, **fields: Any) -> HoldfastError:
    """The error that a code names, as when it comes back from a log or over the wire."""
    kind = ERRORS.get(Code(code)) if code in Code.__members__ else None
    return (kind or Internal)(message, **fields)
