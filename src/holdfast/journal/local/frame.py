"""The bytes of one append: a frame that knows its place and notices every flipped bit. Pure.

A frame is a header of 56 bytes and a body, both little-endian, together a multiple of 8 bytes:

    magic            4s   "HFJ1": the format and its version
    header_crc       u32  CRC32C of all header bytes after this field
    body_crc         u32  CRC32C of the body
    body_bytes       u32  a multiple of 8
    first_offset     u64  the offset of the first entry
    timestamp_ms     u64
    sequence         u32  of the segment: a frame of another file cannot pass for one of this
    epoch            u32  of the append; 0 in frames of earlier versions, whose sequence had 64 bits
    position         u32  of the frame in its segment, for the same reason
    commit_position  u32  where the write began that this frame was part of
    entry_count      u32
    partition        u32
    body                  count lengths (u32), the payloads, zeros up to a multiple of 8

The first frame of a segment is a link: partition 0, no entries, and as its body the end (u64) of
the segment before. Files of discarded segments are used again without being cleared, so what
follows the last frame may be frames of another sequence; the link says where the last frame ended.

`commit_position` tells a torn tail from damage: a commit is written only after the one before was
synced, so a valid frame of a later commit proves that the bad bytes before it once were good.
"""

import struct
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import NamedTuple

from crc32c import crc32c

MAGIC = b"HFJ1"
ALIGNMENT_BYTES = 8
_PREFIX = struct.Struct("<4sI")
_FIELDS = struct.Struct("<IIQQIIIIII")
_LINK = struct.Struct("<Q")
HEADER_BYTES = _PREFIX.size + _FIELDS.size
LINK_BYTES = HEADER_BYTES + _LINK.size
LINK_PARTITION = 0
_ZEROS = bytes(1024 * 1024)

Buffer = bytes | bytearray


class FrameHeader(NamedTuple):
    """What a frame says about itself."""

    body_crc: int
    body_bytes: int
    first_offset: int
    timestamp_ms: int
    sequence: int
    epoch: int
    position: int
    commit_position: int
    entry_count: int
    partition: int

    @property
    def body_position(self) -> int:
        return self.position + HEADER_BYTES

    @property
    def end(self) -> int:
        return self.position + HEADER_BYTES + self.body_bytes

    @property
    def next_offset(self) -> int:
        return self.first_offset + self.entry_count


class FrameFault(NamedTuple):
    """Bytes in a segment that are neither a frame of it nor untouched zeros."""

    position: int
    reason: str
    later: FrameHeader | None  # the last header after it that is intact, as evidence of damage


class Scan(NamedTuple):
    """What a walk over a segment's bytes found."""

    headers: list[FrameHeader]
    end: int  # where the last good frame ends
    fault: FrameFault | None


@lru_cache(maxsize=512)
def _lengths(count: int) -> struct.Struct:
    return struct.Struct(f"<{count}I")


@lru_cache(maxsize=512)
def _beginning(count: int) -> struct.Struct:
    return struct.Struct(f"<{HEADER_BYTES}x{count}I")


def encode_beginning(lengths: list[int]) -> bytes:
    """What stands before the payloads of a frame: room for its header, and their lengths."""
    return _beginning(len(lengths)).pack(*lengths)


def frame_bytes(lengths: list[int]) -> int:
    """The size of a frame with entries of these lengths."""
    size_bytes = HEADER_BYTES + 4 * len(lengths) + sum(lengths)
    return size_bytes + -size_bytes % ALIGNMENT_BYTES


def encode_link(previous_end: int) -> bytes:
    """The body of a segment's first frame."""
    return _LINK.pack(previous_end)


def decode_link(data: Buffer, sequence: int) -> int | None:
    """Where the segment before ended, from the beginning of a segment; None if there is no link."""
    header = decode_header(data, 0, sequence, 0)
    if header is None or header.partition != LINK_PARTITION:
        return None
    return (
        _LINK.unpack_from(data, HEADER_BYTES)[0] if is_intact(data, HEADER_BYTES, header) else None
    )


def encode_header(header: FrameHeader) -> bytes:
    """A header as its bytes."""
    fields = _FIELDS.pack(*header)
    return _PREFIX.pack(MAGIC, crc32c(fields)) + fields


def decode_header(data: Buffer, at: int, sequence: int, position: int) -> FrameHeader | None:
    """The header at `at` in data, if it is intact and belongs to this place of this segment."""
    if len(data) - at < HEADER_BYTES:
        return None
    magic, crc = _PREFIX.unpack_from(data, at)
    if magic != MAGIC:
        return None
    fields = bytes(data[at + _PREFIX.size : at + HEADER_BYTES])
    if crc32c(fields) != crc:
        return None
    header = FrameHeader._make(_FIELDS.unpack(fields))
    return header if header.sequence == sequence and header.position == position else None


def is_intact(data: Buffer, at: int, header: FrameHeader) -> bool:
    """Whether the body at `at` in data is the one that the header was written with."""
    end = at + header.body_bytes
    return end <= len(data) and crc32c(memoryview(data)[at:end]) == header.body_crc


def payload_ends(data: Buffer, at: int, header: FrameHeader) -> list[int]:
    """Where payloads begin and end in data, the body being at `at`: count + 1 places."""
    lengths = _lengths(header.entry_count).unpack_from(data, at)
    return list(accumulate(lengths, initial=at + 4 * header.entry_count))


def payloads(data: Buffer, at: int, header: FrameHeader) -> list[bytes]:
    """The entries of a body."""
    return [bytes(data[start:end]) for start, end in pairwise(payload_ends(data, at, header))]


def scan(data: Buffer, sequence: int, base: int = 0) -> Scan:
    """Walks the frames in data, which begins at position `base` of the segment.

    It ends at the end of data, at zeros that reach to the end of data, or at a fault.
    """
    headers: list[FrameHeader] = []
    at = 0
    while header := decode_header(data, at, sequence, base + at):
        if not is_intact(data, at + HEADER_BYTES, header):
            break
        headers.append(header)
        at += HEADER_BYTES + header.body_bytes
    end = base + at
    if is_zero(data, at):
        return Scan(headers, end, None)
    reason = "the body does not match its checksum" if header else "there is no intact header"
    return Scan(headers, end, FrameFault(end, reason, _last_header(data, at, sequence, base)))


def is_zero(data: Buffer, start: int) -> bool:
    """Whether everything from `start` on is untouched."""
    if data[start : start + ALIGNMENT_BYTES].strip(b"\0"):
        return False  # what is not zeros mostly shows at once
    for at in range(start, len(data), len(_ZEROS)):
        piece = data[at : at + len(_ZEROS)]
        if piece != _ZEROS[: len(piece)]:
            return False
    return True


def _last_header(data: Buffer, fault: int, sequence: int, base: int) -> FrameHeader | None:
    """The last intact header after a fault; the last has the highest commit position."""
    at = len(data)
    while (at := data.rfind(MAGIC, fault + 1, at + len(MAGIC) - 1)) > fault:
        if (base + at) % ALIGNMENT_BYTES == 0:
            header = decode_header(data, at, sequence, base + at)
            if header is not None:
                return header
    return None
