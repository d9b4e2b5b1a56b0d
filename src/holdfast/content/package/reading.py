"""Opens packages. Their makers are not trusted: all that a package says is checked.

`open_package` checks a message and the manifest of its package; of a package that is in the message
it checks the bodies, too. What it gives never changes, so that all subscribers of a process can
share it. The bodies of a package that is a blob are checked while they are read.

A message that names a blob which the store does not have is NotThereYet: it passes. Everything
else that is wrong with a package is InvalidArgument, or DataLoss where bytes are not those that
were published, with the package's id and the entry.
"""

from collections.abc import Callable, Iterable, Iterator
from hashlib import sha256
from typing import NamedTuple, Protocol

from holdfast.blobs import Blobs
from holdfast.content.blobs import get_when_there
from holdfast.content.messages import Package, PackageAction
from holdfast.content.package.format import PREFIX, BodyPlace, ManifestHead, PackageEntry
from holdfast.content.package.manifest import EntryCheck, check_prefix, read_manifest
from holdfast.content.package.requests import check_message
from holdfast.content.package.wrong import Refusing, Wrong
from holdfast.content.repository.api import Binary, Properties, Value, VerifiedPieces
from holdfast.content.repository.values import SharedProperties
from holdfast.errors import InvalidArgument


class OpenedBody(NamedTuple):
    """A binary of an entry, and its bytes; None if they are a blob of their own."""

    binary: Binary
    pieces: Iterable[bytes] | None


class OpenedEntry(NamedTuple):
    """A node of a package. Its properties are shared: nobody changes them."""

    path: str
    properties: Properties
    bodies: list[OpenedBody]


class OpenedPackage(Protocol):
    """A package that was checked, ready to be imported, by any number of subscribers."""

    message: Package
    blobs: Blobs
    nodes: int

    def entries(self) -> Iterator[OpenedEntry]:
        """The nodes of an ADD, in the order of the tree.

        The bodies of one are there until the next one is asked for. Wrong bytes of a package that
        is a blob are found here: what was imported until then is to be dropped.
        """
        ...


def open_package(message: Package, blobs: Blobs) -> OpenedPackage:
    """Checks a package. Blocks where it is a blob, and only there."""
    with Refusing(message):
        check_message(message)
        if message.action is not PackageAction.ADD:
            return HeldPackage(message, blobs, ())
        if message.content is not None:
            return HeldPackage(message, blobs, tuple(_held_entries(message, message.content)))
        package = StoredPackage(message, blobs)
        package.check()
        return package


class HeldPackage:
    """A package that came with its message."""

    __slots__ = ("_entries", "blobs", "message", "nodes")

    def __init__(self, message: Package, blobs: Blobs, entries: tuple[OpenedEntry, ...]) -> None:
        self.message = message
        self.blobs = blobs
        self.nodes = len(entries)
        self._entries = entries

    def entries(self) -> Iterator[OpenedEntry]:
        return iter(self._entries)


