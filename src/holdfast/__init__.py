"""holdfast: a durable, distributed work log for Python."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from holdfast.version import VERSION as __version__  # noqa: N811 - the name that Python knows

if TYPE_CHECKING:
    from holdfast.client import BoundTask, Handle, Holdfast, Task, Worker, WorkerMode
    from holdfast.client.attempt import BusinessError, GiveUpError, RetryLaterError
    from holdfast.client.codec import ValueCodec
    from holdfast.client.content_publisher import ContentPublisher
    from holdfast.client.content_queue import ContentQueue
    from holdfast.client.content_subscriber import ContentSubscriber
    from holdfast.client.group_work import Owned
    from holdfast.client.groups import PartitionGroup
    from holdfast.client.process import ProcessHandle
    from holdfast.client.running import current_job
    from holdfast.client.task import CoroutineTask, FunctionTask
    from holdfast.client.transaction import MessageHandle, Transaction
    from holdfast.client.views import InstanceDetails, JobDetails, TaskDetails
    from holdfast.config import Config
    from holdfast.content.messages import Package
    from holdfast.content.subscriber.conditions import SubscriberCondition
    from holdfast.content.subscriber.decisions import Admission
    from holdfast.engine.jobs.values import BackoffKind
    from holdfast.errors import (
        AlreadyExists,
        DataLoss,
        DeadlineExceeded,
        Forbidden,
        HoldfastError,
        Internal,
        InvalidArgument,
        InvalidState,
        Moved,
        NotFound,
        ResourceExhausted,
        TaskFailed,
        TransactionAborted,
        Unauthorized,
        Unavailable,
        Unknown,
    )
    from holdfast.gateway.processes.shapes import NewProcessInstance, ProcessDefinition
    from holdfast.gateway.tasks.shapes import IncidentView, NewTask, RetryBackoff, ScheduleView
    from holdfast.groups.api import NewPartition
    from holdfast.model.dsl import (
        Process,
        after,
        error,
        every,
        message,
        on_message,
        otherwise,
        over,
        path,
        timeout,
        when,
    )

__all__ = [
    "Admission",
    "AlreadyExists",
    "BackoffKind",
    "BoundTask",
    "BusinessError",
    "Config",
    "ContentPublisher",
    "ContentQueue",
    "ContentSubscriber",
    "CoroutineTask",
    "DataLoss",
    "DeadlineExceeded",
    "Forbidden",
    "FunctionTask",
    "GiveUpError",
    "Handle",
    "Holdfast",
    "HoldfastError",
    "IncidentView",
    "InstanceDetails",
    "Internal",
    "InvalidArgument",
    "InvalidState",
    "JobDetails",
    "MessageHandle",
    "Moved",
    "NewPartition",
    "NewProcessInstance",
    "NewTask",
    "NotFound",
    "Owned",
    "Package",
    "PartitionGroup",
    "Process",
    "ProcessDefinition",
    "ProcessHandle",
    "ResourceExhausted",
    "RetryBackoff",
    "RetryLaterError",
    "ScheduleView",
    "SubscriberCondition",
    "Task",
    "TaskDetails",
    "TaskFailed",
    "Transaction",
    "TransactionAborted",
    "Unauthorized",
    "Unavailable",
    "Unknown",
    "ValueCodec",
    "Worker",
    "WorkerMode",
    "__version__",
    "after",
    "current_job",
    "error",
    "every",
    "message",
    "on_message",
    "otherwise",
    "over",
    "path",
    "timeout",
    "when",
]

# Which module a public name comes from. It is loaded when first asked for: `holdfast --help` needs
# little of it, and all of it takes a quarter of a second.
_HOMES = {
    "holdfast.client": ("BoundTask", "Handle", "Holdfast", "Task", "Worker", "WorkerMode"),
    "holdfast.client.attempt": ("BusinessError", "GiveUpError", "RetryLaterError"),
    "holdfast.client.running": ("current_job",),
    "holdfast.client.group_work": ("Owned",),
    "holdfast.client.groups": ("PartitionGroup",),
    "holdfast.client.process": ("ProcessHandle",),
    "holdfast.client.task": ("CoroutineTask", "FunctionTask"),
    "holdfast.client.transaction": ("MessageHandle", "Transaction"),
    "holdfast.client.codec": ("ValueCodec",),
    "holdfast.client.content_publisher": ("ContentPublisher",),
    "holdfast.client.content_queue": ("ContentQueue",),
    "holdfast.client.content_subscriber": ("ContentSubscriber",),
    "holdfast.content.subscriber.conditions": ("SubscriberCondition",),
    "holdfast.content.subscriber.decisions": ("Admission",),
    "holdfast.model.dsl": (
        "Process",
        "after",
        "error",
        "every",
        "message",
        "on_message",
        "otherwise",
        "over",
        "path",
        "timeout",
        "when",
    ),
    "holdfast.config": ("Config",),
    "holdfast.engine.jobs.values": ("BackoffKind",),
    "holdfast.client.views": ("InstanceDetails", "JobDetails", "TaskDetails"),
    "holdfast.content.messages": ("Package",),
    "holdfast.gateway.processes.shapes": ("NewProcessInstance", "ProcessDefinition"),
    "holdfast.gateway.tasks.shapes": ("IncidentView", "NewTask", "RetryBackoff", "ScheduleView"),
    "holdfast.groups.api": ("NewPartition",),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOME.get(name, "holdfast.errors")), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
