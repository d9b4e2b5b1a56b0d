"""Processes in Python: steps that read in the order in which they happen.

from holdfast.model.dsl import Process, otherwise, path, when

order = (
    Process("order")
    .task("charge", retries=3)
    .choose(when("total > 100", path().task("review")), otherwise(path().task("pack")))
    .parallel(
        path().task("invoice"),
        path().wait("paid", message="payment", key="orderId", within="P3D"),
    )
    .end()
)
"""

from holdfast.model.dsl.path import Path, path
from holdfast.model.dsl.process import Process
from holdfast.model.dsl.steps import Branch, Catch, Event
from holdfast.model.dsl.values import Duration, Mappings, Moment
from holdfast.model.dsl.words import (
    after,
    error,
    every,
    message,
    on_message,
    otherwise,
    over,
    timeout,
    when,
)

__all__ = [
    "Branch",
    "Catch",
    "Duration",
    "Event",
    "Mappings",
    "Moment",
    "Path",
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
]