class StoredPackage:
    """A package that is a blob; it is read again by each who imports it, and never held."""

    def __init__(self, message: Package, blobs: Blobs) -> None:
        self.message = message
        self.blobs = blobs
        self.nodes = 0

    def check(self) -> None:
        """Reads the manifest, without the bodies."""
        for _ in self._walk(with_bodies=False):
            self.nodes += 1

    def entries(self) -> Iterator[OpenedEntry]:
        with Refusing(self.message):
            yield from self._walk(with_bodies=True)

    def _walk(self, *, with_bodies: bool) -> Iterator[OpenedEntry]:
        message = self.message
        manifest = self._pieces(0)
        manifest_bytes = check_prefix(manifest.take(PREFIX.size), message.size_bytes)
        head, blocks = read_manifest(manifest, manifest_bytes, message.size_bytes)
        check = _check_of(message, head)
        bodies = self._pieces(PREFIX.size + manifest_bytes) if with_bodies else None

        def body(entry: PackageEntry, binary: Binary) -> Iterable[bytes] | None:
            return None if bodies is None else self._told(bodies.body(entry, binary))

        for block in blocks:
            for entry in block:
                properties = check.check(entry)
                opened = _opened(entry, properties, body)
                yield opened
                for each in opened.bodies:
                    for _ in each.pieces or ():  # what the importer had no need of
                        pass
        check.finish()
        if manifest.digest.digest() != message.sha256:
            raise Wrong("its manifest is not the one that was published", is_damage=True)
        if bodies is not None and not bodies.is_at_end():
            raise Wrong("there are bytes behind its last body", is_damage=True)

    def _told(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        with Refusing(self.message):
            yield from pieces

    def _pieces(self, start: int) -> "_Pieces":
        name = self.message.blob
        assert name is not None
        return _Pieces(named_blob(self.blobs, name, start))


class _Pieces:
    """A blob in pieces of any length, read as pieces of a given one."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._piece = memoryview(b"")
        self.digest = sha256()  # of what was taken

    def take(self, size_bytes: int) -> bytes:
        taken = b"".join(self._upto(size_bytes))
        self.digest.update(taken)
        return taken

    def _upto(self, left_bytes: int) -> Iterator[memoryview]:
        while left_bytes:
            if not self._piece:
                piece = next(self._pieces, None)
                if piece is None:
                    raise Wrong(f"it is cut off: {left_bytes} more bytes expected", is_damage=True)
                self._piece = memoryview(piece)
            part = self._piece[:left_bytes]
            self._piece = self._piece[left_bytes:]
            left_bytes -= len(part)
            yield part

    def body(self, entry: PackageEntry, binary: Binary) -> Iterable[bytes]:
        """The next body. It must be read to its end before the next one is."""
        digest = sha256()
        for part in self._upto(binary.size_bytes):
            digest.update(part)
            yield bytes(part)
        if digest.digest() != binary.sha256:
            raise _altered_body(entry)

    def is_at_end(self) -> bool:
        return not self._piece and not any(self._pieces)


def _held_entries(message: Package, content: bytes) -> Iterator[OpenedEntry]:
    if len(content) != message.size_bytes:
        raise Wrong(
            f"expected {message.size_bytes} bytes, but there are {len(content)}", is_damage=True
        )
    if len(content) < PREFIX.size:
        raise Wrong("it is too short for a package")
    manifest_bytes = check_prefix(content[: PREFIX.size], len(content))
    at = PREFIX.size + manifest_bytes
    if sha256(content[:at]).digest() != message.sha256:
        raise Wrong("its manifest is not the one that was published", is_damage=True)

    def body(entry: PackageEntry, binary: Binary) -> Iterable[bytes]:
        nonlocal at
        found = content[at : at + binary.size_bytes]
        at += binary.size_bytes
        if sha256(found).digest() != binary.sha256:
            raise _altered_body(entry)
        return VerifiedPieces((found,))

    source = _Held(content)
    head, blocks = read_manifest(source, manifest_bytes, len(content))
    check = _check_of(message, head)
    for block in blocks:
        for entry in block:
            yield _opened(entry, check.check(entry), body)
    check.finish()


class _Held:
    """The manifest of a package that is in memory."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._at = PREFIX.size

    def take(self, size_bytes: int) -> bytes:
        self._at += size_bytes
        return self._content[self._at - size_bytes : self._at]


def _check_of(message: Package, head: ManifestHead) -> EntryCheck:
    if head.paths != message.paths or head.deep_paths != message.deep_paths:
        raise Wrong("its paths are not those of its message")
    return EntryCheck(head, message.binaries)


def _opened(
    entry: PackageEntry,
    properties: dict[str, Value],
    body: Callable[[PackageEntry, Binary], Iterable[bytes] | None],
) -> OpenedEntry:
    bodies: list[OpenedBody] = []
    for each in entry.binaries:
        binary = properties[each.name] = Binary(each.sha256, each.size_bytes)
        pieces = body(entry, binary) if each.place is BodyPlace.INLINE else None
        bodies.append(OpenedBody(binary, pieces))
    return OpenedEntry(entry.path, SharedProperties(properties), bodies)


def _altered_body(entry: PackageEntry) -> Wrong:
    return Wrong("has a binary that does not match its hash", entry.path, is_damage=True)


def named_blob(blobs: Blobs, name: str, start: int = 0) -> Iterator[bytes]:
    """A blob that a message names, which may not be there yet."""
    try:
        yield from get_when_there(blobs, name, start)
    except InvalidArgument as error:  # it ends before the range begins
        raise Wrong(f"its blob {name} is too short: {error.message}", is_damage=True) from None
