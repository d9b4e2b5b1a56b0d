"""What a program sees of tasks, instances and jobs: the node's answers, with plain values."""

from typing import Any

import msgspec

from holdfast.client.codec import Values
from holdfast.gateway.processes.shapes import ProcessInstanceView
from holdfast.gateway.tasks.shapes import ActivatedJob, TaskView


class TaskDetails(TaskView, frozen=True):
    """A task."""

    payload: Any = None  # its arguments by name
    result: Any = None


class InstanceDetails(ProcessInstanceView, frozen=True):
    """A process instance."""

    variables: dict[str, Any] = msgspec.field(  # pyright: ignore[reportIncompatibleVariableOverride]
        default_factory=dict
    )


class JobDetails(ActivatedJob, frozen=True, kw_only=True):
    """A job that a worker runs."""

    payload: Any  # the arguments of a task, or the variables of a process, by name
    headers: dict[str, str] = msgspec.field(  # pyright: ignore[reportIncompatibleVariableOverride]
        default_factory=dict
    )


def task_details(view: TaskView, values: Values) -> TaskDetails:
    """A task with plain values."""
    payload, result = view.payload, view.result
    return TaskDetails(
        **_others(view, "payload", "result"),
        payload=values.fields(payload) if isinstance(payload, msgspec.Raw) else None,
        result=values.decode(result) if isinstance(result, msgspec.Raw) else None,
    )


def instance_details(view: ProcessInstanceView, values: Values) -> InstanceDetails:
    """An instance with plain variables."""
    raw = view.variables
    variables = values.fields(raw) if isinstance(raw, msgspec.Raw) else {}
    return InstanceDetails(**_others(view, "variables"), variables=variables)


def job_of(job: ActivatedJob, values: Values) -> JobDetails:
    """A job with a plain payload."""
    return JobDetails(
        **_others(job, "payload", "headers"),
        payload=values.fields(job.payload),
        headers=job.headers or {},
    )


def _others(view: msgspec.Struct, *names: str) -> dict[str, Any]:
    return {name: getattr(view, name) for name in view.__struct_fields__ if name not in names}
