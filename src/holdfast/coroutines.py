"""Coroutines that run without a task until they first have to wait."""

from collections.abc import Coroutine, Generator
from types import coroutine
from typing import Any, TypeVar

T = TypeVar("T")


async def go_on(begun: Coroutine[Any, Any, T], awaited: Any) -> T:
    """The rest of a coroutine that was begun by hand, and what it waits for."""
    return await _go_on(begun, awaited)


@coroutine
def _go_on(begun: Coroutine[Any, Any, T], awaited: Any) -> Generator[Any, Any, T]:
    while True:
        sent, raised = None, None
        try:
            sent = yield awaited
        except BaseException as error:
            raised = error
        try:
            awaited = begun.send(sent) if raised is None else begun.throw(raised)
        except StopIteration as ended:
            return ended.value
