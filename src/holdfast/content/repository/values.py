"""Properties of nodes as bytes: MessagePack, with binaries and times as types of their own."""

import math
import struct
from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final, NamedTuple

import msgspec

from holdfast.content.paths import checked_path
from holdfast.content.repository.api import Binary, Properties, Value
from holdfast.errors import DataLoss, InvalidArgument
from holdfast.limits import (
    CONTENT_NAME_BYTES_MAX,
    CONTENT_PROPERTIES_BYTES_MAX,
    WHOLE_MAX,
)

SHA256_BYTES: Final = 32
NO_PROPERTIES: Final = msgspec.msgpack.encode({})
_BINARY: Final = 1  # the number of binaries among MessagePack's types; stays what it is
_SIZE = struct.Struct(">Q")
_PLAIN = (str, bool, bytes)
_SHORT: Final = CONTENT_NAME_BYTES_MAX // 4  # characters that are surely no more bytes


class SharedProperties(dict[str, Value]):
    """Properties that many stores are given, and nobody changes: they are encoded once for all."""

    __slots__ = ("kept",)

    def __init__(self, properties: Properties) -> None:
        super().__init__(properties)
        self.kept: KeptProperties | None = None


class KeptProperties(NamedTuple):
    """Properties as a store keeps them for a path."""

    path: str
    encoded: bytes
    binaries: tuple[Binary, ...]  # each as often as they refer to it


def kept_properties(path: str, properties: Properties) -> KeptProperties:
    """The path and the properties, checked, as a store keeps them."""
    if type(properties) is not SharedProperties:
        encoded = encode_properties(checked_path(path), properties)
        return KeptProperties(path, encoded, tuple(binaries_of(properties)))
    kept = properties.kept
    if kept is None or kept.path != path:
        kept = kept_properties(path, dict(properties))
        properties.kept = kept
    return kept


def encode_properties(path: str, properties: Properties) -> bytes:
    """The properties as bytes; InvalidArgument names the one that cannot be kept."""
    plain: dict[str, Any] = {
        name: value if type(value) in _PLAIN else _checked(path, name, value)
        for name, value in properties.items()
    }
    try:
        for name in plain:
            if type(name) is str and 0 < len(name) <= _SHORT:
                continue
            if type(name) is not str or not 0 < len(name.encode()) <= CONTENT_NAME_BYTES_MAX:
                raise _refused(path, str(name)[:100], "called by a name of 1 to 255 bytes")
        encoded = _encode(plain)
    except UnicodeEncodeError as error:
        raise InvalidArgument(
            f"Expected properties of {path} that are Unicode, but {error}", path=path
        ) from error
    if len(encoded) > CONTENT_PROPERTIES_BYTES_MAX:
        raise InvalidArgument(
            f"Expected the properties of {path} to have {CONTENT_PROPERTIES_BYTES_MAX} bytes at"
            f" most, but they have {len(encoded)}; make the large ones binaries",
            path=path,
        )
    return encoded


def decode_properties(path: str, encoded: bytes) -> Properties:
    """What was encoded; DataLoss if the bytes are not what was written."""
    try:
        return _decode(encoded)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise DataLoss(f"The properties of {path} are damaged: {error}", path=path) from error


def binaries_of(properties: Properties) -> Iterator[Binary]:
    """The binaries that a node refers to, each as often as it does."""
    return (value for value in properties.values() if type(value) is Binary)


def _checked(path: str, name: str, value: object) -> object:
    kind = type(value)
    if kind is Binary:
        return _packed(path, name, value)  # pyright: ignore[reportArgumentType]
    if kind is list:
        items: list[Any] = value  # pyright: ignore[reportAssignmentType]
        for item in items:
            if type(item) not in _PLAIN and not _is_scalar(item):
                raise _refused(path, name, "a list of texts, numbers, times or bytes")
        return items
    if kind in _PLAIN or _is_scalar(value):
        return value
    raise _refused(
        path, name, "a text, a number of up to 64 bits, a time with its zone, bytes or a Binary"
    )


def _is_scalar(value: object) -> bool:
    kind = type(value)
    if kind is int:
        return -WHOLE_MAX - 1 <= value <= WHOLE_MAX  # pyright: ignore[reportOperatorIssue]
    if kind is float:
        return not math.isnan(value)  # pyright: ignore[reportArgumentType]
    if isinstance(value, datetime):
        return value.tzinfo is not None
    return kind in _PLAIN


def _packed(path: str, name: str, binary: Binary) -> msgspec.msgpack.Ext:
    if len(binary.sha256) != SHA256_BYTES or not 0 <= binary.size_bytes <= WHOLE_MAX:
        raise _refused(path, name, "a binary with a SHA-256 of 32 bytes and a size")
    return msgspec.msgpack.Ext(_BINARY, binary.sha256 + _SIZE.pack(binary.size_bytes))


def _unpacked(code: int, data: memoryview) -> Binary:
    if code != _BINARY or len(data) != SHA256_BYTES + _SIZE.size:
        raise msgspec.DecodeError(f"a value of type {code} with {len(data)} bytes")
    return Binary(bytes(data[:SHA256_BYTES]), _SIZE.unpack(data[SHA256_BYTES:])[0])


def _refused(path: str, name: str, expected: str) -> InvalidArgument:
    return InvalidArgument(
        f"Expected the property {name!r} of {path} to be {expected}; change it before it is put",
        path=path,
        property=name,
    )


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(dict[str, Any], ext_hook=_unpacked).decode
