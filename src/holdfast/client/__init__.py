"""The client: the same methods against a node inside this process and a node far away."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from holdfast.client.app import Holdfast
    from holdfast.client.handle import Handle
    from holdfast.client.task import BoundTask, Task
    from holdfast.client.worker import Worker, WorkerMode

__all__ = ["BoundTask", "Handle", "Holdfast", "Task", "Worker", "WorkerMode"]

# Loaded when first asked for: a command of the CLI talks to a node by a few modules of this package
# and needs neither the worker nor what it logs with, which take a tenth of a second.
_HOMES = {
    "BoundTask": "task",
    "Handle": "handle",
    "Holdfast": "app",
    "Task": "task",
    "Worker": "worker",
    "WorkerMode": "worker",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
