"""The frames of the next commit, joined in memory that is used again for every commit.

Memory of its own for each append would cost three times the copy: the allocator gives it back to
the system after the commit, and the next one faults its pages in again.
"""

from collections.abc import Sequence
from io import BytesIO
from typing import NamedTuple

from crc32c import crc32c

from holdfast.journal.api import Refused
from holdfast.journal.local.frame import (
    ALIGNMENT_BYTES,
    HEADER_BYTES,
    LINK_BYTES,
    LINK_PARTITION,
    FrameHeader,
    encode_beginning,
    encode_header,
    encode_link,
)
from holdfast.limits import MIB

_KEPT_BYTES_MAX = 8 * MIB  # memory of a larger commit is given back
_LINK_ROOM = bytes(LINK_BYTES)
ANY = -1  # the caller does not say


class Staging(NamedTuple):
    """One append of one partition, checked and with its entries' lengths."""

    partition: int
    entries: Sequence[bytes]
    lengths: list[int]
    size_bytes: int  # of its frame
    epoch: int = ANY  # of the append, or the newest one
    offset: int = ANY  # at which the writer expects it to begin
    timestamp_ms: int = ANY  # of a copy: when it was written first; its epoch may be an older one


_Joined = tuple[Staging, int, int]
"""An append, where its frame begins, and the CRC of its body; the header is written when its place
is known."""


class Stage:
    """Collects appends as frames; at its front is room for the link that begins a segment."""

    def __init__(self) -> None:
        self._bytes = BytesIO()
        self._frames: list[_Joined] = []
        self._first = LINK_BYTES
        self.size_bytes = 0  # how large the commit is, with a link
        self.refused: dict[int, Refused] = {}  # by the number of the append
        self.clear()

    def __len__(self) -> int:
        return len(self._frames)

    @property
    def entry_count(self) -> int:
        return sum([len(append.lengths) for append, _, _ in self._frames])

    @property
    def partitions(self) -> set[int]:
        return {append.partition for append, _, _ in self._frames}

    def add(self, appends: Sequence[Staging]) -> None:
        """Joins the entries of all appends, or of none; TypeError if one of them is not bytes."""
        staged, frames, end = self._bytes, self._frames, self.size_bytes
        before = len(frames)
        try:
            for append in appends:
                _, entries, lengths, size_bytes, _, _, _ = append
                start = end
                end += size_bytes
                staged.write(encode_beginning(lengths))
                staged.writelines(entries)
                padding_bytes = end - staged.tell()
                if padding_bytes:  # frames begin at multiples of the alignment
                    if not 0 < padding_bytes < ALIGNMENT_BYTES:
                        raise TypeError("an entry whose length is not its number of bytes")
                    staged.write(bytes(padding_bytes))
                with staged.getbuffer()[start + HEADER_BYTES : end] as body:
                    frames.append((append, start, crc32c(body)))
        except TypeError:
            self.cut(before)
            raise
        self.size_bytes = end

    def cut(self, count: int) -> None:
        """Takes back what was added after the first `count` appends, whole or in part."""
        if count < len(self._frames):
            self.size_bytes = self._frames[count][1]
            del self._frames[count:]
        self._bytes.seek(self.size_bytes)

    def place(
        self,
        next_offsets: Sequence[int],
        epochs: list[int],
        timestamp_ms: int,
        sequence: int,
        position: int,
        previous_end: int,
    ) -> list[FrameHeader]:
        """Gives every frame its offsets and its place; at position 0 a link comes before them.

        Appends that expect another epoch or offset are taken out first, into `refused`. `epochs`
        are brought up to what is placed. A copy keeps its epoch, even an older one.
        """
        headers: list[FrameHeader] = []
        following: dict[int, int] = {}
        self._first = LINK_BYTES if position else 0
        base = position - self._first
        with self._bytes.getbuffer() as view:
            frames = self._with_link(view, previous_end)
            for (
                partition,
                _,
                lengths,
                size_bytes,
                epoch,
                expected,
                copied_ms,
            ), start, crc in frames:
                offset = following.get(partition, next_offsets[partition])
                if expected != offset and expected != ANY:
                    break
                if epoch != (last := epochs[partition]):
                    if epoch > last or copied_ms != ANY:
                        epochs[partition] = epoch
                    elif epoch == ANY:
                        epoch = last
                    else:
                        break
                count = len(lengths)
                following[partition] = offset + count
                header = FrameHeader(
                    crc,
                    size_bytes - HEADER_BYTES,
                    offset,
                    timestamp_ms if copied_ms == ANY else copied_ms,
                    sequence,
                    epoch,
                    base + start,
                    position,
                    count,
                    partition,
                )
                view[start : start + HEADER_BYTES] = encode_header(header)
                headers.append(header)
            else:
                return headers
        self._take_out_refused(next_offsets, epochs)
        if not self._frames:
            return []
        return self.place(next_offsets, epochs, timestamp_ms, sequence, position, previous_end)

    def _take_out_refused(self, next_offsets: Sequence[int], epochs: Sequence[int]) -> None:
        """Closes the gaps that appends leave whose expectation does not hold."""
        kept: list[tuple[Staging, int, bytes]] = []
        following: dict[int, int] = {}
        for number, (append, start, crc) in enumerate(self._frames):
            offset = following.get(append.partition, next_offsets[append.partition])
            last = epochs[append.partition]
            reason = _refusal(append, last, offset)
            if reason:
                self.refused[number] = Refused(append.partition, last, offset, reason)
                continue
            following[append.partition] = offset + len(append.lengths)
            end = start + append.size_bytes
            with self._bytes.getbuffer() as view, view[start:end] as whole:
                kept.append((append, crc, bytes(whole)))
        self.cut(0)
        for append, crc, whole in kept:
            self._frames.append((append, self.size_bytes, crc))
            self.size_bytes += self._bytes.write(whole)

    def data(self) -> memoryview:
        """The bytes of the commit, once it is placed; to be released before the next one."""
        return self._bytes.getbuffer()[self._first : self.size_bytes]

    def clear(self) -> None:
        """Begins the next commit."""
        self._frames.clear()
        if self.refused:
            self.refused = {}
        if self.size_bytes > _KEPT_BYTES_MAX:
            self._bytes = BytesIO()
        self._bytes.seek(0)
        self.size_bytes = self._bytes.write(_LINK_ROOM)

    def _with_link(self, view: memoryview, previous_end: int) -> list[_Joined]:
        if self._first:
            return self._frames
        link = encode_link(previous_end)
        view[HEADER_BYTES:LINK_BYTES] = link
        return [(Staging(LINK_PARTITION, (), [], LINK_BYTES), 0, crc32c(link)), *self._frames]


def _refusal(append: Staging, newest: int, offset: int) -> str:
    """Why an append is not written; empty if it is."""
    if append.epoch != ANY and append.epoch < newest and append.timestamp_ms == ANY:
        return f"epoch {newest} has the partition, and this append is of epoch {append.epoch}"
    if append.offset not in (ANY, offset):
        return f"the log ends at {offset}, and this append expects {append.offset}"
    return ""
