"""Checks a manifest block by block. Nothing that it says is believed, and little of it is held."""

from collections.abc import Collection, Container, Iterator
from typing import Any, Protocol

import msgspec

from holdfast.content.blobs import binary_blob
from holdfast.content.package.format import (
    LENGTH,
    MAGIC,
    PREFIX,
    VERSION,
    BodyPlace,
    ManifestHead,
    PackageEntry,
    PackedBinary,
    decode_block,
    decode_head,
    wrong_name,
    wrong_value,
)
from holdfast.content.package.wrong import Wrong
from holdfast.content.paths import checked_path, key_of
from holdfast.errors import InvalidArgument
from holdfast.limits import (
    CONTENT_BINARY_BYTES_MIN,
    CONTENT_BLOCK_BYTES_MAX,
    CONTENT_MANIFEST_BYTES_MAX,
    CONTENT_PATHS_BYTES_MAX,
    KIB,
)

_HEAD_BYTES_MAX = 2 * CONTENT_PATHS_BYTES_MAX + 64 * KIB  # its paths, twice if all are deep
_NOWHERE = "\0"  # what no path begins with


class Bytes(Protocol):
    """Bytes that are taken from the front."""

    def take(self, size_bytes: int) -> bytes:
        """The next bytes, exactly so many; Wrong if there are fewer."""
        ...


def check_prefix(prefix: bytes, size_bytes: int) -> int:
    """How many bytes the manifest has, of a package with so many bytes."""
    magic, version, manifest_bytes = PREFIX.unpack(prefix)
    if magic != MAGIC:
        raise Wrong(f"expected a package to begin with {MAGIC!r}, but found {magic!r}")
    if version != VERSION:
        raise Wrong(f"expected version {VERSION} of the format, but found {version}")
    left_bytes = min(CONTENT_MANIFEST_BYTES_MAX, size_bytes - PREFIX.size)
    if not 0 < manifest_bytes <= left_bytes:
        raise Wrong(f"expected a manifest of up to {left_bytes} bytes, but found {manifest_bytes}")
    return manifest_bytes


def read_manifest(
    source: Bytes, manifest_bytes: int, size_bytes: int
) -> "tuple[ManifestHead, Iterator[list[PackageEntry]]]":
    """The head, and the blocks of entries as they are; nothing but their types is checked."""
    blocks = _blocks(source, manifest_bytes)
    head = _decoded(decode_head, next(blocks))
    expected = PREFIX.size + manifest_bytes + head.bodies_bytes
    if size_bytes != expected:
        raise Wrong(f"expected {expected} bytes in all, but there are {size_bytes}")
    return head, (_decoded(decode_block, block) for block in blocks)


def _blocks(source: Bytes, left_bytes: int) -> Iterator[bytes]:
    size_bytes_max = _HEAD_BYTES_MAX
    while left_bytes:
        left_bytes -= LENGTH.size
        (size_bytes,) = LENGTH.unpack(source.take(LENGTH.size)) if left_bytes > 0 else (0,)
        if not 0 < size_bytes <= min(size_bytes_max, left_bytes):
            raise Wrong(
                f"expected a block of up to {min(size_bytes_max, left_bytes)} bytes in the"
                f" manifest, but found {size_bytes}"
            )
        left_bytes -= size_bytes
        size_bytes_max = CONTENT_BLOCK_BYTES_MAX
        yield source.take(size_bytes)


def _decoded(decode: Any, block: bytes) -> Any:
    try:
        return decode(block)
    except (msgspec.MsgspecError, ValueError, OverflowError, RecursionError) as error:
        raise Wrong(f"the manifest cannot be read: {str(error)[:200]}") from None


class EntryCheck:
    """Checks entries one after the other, and at the end that they are all that was promised."""

    def __init__(self, head: ManifestHead, blobs: Collection[str]) -> None:
        self._head = head
        self._paths = frozenset(head.paths)
        self._deep = frozenset(head.deep_paths)
        self._blobs = frozenset(blobs)
        self._blobs_seen: set[str] = set()
        self._last = ""  # the key of the entry before
        self._below = _NOWHERE  # how paths begin that are below the deep path before
        self._found = self._entries = self._properties = self._binaries = 0
        self._bodies_bytes = self._total_bytes = 0

    def check(self, entry: PackageEntry) -> dict[str, Any]:
        """The properties without binaries; Wrong if a builder would not have written the entry."""
        self._check_path(entry.path)
        names, values = entry.properties[::2], entry.properties[1::2]
        if len(names) != len(values):
            raise Wrong("has a property without a value", entry.path)
        properties = {}
        for name, value in zip(names, values, strict=True):
            self._check_name(entry.path, name, properties)
            if wrong := wrong_value(name, value):
                raise Wrong(wrong, entry.path)
            properties[name] = value
        self._properties += len(properties)
        if entry.binaries:
            taken = set(properties)
            for binary in entry.binaries:
                self._check_name(entry.path, binary.name, taken)
                self._check_binary(entry.path, binary)
                taken.add(binary.name)
        return properties

    def _check_name(self, path: str, name: Any, taken: Container[str]) -> None:
        if type(name) is not str:
            raise Wrong(f"has a property whose name is {type(name).__name__}", path)
        if wrong := wrong_name(name):
            raise Wrong(wrong, path)
        if name in taken:
            raise Wrong(f"has the property {name[:100]!r} twice", path)

    def _check_path(self, path: str) -> None:
        try:
            key = key_of(checked_path(path))
        except InvalidArgument as error:
            raise Wrong(error.message, path) from None
        if self._entries and key <= self._last:
            raise Wrong("expected every path once, in the order of the tree", path)
        self._last = key
        self._entries += 1
        if self._entries > self._head.entries:
            raise Wrong(f"expected {self._head.entries} entries, but found more", path)
        if path in self._paths:
            self._found += 1
            if path in self._deep and not path.startswith(self._below):
                self._below = "/" if path == "/" else f"{path}/"
        elif not path.startswith(self._below):
            raise Wrong("is neither one of the package's paths nor below a deep one", path)

    def _check_binary(self, path: str, binary: PackedBinary) -> None:
        self._binaries += 1
        self._total_bytes += binary.size_bytes
        if binary.place is BodyPlace.INLINE:
            self._bodies_bytes += binary.size_bytes
            if binary.size_bytes >= CONTENT_BINARY_BYTES_MIN:
                raise Wrong(f"has a binary of {binary.size_bytes} bytes that is no blob", path)
            return
        name = binary_blob(binary.sha256)
        if name not in self._blobs:
            raise Wrong(f"has a binary in the blob {name}, which the message does not name", path)
        self._blobs_seen.add(name)

    def finish(self) -> None:
        """Wrong if there is less than was promised."""
        head = self._head
        for what, expected, found in (
            ("entries", head.entries, self._entries),
            ("properties", head.properties, self._properties),
            ("binaries", head.binaries, self._binaries),
            ("bytes of bodies", head.bodies_bytes, self._bodies_bytes),
            ("bytes of binaries", head.total_bytes, self._total_bytes),
            ("of its paths among the entries", len(self._paths), self._found),
            ("blobs of binaries", len(self._blobs), len(self._blobs_seen)),
        ):
            if expected != found:
                raise Wrong(f"expected {expected} {what}, but found {found}")
