"""The names of blobs that content distribution keeps, and what it does when one is not there yet.

    content/binaries/SHA256    a binary, shared by all packages that refer to it
    content/packages/SHA256    a package that is too large for the log
    content/snapshots/...      what a subscriber holds, for another one to begin with
    content/marks/...          how long the others are kept: see `cleaning`

Packages are named by their hash and not by their id: one that is built again under the same id,
from a tree that has changed meanwhile, never replaces what the log refers to.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable
from typing import Final, ParamSpec, TypeVar

from tenacity import AsyncRetrying, retry_if_exception_type, stop_after_attempt, wait_exponential

from holdfast.blobs import Blobs
from holdfast.blobs.memory import MemoryBlobs
from holdfast.errors import Unavailable
from holdfast.limits import CONTENT_BLOB_LOOK_MS, CONTENT_BLOB_LOOKS_MAX

P = ParamSpec("P")
T = TypeVar("T")

BINARIES: Final = "content/binaries/"
PACKAGES: Final = "content/packages/"
SNAPSHOTS: Final = "content/snapshots/"
MARKS: Final = "content/marks/"

_BINARY: Final = re.compile(f"{BINARIES}[0-9a-f]{{64}}")


def binary_blob(sha256: bytes) -> str:
    """The blob of a binary."""
    return BINARIES + sha256.hex()


def package_blob(sha256: bytes) -> str:
    """The blob of a package whose manifest has this hash."""
    return PACKAGES + sha256.hex()


def is_binary_blob(name: str) -> bool:
    return _BINARY.fullmatch(name) is not None


class NotThereYet(Unavailable):
    """A blob that a message names is not in the store: the message was faster than the blob."""


async def call(blobs: Blobs, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Calls what uses a blob store: in a thread, unless the store is memory and never blocks."""
    if isinstance(blobs, MemoryBlobs):
        return function(*args, **kwargs)
    return await asyncio.to_thread(function, *args, **kwargs)


async def when_there(
    attempt: Callable[[], Awaitable[T]],
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> T:
    """What an attempt gives; it is made a few times more while a blob is not there yet.

    After that it is NotThereYet, which passes by itself: whoever asked tries again later.
    """
    async for each in AsyncRetrying(
        retry=retry_if_exception_type(NotThereYet),
        wait=wait_exponential(CONTENT_BLOB_LOOK_MS / 1000),
        stop=stop_after_attempt(CONTENT_BLOB_LOOKS_MAX),
        sleep=sleep,
        reraise=True,
    ):
        with each:
            return await attempt()
    raise AssertionError("the last attempt raises")
