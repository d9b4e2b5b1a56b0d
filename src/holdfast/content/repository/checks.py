"""What all stores check in the same way, and the errors that they share."""

import hashlib
from collections.abc import Iterable, Iterator

from holdfast.content.repository.api import Binary, VerifiedPieces
from holdfast.errors import DataLoss, InvalidState, NotFound
from holdfast.limits import CONTENT_CHUNK_BYTES


def chunks(binary: Binary, pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The pieces of a binary in chunks of one size; DataLoss at the end if it is another one.

    A chunk is handed out when it is full, so the caller drops them after a DataLoss. An
    empty binary is one empty chunk. No more than it should have is read.
    """
    if type(pieces) is VerifiedPieces and binary.size_bytes <= CONTENT_CHUNK_BYTES:
        yield b"".join(pieces)
        return
    digest, size_bytes, waiting = hashlib.sha256(), 0, bytearray()
    for piece in pieces:
        digest.update(piece)
        size_bytes += len(piece)
        if size_bytes > binary.size_bytes:
            raise altered(binary, f"more than {binary.size_bytes} bytes")
        if not waiting and len(piece) == CONTENT_CHUNK_BYTES:
            yield bytes(piece)
            continue
        waiting += piece
        while len(waiting) >= CONTENT_CHUNK_BYTES:
            yield bytes(waiting[:CONTENT_CHUNK_BYTES])
            del waiting[:CONTENT_CHUNK_BYTES]
    if size_bytes != binary.size_bytes:
        raise altered(binary, f"{size_bytes} bytes")
    if digest.digest() != binary.sha256:
        raise altered(binary, f"the hash {digest.hexdigest()}")
    if waiting or not size_bytes:
        yield bytes(waiting)


def altered(binary: Binary, found: str) -> DataLoss:
    """The error for bytes that are not those of a binary."""
    name = binary.sha256.hex()
    return DataLoss(
        f"Expected the binary {name} of {binary.size_bytes} bytes, but what came has {found};"
        " fetch it again",
        sha256=name,
    )


def missing_binary(path: str, sha256: bytes, url: str) -> InvalidState:
    """A node was put whose binary nobody stored."""
    name = sha256.hex()
    return InvalidState(
        f"The node {path} refers to the binary {name}, which is not in {url}; store it in the same"
        " change set",
        path=path, sha256=name,
    )  # fmt: skip


def no_binary(binary: Binary, url: str) -> NotFound:
    """The error for a binary that is not there."""
    name = binary.sha256.hex()
    return NotFound(
        f"Expected the binary {name} of {binary.size_bytes} bytes in {url}, but it is not there;"
        " it goes when the last node that refers to it does",
        sha256=name, store=url,
    )  # fmt: skip


def already_changing(url: str) -> InvalidState:
    """The error for a second change set."""
    return InvalidState(
        f"A change set of {url} is open already; commit it or leave its block first", store=url
    )


def no_longer_open(url: str) -> InvalidState:
    """The error for a change set that was committed, or left, or lost with its store."""
    return InvalidState(f"This change set of {url} is no longer open; begin another one", store=url)
