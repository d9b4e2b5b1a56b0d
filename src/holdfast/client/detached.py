"""An app that only knows its tasks: what `Holdfast.open` gives in a worker's child process.

A child imports the user's module to find its functions. If that opened the folder again it would
meet the parent's lock; so a child opens nothing.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from holdfast.errors import Unavailable
from holdfast.gateway.api import Api

_VARIABLE = "HOLDFAST_DETACHED"

# Taken out of the environment at once: programs that a task starts are no children of the worker.
DETACHED = os.environ.pop(_VARIABLE, None) is not None


@contextmanager
def children_detached() -> Iterator[None]:
    """Processes that are begun meanwhile open nothing."""
    os.environ[_VARIABLE] = "1"
    try:
        yield
    finally:
        del os.environ[_VARIABLE]


class _DetachedApi:
    """Refuses everything: the parent process holds the node."""

    def __getattr__(self, name: str) -> Any:
        async def refuse(*_: Any, **__: Any) -> Any:
            raise Unavailable(
                f"Expected a node for {name}(), but this is a worker's child process;"
                " submit from tasks by Holdfast.connect(url)"
            )

        return refuse


def detached_api() -> Api:
    """An api that has every method, and refuses every call."""
    api: Any = _DetachedApi()
    return api
