"""Typed keys as bytes whose order is the order of the values, so that a prefix scan is a range."""

import struct
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache, partial
from itertools import starmap
from typing import Any, Generic, TypeVar

K = TypeVar("K")

Within = tuple[int | str, ...]
"""The first parts of a key: all keys that begin with them. None of them: every key."""

_U64 = struct.Struct(">Q")
_U32 = struct.Struct(">I")
_U32_U64 = struct.Struct(">IQ")

# Keys become bytes when the store is written: too late to reject the command that made a key which
# cannot. So numbers that others have a say in, as times and priorities, are checked where a key is
# made of them, at 35 ns each. Keys and positions that the engine gives out always fit.
check_u32: Callable[[int], object] = _U32.pack
check_u64: Callable[[int], object] = _U64.pack

_PREFIXED_U64 = struct.Struct(">3sQ").pack
_PREFIXED_U64_U64 = struct.Struct(">3sQQ").pack
_PREFIXED_U64_U8_U64 = struct.Struct(">3sQBQ").pack


class KeyCodec(Generic[K]):
    """How a key becomes bytes behind a family's 3-byte prefix, and comes back from them.

    The bytes are in the order of the keys. Of keys with several parts, those that begin with the
    same parts begin with the same bytes: `parts` says how each becomes some of them.
    """

    def __init__(
        self,
        packer: Callable[[bytes], Callable[[K], bytes]],
        unpack: Callable[[bytes], K],
        parts: tuple[Callable[[Any], bytes], ...] = (),
        layout: Callable[..., bytes] | None = None,
    ) -> None:
        self.packer = packer
        self.unpack = unpack
        self._parts = parts
        self._layout = layout  # of a prefix and the parts, where they are numbers

    def packer_of_many(self, prefix: bytes) -> Callable[[Iterable[K]], Iterable[bytes]]:
        """Makes many keys bytes, where possible without code of ours for each."""
        if self._layout is None:
            return partial(map, self.packer(prefix))
        many: Any = partial(starmap, partial(self._layout, prefix))
        return many

    def begin(self, parts: Sequence[Any]) -> bytes:
        """The bytes of a key's first parts."""
        assert len(parts) <= len(self._parts), "the key has no such parts"
        return b"".join([pack(part) for pack, part in zip(self._parts, parts, strict=False)])


@lru_cache(1_024)  # of the same few types of jobs, mostly
def _text(text: str) -> bytes:
    """Text as the first part of a longer key: NUL ends it, so "a" sorts before "ab"."""
    return text.encode() + b"\0"


_same_text = lru_cache(1_024)(bytes.decode)  # one text for all: its hash is known


def _fields(layout: str) -> Callable[[bytes], Any]:
    return struct.Struct(layout).unpack


def _unpack_text_u32_u64(raw: bytes) -> tuple[str, int, int]:
    first, second = _U32_U64.unpack_from(raw, -_U32_U64.size)
    return _same_text(raw[3 : -_U32_U64.size - 1]), first, second


def _unpack_u64_text(raw: bytes) -> tuple[int, str]:
    return _U64.unpack_from(raw, 3)[0], raw[11:].decode()


def _pack_text_u32_u64(prefix: bytes, key: tuple[str, int, int]) -> bytes:
    return prefix + _text(key[0]) + _U32_U64.pack(key[1], key[2])


U64: KeyCodec[int] = KeyCodec(
    lambda prefix: partial(_PREFIXED_U64, prefix), lambda raw: _U64.unpack_from(raw, 3)[0]
)
U64_U64: KeyCodec[tuple[int, int]] = KeyCodec(
    lambda prefix: lambda key: _PREFIXED_U64_U64(prefix, *key), _fields(">3xQQ"), (_U64.pack,),
    _PREFIXED_U64_U64,
)  # fmt: skip
U64_U8_U64: KeyCodec[tuple[int, int, int]] = KeyCodec(
    lambda prefix: lambda key: _PREFIXED_U64_U8_U64(prefix, *key), _fields(">3xQBQ"), (),
    _PREFIXED_U64_U8_U64,
)  # fmt: skip
TEXT: KeyCodec[str] = KeyCodec(
    lambda prefix: lambda key: prefix + key.encode(), lambda raw: raw[3:].decode()
)
U64_TEXT: KeyCodec[tuple[int, str]] = KeyCodec(
    lambda prefix: lambda key: prefix + _U64.pack(key[0]) + key[1].encode(),
    _unpack_u64_text,
    (_U64.pack,),
)
TEXT_U32_U64: KeyCodec[tuple[str, int, int]] = KeyCodec(
    lambda prefix: partial(_pack_text_u32_u64, prefix),
    _unpack_text_u32_u64,
    (_text, _U32.pack),
)


@lru_cache(1_024)  # of the same few types of jobs, mostly
def after(prefix: bytes) -> bytes:
    """The smallest bytes that are larger than everything beginning with the prefix."""
    number = int.from_bytes(prefix, "big") + 1
    return number.to_bytes(len(prefix), "big")


def behind(within: Within) -> Within:
    """The smallest key that is larger than all that begin with these parts."""
    *parts, last = within
    return (*parts, last + 1 if isinstance(last, int) else last + "\0")
