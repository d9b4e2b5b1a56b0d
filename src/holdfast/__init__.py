"""holdfast: a durable, distributed work log for Python."""

from holdfast.client import BoundTask, Handle, Holdfast, Task, Worker, WorkerMode
from holdfast.client.execution import GiveUpError, RetryLaterError
from holdfast.config import Config
from holdfast.errors import (
    AlreadyExists,
    DataLoss,
    DeadlineExceeded,
    Forbidden,
    HoldfastError,
    Internal,
    InvalidArgument,
    InvalidState,
    NotFound,
    ResourceExhausted,
    TaskFailed,
    Unauthorized,
    Unavailable,
)
from holdfast.gateway.shapes import RetryBackoff
from holdfast.version import VERSION as __version__

__all__ = [
    "AlreadyExists",
    "BoundTask",
    "Config",
    "DataLoss",
    "DeadlineExceeded",
    "Forbidden",
    "GiveUpError",
    "Handle",
    "Holdfast",
    "HoldfastError",
    "Internal",
    "InvalidArgument",
    "InvalidState",
    "NotFound",
    "ResourceExhausted",
    "RetryBackoff",
    "RetryLaterError",
    "Task",
    "TaskFailed",
    "Unauthorized",
    "Unavailable",
    "Worker",
    "WorkerMode",
    "__version__",
]
