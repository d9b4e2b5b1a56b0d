"""An app that only knows its tasks: what `Holdfast.open` gives in a worker's child process.

A child imports the user's module to find its functions. If that opened the folder again it would
meet the parent's lock; so a child opens nothing.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from holdfast.errors import Unavailable
from holdfast.gateway.api import SPACES, Api

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


class _DetachedApi(Api):
    """Refuses everything: the parent process holds the node."""

    if not TYPE_CHECKING:  # what there is and of which type, the Api says

        def __getattr__(self, space: str) -> Any:
            if space not in SPACES:
                raise AttributeError(f"{type(self).__name__!r} has no attribute {space!r}")
            return _DetachedNamespace(space)


class _DetachedNamespace:
    def __init__(self, space: str) -> None:
        self._space = space

    def __getattr__(self, name: str) -> Any:
        async def refuse(*_: Any, **__: Any) -> Any:
            raise Unavailable(
                f"Expected a node for {self._space}.{name}(), but this is a worker's child process;"
                " submit from tasks by Holdfast.connect(url)"
            )

        return refuse


def detached_api() -> Api:
    """An api that has every operation, and refuses every call."""
    return _DetachedApi()
