"""A store as a blob, for a new subscriber to begin with instead of all packages there were.

    magic, then frames: a length and MessagePack
    head     whose it was, and how far it was
    node     path, properties, the offset that put it; the bodies of its binaries follow,
             each one once in the whole blob
    end      how many nodes there are, and the hash of all that is before it

It is written and read as a stream: what is in memory is a node, a piece of a binary, and the hashes
of the binaries so far. A package would not do: it is limited in size, and refers to blobs that are
deleted when no package of the log needs them.
"""

import struct
from collections.abc import Iterator
from hashlib import sha256
from typing import Final

import msgspec

from holdfast.blobs import Blobs, put
from holdfast.content.messages import (
    SnapshotTaken,
    SubscriberProgress,
    decode_event,
    encode,
)
from holdfast.content.paths import ROOT
from holdfast.content.ports import ContentLog
from holdfast.content.repository.api import Binary, ChangeSet, Repository
from holdfast.content.repository.values import binaries_of, decode_properties, encode_properties
from holdfast.content.subscriber.decisions import Habits
from holdfast.content.subscriber.ledger import GivenUpPackage, StoreLedger, changed_notes
from holdfast.content.topics import ContentTopic
from holdfast.errors import DataLoss
from holdfast.limits import BLOB_PIECE_BYTES, CONTENT_SEED_FRAME_BYTES_MAX, READ_BYTES_MAX

MAGIC: Final = b"\x89HFseed1\n"
_LENGTH: Final = struct.Struct(">I")


class SeedHead(msgspec.Struct, frozen=True, array_like=True, tag=1):
    """Whose store it was, and how far it was."""

    store_id: str
    progress: list[SubscriberProgress]
    failed: list[GivenUpPackage]


class SeedNode(msgspec.Struct, frozen=True, array_like=True, tag=2):
    """A node; the bodies of some of its binaries follow it."""

    path: str
    properties: bytes
    offset: int
    bodies: list[Binary]


class SeedEnd(msgspec.Struct, frozen=True, array_like=True, tag=3):
    """Nothing is missing."""

    nodes: int
    sha256: bytes  # of all that is before this frame


_decode = msgspec.msgpack.Decoder(SeedHead | SeedNode | SeedEnd).decode


# --- writing ----------------------------------------------------------------------------------


def store_snapshot(repository: Repository, blobs: Blobs, name: str, ledger: StoreLedger) -> int:
    """Stores all that a store holds as a blob; how many bytes it has."""
    return put(blobs, name, _gathered(_hashed(repository, ledger)))


def _hashed(repository: Repository, ledger: StoreLedger) -> Iterator[bytes]:
    digest, nodes = sha256(), 0
    for piece in _pieces(repository, ledger):
        nodes += isinstance(piece, _NodeFrame)
        digest.update(piece)
        yield piece
    yield _frame(SeedEnd(nodes, digest.digest()))


class _NodeFrame(bytes):
    """The frame of a node, to be counted."""


def _pieces(repository: Repository, ledger: StoreLedger) -> Iterator[bytes]:
    stored: set[bytes] = set()
    head = SeedHead(ledger.store_id, list(ledger.progress.values()), ledger.failed)
    yield MAGIC + _frame(head)
    for node in repository.walk(ROOT):
        new = {each for each in binaries_of(node.properties) if each.sha256 not in stored}
        bodies = sorted(new, key=lambda each: each.sha256)
        stored.update(each.sha256 for each in bodies)
        properties = encode_properties(node.path, node.properties)
        offset = repository.offset_of(node.path)
        yield _NodeFrame(_frame(SeedNode(node.path, properties, offset, bodies)))
        for each in bodies:
            yield from repository.read(each)


def _frame(value: SeedHead | SeedNode | SeedEnd) -> bytes:
    encoded = encode(value)
    return _LENGTH.pack(len(encoded)) + encoded


