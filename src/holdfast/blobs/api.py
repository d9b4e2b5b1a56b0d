"""What a blob store promises; a folder, S3 and memory keep it under one contract suite."""

import re
from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import NamedTuple, Protocol

from holdfast.errors import HoldfastError, InvalidArgument, NotFound
from holdfast.limits import BLOB_NAME_BYTES_MAX

# Parts of names begin with a letter or digit: a folder's own files begin with a dot.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._=-]*(/[A-Za-z0-9][A-Za-z0-9._=-]*)*")
_PREFIX = re.compile(r"([A-Za-z0-9][A-Za-z0-9._=-]*/)*([A-Za-z0-9][A-Za-z0-9._=-]*)?")


class Blob(NamedTuple):
    """A blob that is there."""

    name: str
    size_bytes: int


class Upload(Protocol):
    """A blob in the making: there as a whole when the `with` block ends, or not at all.

    A block that is left by an exception, or a generator that is closed, makes no blob.
    """

    def write(self, piece: bytes) -> None:
        """Adds a piece. What is held in memory is bounded, however large the blob becomes."""
        ...

    def __enter__(self) -> "Upload": ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...


class Blobs(Protocol):
    """Blobs by name. A name is made of parts with slashes between them: `partitions/7/120.export`.

    Calls block; a caller with a loop makes them in a thread. What passes by itself (a connection
    that breaks, a server that is overloaded or not up yet) is tried again before it is Unavailable.
    """

    url: str  # where they are, for messages: without credentials

    def upload(self, name: str) -> Upload:
        """Begins a blob; one that has the name already is replaced when the upload ends."""
        ...

    def get(self, name: str, start: int = 0, end: int | None = None) -> Iterator[bytes]:
        """The bytes from `start` up to `end`, or to the blob's end, in pieces of about a MiB.

        NotFound if there is no such blob; InvalidArgument if `start` is behind its end.
        """
        ...

    def head(self, name: str) -> Blob | None:
        """The blob, or None if there is none."""
        ...

    def list(self, prefix: str = "") -> Iterator[Blob]:
        """The blobs whose names begin with these characters, in the order of their names."""
        ...

    def delete(self, name: str) -> None:
        """Deletes a blob, if it is there."""
        ...


def put(blobs: Blobs, name: str, pieces: Iterable[bytes]) -> int:
    """Stores a blob from its pieces; how many bytes it has."""
    size_bytes = 0
    with blobs.upload(name) as upload:
        for piece in pieces:
            upload.write(piece)
            size_bytes += len(piece)
    return size_bytes


def checked_name(name: str) -> str:
    """The name, if it can be one in every store."""
    if len(name) > BLOB_NAME_BYTES_MAX or not _NAME.fullmatch(name):
        raise InvalidArgument(
            f"Expected the name of a blob to be parts of A-Z a-z 0-9 . _ = - with slashes between"
            f" them, each beginning with a letter or digit, and {BLOB_NAME_BYTES_MAX} bytes at"
            f" most, but found {name[:100]!r}",
            blob=name[:100],
        )
    return name


def checked_prefix(prefix: str) -> str:
    """The beginning of names, if names can begin so."""
    if not _PREFIX.fullmatch(prefix):
        raise InvalidArgument(f"Expected the beginning of a blob's name, but found {prefix!r}")
    return prefix


def checked_range(start: int, end: int | None) -> None:
    """A range goes forward from somewhere in the blob."""
    if start < 0 or (end is not None and end < start):
        raise InvalidArgument(f"Expected a range of bytes, but found {start} to {end}")


def no_blob(name: str, url: str) -> NotFound:
    """The error for a blob that is not there."""
    return NotFound(
        f"There is no blob {name} in {url}; check its name, and that this is"
        " the store that it was put into",
        blob=name, store=url,
    )  # fmt: skip


def behind_the_end(name: str, url: str, start: int) -> HoldfastError:
    """The error for a range that begins where the blob has nothing."""
    return InvalidArgument(
        f"Expected to read the blob {name} in {url} from byte {start} on, but it ends before that",
        blob=name, store=url,
    )  # fmt: skip
