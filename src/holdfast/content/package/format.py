"""The format of a package: what is where in its bytes, and what may be in it.

    prefix     magic, version, length of the manifest
    manifest   blocks, each a length and MessagePack: first the head, then up to
               CONTENT_BLOCK_BYTES_MAX of entries at a time
    bodies     the inline binaries, one behind the other in the order of the manifest

Entries are in the order of the tree, every path once: a node comes before those below it, and
siblings by their names. A reader needs no memory of what it has seen, whatever the package's size.

The hash of a package is that of prefix and manifest. The manifest has the hash of every binary,
so it stands for all of the package, each byte is hashed once, and a reader knows that the manifest
is the right one before it looks at the bodies.
"""

import struct
from datetime import datetime
from enum import IntEnum
from typing import Annotated, Any, Final

import msgspec

from holdfast.limits import (
    CONTENT_ENTRIES_MAX,
    CONTENT_NAME_BYTES_MAX,
    CONTENT_TOTAL_BYTES_MAX,
    WHOLE_MAX,
)

MAGIC: Final = b"\x89HFpkg\n"  # no text, and damaged by whatever rewrites the ends of lines
VERSION: Final = 1
PREFIX: Final = struct.Struct(">7sBI")  # magic, version, bytes of the manifest
LENGTH: Final = struct.Struct(">I")  # before each block


class BodyPlace(IntEnum):
    """Where the bytes of a binary are."""

    INLINE = 0  # among the bodies
    BLOB = 1  # in the blob store, by their hash


Size = Annotated[int, msgspec.Meta(ge=0, le=CONTENT_TOTAL_BYTES_MAX)]
Count = Annotated[int, msgspec.Meta(ge=0, le=WHOLE_MAX)]
Sha256 = Annotated[bytes, msgspec.Meta(min_length=32, max_length=32)]


class PackedBinary(
    msgspec.Struct, frozen=True, array_like=True, gc=False, forbid_unknown_fields=True
):
    """A property that is a binary."""

    name: str
    sha256: Sha256
    size_bytes: Size
    place: BodyPlace


class PackageEntry(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A node, without the bodies of its binaries."""

    path: str
    properties: list[Any]  # names and plain values in turn: a map would hide a name that is twice
    binaries: list[PackedBinary]


class ManifestHead(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """What the package is about, and how much of everything the rest of it has."""

    paths: list[str]
    deep_paths: list[str]
    entries: Annotated[int, msgspec.Meta(ge=0, le=CONTENT_ENTRIES_MAX)]
    properties: Count  # of all entries, without binaries
    binaries: Count  # of all entries
    bodies_bytes: Size  # of the inline ones: what follows the manifest
    total_bytes: Size  # of all binaries


encode: Final = msgspec.msgpack.Encoder().encode
decode_head: Final = msgspec.msgpack.Decoder(ManifestHead).decode
decode_block: Final = msgspec.msgpack.Decoder(list[PackageEntry]).decode

_PLAIN: Final = frozenset((str, int, float, bool, datetime, bytes))


def array_header(items: int) -> bytes:
    """The beginning of an array in MessagePack, for items that are encoded already."""
    return b"\xdd" + LENGTH.pack(items)


def wrong_name(name: str) -> str:
    """What is wrong with the name of a property; "" if nothing is."""
    if 0 < len(name) <= CONTENT_NAME_BYTES_MAX and len(name.encode()) <= CONTENT_NAME_BYTES_MAX:
        return ""
    return (
        f"expected a property to be called by a name of 1 to {CONTENT_NAME_BYTES_MAX} bytes, but"
        f" found {name[:100]!r}"
    )


def wrong_value(name: str, value: Any) -> str:
    """What is wrong with a property that is no binary; "" if nothing is."""
    for each in value if type(value) is list else (value,):
        kind = type(each)
        if kind not in _PLAIN:
            return f"expected the property {name!r} to be plain, but found {kind.__name__}"
        if kind is int and not -WHOLE_MAX - 1 <= each <= WHOLE_MAX:
            return f"expected the property {name!r} to fit 64 bits, but found a larger number"
        if kind is float and each != each:
            return f"expected the property {name!r} to be a number, but found NaN"
        if kind is datetime and each.tzinfo is None:
            return f"expected the property {name!r} to have a time zone, but found {each}"
    return ""