def _gathered(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Small pieces in large ones."""
    gathered, size_bytes = list[bytes](), 0
    for piece in pieces:
        gathered.append(piece)
        size_bytes += len(piece)
        if size_bytes >= BLOB_PIECE_BYTES:
            yield b"".join(gathered)
            gathered, size_bytes = [], 0
    yield b"".join(gathered)


# --- reading ----------------------------------------------------------------------------------


def seed(repository: Repository, blobs: Blobs, name: str, ledger: StoreLedger) -> StoreLedger:
    """Fills a store with what another one held, in one commit; what is known then.

    What was there before goes. DataLoss if the blob is not whole: then nothing is changed.
    """
    source = _Source(name, blobs.get(name))
    with repository.change() as change:
        change.delete(ROOT)
        head = _read_head(source)
        _read_nodes(source, change)
        seeded = _seeded(ledger, head)
        for note, value in changed_notes(None, seeded).items():
            change.note(note, value)
        change.commit()
    return seeded


def _seeded(ledger: StoreLedger, head: SeedHead) -> StoreLedger:
    """It is as far as the other one was; commands to that one are none of its own."""
    progress = {
        each.publisher: SubscriberProgress(each.publisher, each.offset, each.number)
        for each in head.progress
    }
    return msgspec.structs.replace(ledger, progress=progress, failed=head.failed)


def _read_head(source: "_Source") -> SeedHead:
    if source.take(len(MAGIC)) != MAGIC:
        raise source.damaged("it does not begin as one")
    head = source.frame()
    if not isinstance(head, SeedHead):
        raise source.damaged("its head is missing")
    return head


def _read_nodes(source: "_Source", change: ChangeSet) -> None:
    nodes = 0
    while True:
        hashed = source.digest.digest()
        frame = source.frame()
        if isinstance(frame, SeedEnd):
            break
        if not isinstance(frame, SeedNode):
            raise source.damaged("it has two heads")
        for each in frame.bodies:
            body = source.body(each.size_bytes)
            change.store(each, body)
            for _ in body:  # what the store has already, it does not read
                pass
        change.put(frame.path, decode_properties(frame.path, frame.properties), frame.offset)
        nodes += 1
    if frame.nodes != nodes or frame.sha256 != hashed:
        raise source.damaged("its end does not match what is before it")


class _Source:
    """A blob that is read once, from its beginning."""

    def __init__(self, name: str, pieces: Iterator[bytes]) -> None:
        self.digest = sha256()  # of what was taken
        self._name = name
        self._pieces = pieces
        self._piece = memoryview(b"")

    def frame(self) -> SeedHead | SeedNode | SeedEnd:
        (size_bytes,) = _LENGTH.unpack(self.take(_LENGTH.size))
        if size_bytes > CONTENT_SEED_FRAME_BYTES_MAX:
            raise self.damaged(f"a frame of {size_bytes} bytes")
        try:
            return _decode(self.take(size_bytes))
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise self.damaged(str(error)) from error

    def take(self, size_bytes: int) -> bytes:
        return b"".join(self._upto(size_bytes))

    def body(self, size_bytes: int) -> Iterator[bytes]:
        """The next bytes in pieces, which must be read to their end."""
        yield from map(bytes, self._upto(size_bytes))

    def _upto(self, left_bytes: int) -> Iterator[memoryview]:
        while left_bytes:
            if not self._piece:
                self._piece = memoryview(next(self._pieces, b""))
                if not self._piece:
                    raise self.damaged(f"it is cut off: {left_bytes} bytes are missing")
            part, self._piece = self._piece[:left_bytes], self._piece[left_bytes:]
            left_bytes -= len(part)
            self.digest.update(part)
            yield part

    def damaged(self, what: str) -> DataLoss:
        return DataLoss(
            f"Expected the blob {self._name} to be a snapshot of a subscriber, but {what}; take"
            " another one",
            blob=self._name,
        )


# --- finding one ------------------------------------------------------------------------------


async def newest_snapshot(log: ContentLog, subscriber: str) -> SnapshotTaken | None:
    """What a subscriber stored last, as the events tell."""
    found: SnapshotTaken | None = None
    offset = 0
    while True:
        page = await log.read(ContentTopic.EVENTS, 1, offset, bytes_max=READ_BYTES_MAX, wait_ms=0)
        for entry in page.entries:
            event = decode_event(entry.payload)
            if isinstance(event, SnapshotTaken) and event.subscriber == subscriber:
                found = event if not event.error else found
        offset = page.next
        if offset >= page.end:
            return found


def wrong_seed(found: SnapshotTaken | None, ledger: StoreLedger, habits: Habits) -> str:
    """Why a store cannot begin with a snapshot; "" if it can."""
    if found is None:
        return "there is none; take one with `holdfast content snapshot`"
    theirs, own = {each.publisher for each in found.progress}, set(habits.publishers)
    if theirs != own:
        return (
            f"that one takes in {', '.join(sorted(theirs))} and this one {', '.join(sorted(own))};"
            " seed it from one with the same publishers"
        )
    is_newer = any(
        each.number > ledger.progress_of(each.publisher).number for each in found.progress
    )
    if not is_newer and not ledger.is_new():
        return "the last one is not newer than this store; take another one"
    return ""
