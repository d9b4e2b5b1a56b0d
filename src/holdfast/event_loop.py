"""The event loop of a node and of a client: uvloop's where it is installed, else asyncio's.

Nothing but speed depends on which it is. The extra `uvloop` installs it; it does not exist for
Windows.
"""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

try:
    import uvloop
except ImportError:
    uvloop = None

T = TypeVar("T")

NAME = "asyncio" if uvloop is None else "uvloop"


def new_event_loop() -> asyncio.AbstractEventLoop:
    """A loop that does not run yet."""
    return asyncio.new_event_loop() if uvloop is None else uvloop.new_event_loop()


def run(main: Coroutine[Any, Any, T]) -> T:
    """Runs a coroutine in a loop of its own to its end."""
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        return runner.run(main)
