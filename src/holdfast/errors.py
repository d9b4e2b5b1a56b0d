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
    """Something holdfast was asked for could not be done."""

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
    """The request itself is wrong; sending it again will not help."""

    code = Code.INVALID_ARGUMENT


class NotFound(HoldfastError):
    """What was named does not exist, or no longer does."""

    code = Code.NOT_FOUND


class AlreadyExists(HoldfastError):
    """What was to be created is there already; `fields["key"]` names it where it has a key."""

    code = Code.ALREADY_EXISTS


class InvalidState(HoldfastError):
    """What was named exists, but is not in a state in which this can be done."""

    code = Code.INVALID_STATE


class Unauthorized(HoldfastError):
    """Nobody, or nobody known, is asking."""

    code = Code.UNAUTHORIZED


class Forbidden(HoldfastError):
    """The asker is known and may not do this."""

    code = Code.FORBIDDEN


class ResourceExhausted(HoldfastError):
    """A named limit is reached; `retry_after_ms` says when to come back."""

    code = Code.RESOURCE_EXHAUSTED


class DeadlineExceeded(HoldfastError):
    """The answer did not come within the time that the caller gave."""

    code = Code.DEADLINE_EXCEEDED


class Unavailable(HoldfastError):
    """The node cannot be reached or is closing; the same request may succeed later."""

    code = Code.UNAVAILABLE


class Moved(HoldfastError):
    """Another member owns the partition now; nothing was done, and asking again finds the owner."""

    code = Code.MOVED


class Unknown(HoldfastError):
    """The request may have been done or not; the same request with its request id finds out."""

    code = Code.UNKNOWN


class DataLoss(HoldfastError):
    """Stored bytes are damaged; the fields name the file and the place in it."""

    code = Code.DATA_LOSS


class TaskFailed(HoldfastError):
    """The task has no result: its retries are used up, or it was discarded or canceled."""

    code = Code.TASK_FAILED


class TransactionAborted(HoldfastError):
    """Nothing of the transaction was done; `refused` names each operation that could not be."""

    code = Code.ABORTED

    @property
    def refused(self) -> list[dict[str, Any]]:
        """For each refused operation its place (-1: the whole), code, reason and key."""
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


def error_of(code: str, message: str, **fields: Any) -> HoldfastError:
    """The error that a code names, as when it comes back from a log or over the wire."""
    kind = ERRORS.get(Code(code)) if code in Code.__members__ else None
    return (kind or Internal)(message, **fields)
