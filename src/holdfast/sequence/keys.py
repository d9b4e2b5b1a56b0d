"""The port to a store of keys with revisions, guards and leases: what coordination needs of etcd.

Keys are text, values bytes. Every write takes the store to its next revision, and a key has the
revision of its last write. All of a write happens, or nothing of it.
"""

from collections.abc import AsyncIterator, Callable
from typing import NamedTuple, Protocol, TypeAlias


class Row(NamedTuple):
    """A key as it was read."""

    key: str
    value: bytes
    revision: int  # of its last write


class KeySpan(NamedTuple):
    """Keys from one to before another, in their order; without an end that key alone."""

    first: str
    end: str | None = None
    is_last_only: bool = False


def under(prefix: str) -> KeySpan:
    """All keys that begin with a prefix that ends in a slash."""
    assert prefix.endswith("/")
    return KeySpan(prefix, prefix[:-1] + "0")  # what comes after the slash


class Unchanged(NamedTuple):
    """Guard: the key was last written at this revision; 0 if it must not be there."""

    key: str
    revision: int


class Holds(NamedTuple):
    """Guard: the key is there and has this value."""

    key: str
    value: bytes


Guard: TypeAlias = Unchanged | Holds


class Put(NamedTuple):
    """A key gets a value."""

    key: str
    value: bytes
    is_leased: bool = False  # the key goes when this member falls silent


class Write(NamedTuple):
    """What is done if all guards hold."""

    guards: tuple[Guard, ...]
    puts: tuple[Put, ...]
    deletes: tuple[KeySpan, ...] = ()


class Reading(NamedTuple):
    """What several spans held at one moment."""

    revision: int  # of the store
    rows: list[list[Row]]


class WriteAnswer(NamedTuple):
    """The answer to a write."""

    is_done: bool  # the guards held
    revision: int  # of the store, and of the keys that were written


class KeyStore(Protocol):
    """A store as one member sees it."""

    on_lapsed: Callable[[], None]
    """Told when the lease ran out: keys under it are gone, and the next write gets a new one."""

    async def read(self, *spans: KeySpan) -> Reading:
        """Reads all spans at one moment, linearizable. Raises Unavailable."""
        ...

    async def write(self, write: Write) -> WriteAnswer:
        """Writes once, never again by itself.

        Raises Unavailable if nothing was and will be done, and Unknown if that cannot be told.
        """
        ...

    async def compact(self, revision: int) -> None:
        """Gives up the history of keys before a revision. Failures are for the next time."""
        ...

    def hints(self, *spans: KeySpan) -> AsyncIterator[str]:
        """Keys that may have changed, some of them twice or not at all; "" if any may have.

        Those of the spans are told of; others may be.
        """
        ...

    @property
    def available(self) -> bool:
        """Whether the last call was answered."""
        ...

    @property
    def is_leased(self) -> bool:
        """Whether the lease was renewed within its time: keys under it are there, for sure."""
        ...

    async def close(self) -> None:
        """Gives up the lease and whatever was opened."""
        ...
