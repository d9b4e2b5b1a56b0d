"""The client: the same methods against a node inside this process and a node far away."""

from holdfast.client.app import Holdfast
from holdfast.client.handle import Handle
from holdfast.client.task import BoundTask, Task
from holdfast.client.worker import Worker, WorkerMode

__all__ = ["BoundTask", "Handle", "Holdfast", "Task", "Worker", "WorkerMode"]
