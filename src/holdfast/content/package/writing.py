"""Writes packages: entries one after the other, bodies beside them, and at the end all in order.

What is small stays in memory. What is not goes to files without a name in the temporary folder, so
that memory does not grow with the tree.
"""

from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from tempfile import TemporaryFile
from typing import IO, Any, NamedTuple

from holdfast.content.package.format import (
    LENGTH,
    MAGIC,
    PREFIX,
    VERSION,
    BodyPlace,
    ManifestHead,
    PackageEntry,
    PackedBinary,
    array_header,
    encode,
    wrong_name,
    wrong_value,
)
from holdfast.content.repository.api import Binary
from holdfast.errors import InvalidArgument, ResourceExhausted
from holdfast.limits import (
    CONTENT_BINARY_BYTES_MIN,
    CONTENT_BLOCK_BYTES,
    CONTENT_BLOCK_BYTES_MAX,
    CONTENT_ENTRIES_MAX,
    CONTENT_INLINE_BYTES_MAX,
    CONTENT_MANIFEST_BYTES_MAX,
    CONTENT_TOTAL_BYTES_MAX,
    KIB,
    MIB,
)

_PIECE_BYTES = 256 * KIB
_BLOCKS_BYTES_MAX = CONTENT_MANIFEST_BYTES_MAX - MIB  # the head is before them


class WrittenBody(NamedTuple):
    """A binary of a node that is written; without content it is in a blob."""

    name: str
    binary: Binary
    content: bytes | None


class WrittenPackage:
    """A package that is whole. Its files go when it is closed."""

    def __init__(self, front: bytes, parts: Sequence["_Spool"], digest: bytes) -> None:
        self.sha256 = digest
        self.size_bytes = len(front) + sum(part.size_bytes for part in parts)
        self._front = front
        self._parts = parts

    def pieces(self) -> Iterator[bytes]:
        """Its bytes, from the beginning each time."""
        yield self._front
        for part in self._parts:
            yield from part.pieces()

    def close(self) -> None:
        for part in self._parts:
            part.close()


class PackageWriter:
    """Takes the entries of a package in the order of the tree."""

    def __init__(self, paths: Sequence[str], deep_paths: Sequence[str]) -> None:
        self._paths = list(paths)
        self._deep_paths = list(deep_paths)
        self._block: list[bytes] = []
        self._block_bytes = 0
        self._manifest = _Spool()
        self._bodies = _Spool()
        self._entries = self._properties = self._binaries = self._total_bytes = 0

    def add(self, path: str, properties: Mapping[str, Any], bodies: Sequence[WrittenBody]) -> None:
        """Adds a node with its plain properties and its binaries."""
        packed: list[PackedBinary] = []
        for name, binary, content in bodies:
            if wrong := wrong_name(name):
                raise _refused(path, wrong)
            place = BodyPlace.BLOB
            if content is not None:
                assert len(content) == binary.size_bytes < CONTENT_BINARY_BYTES_MIN
                place = BodyPlace.INLINE
                self._bodies.write(content)
            packed.append(PackedBinary(name, binary.sha256, binary.size_bytes, place))
            self._total_bytes += binary.size_bytes
        named: list[Any] = []
        for name, value in properties.items():
            if wrong := wrong_name(name) or wrong_value(name, value):
                raise _refused(path, wrong)
            named += (name, value)
        self._entries += 1
        self._properties += len(properties)
        self._binaries += len(packed)
        self._append(path, encode(PackageEntry(path, named, packed)))
        self._check_limits(path)

    def _append(self, path: str, entry: bytes) -> None:
        if len(entry) + len(array_header(1)) > CONTENT_BLOCK_BYTES_MAX:
            raise _refused(
                path,
                f"expected properties of up to {CONTENT_BLOCK_BYTES_MAX} bytes, but they have"
                f" {len(entry)}; make the large ones binaries",
            )
        if self._block_bytes + len(entry) > CONTENT_BLOCK_BYTES:
            self._end_block()
        self._block.append(entry)
        self._block_bytes += len(entry)

    def _end_block(self) -> None:
        if self._block:
            block = array_header(len(self._block)) + b"".join(self._block)
            self._manifest.write(LENGTH.pack(len(block)) + block)
            self._block, self._block_bytes = [], 0

    def _check_limits(self, path: str) -> None:
        for what, found, most in (
            ("nodes", self._entries, CONTENT_ENTRIES_MAX),
            ("bytes of paths and properties", self._manifest.size_bytes, _BLOCKS_BYTES_MAX),
            ("bytes of binaries", self._total_bytes, CONTENT_TOTAL_BYTES_MAX),
        ):
            if found > most:
                raise ResourceExhausted(
                    f"Expected a package of up to {most} {what}, but at {path} there are more;"
                    " split the tree: publish the paths below it one by one",
                    path=path,
                )

    def finish(self) -> WrittenPackage:
        """The package as a whole."""
        self._end_block()
        head = encode(
            ManifestHead(
                self._paths, self._deep_paths, self._entries, self._properties, self._binaries,
                self._bodies.size_bytes, self._total_bytes,
            )
        )  # fmt: skip
        manifest_bytes = LENGTH.size + len(head) + self._manifest.size_bytes
        prefix = PREFIX.pack(MAGIC, VERSION, manifest_bytes)
        front = prefix + LENGTH.pack(len(head)) + head
        digest = sha256(front)
        for piece in self._manifest.pieces():
            digest.update(piece)
        return WrittenPackage(front, (self._manifest, self._bodies), digest.digest())

    def close(self) -> None:
        """Gives up what was written."""
        self._manifest.close()
        self._bodies.close()


class _Spool:
    """Bytes that are written once and read from the beginning, in memory while they are few."""

    def __init__(self) -> None:
        self.size_bytes = 0
        self._held: list[bytes] = []
        self._file: IO[bytes] | None = None

    def write(self, piece: bytes) -> None:
        self.size_bytes += len(piece)
        if self._file is None:
            self._held.append(piece)
            if self.size_bytes <= CONTENT_INLINE_BYTES_MAX:
                return
            self._file = TemporaryFile()  # noqa: SIM115 - closed with the package
            held, self._held = self._held, []
            self._file.writelines(held)
        else:
            self._file.write(piece)

    def pieces(self) -> Iterator[bytes]:
        if self._file is None:
            yield from self._held
            return
        self._file.seek(0)
        while piece := self._file.read(_PIECE_BYTES):
            yield piece

    def close(self) -> None:
        self._held = []
        if self._file is not None:
            self._file.close()
            self._file = None


def _refused(path: str, wrong: str) -> InvalidArgument:
    return InvalidArgument(f"The node {path} cannot be published: {wrong}", path=path)
