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
import time
from collections.abc import Callable, Iterator
from typing import Final, ParamSpec, TypeVar

from holdfast.blobs import Blobs
from holdfast.blobs.memory import MemoryBlobs
from holdfast.errors import InvalidState, NotFound, Unavailable
from holdfast.limits import CONTENT_BLOB_LOOK_MS, CONTENT_BLOB_LOOKS_MAX

P = ParamSpec("P")
T = TypeVar("T")

BINARIES: Final = "content/binaries/"
PACKAGES: Final = "content/packages/"
SNAPSHOTS: Final = "content/snapshots/"
MARKS: Final = "content/marks/"

_BINARY: Final = re.compile(f"{BINARIES}[0-9a-f]{{64}}")


class NoSharedStore(InvalidState):
    """The members of a cluster have no store for large files that all of them reach."""


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


def get_when_there(blobs: Blobs, name: str, start: int = 0) -> Iterator[bytes]:
    """The bytes of a blob that a message names; it is looked for a few times if it is not there.

    After that it is NotThereYet, and the caller tries again later. Blocks while it waits.
    """
    # 20 ms of the start of a node, most of which distribute no content.
    from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_exponential

    is_memory = isinstance(blobs, MemoryBlobs)  # has all at once, or is part of a simulation
    looking = Retrying(
        retry=retry_if_exception_type(NotFound),
        wait=wait_exponential(CONTENT_BLOB_LOOK_MS / 1000),
        stop=stop_after_attempt(1 if is_memory else CONTENT_BLOB_LOOKS_MAX),
        sleep=lambda pause_s: time.sleep(pause_s),
        reraise=True,
    )
    try:
        return looking(blobs.get, name, start)
    except NotFound as error:
        raise NotThereYet(
            f"The blob {name} is not in {blobs.url} yet; it is looked for again",
            blob=name, store=blobs.url,
        ) from error  # fmt: skip
