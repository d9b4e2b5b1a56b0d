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
    HEADER_BYTES,
    LINK_BYTES,
    LINK_PARTITION,
    FrameHeader,
    body_edges,
    encode_header,
    encode_link,
)
from holdfast.limits import MIB

_KEPT_BYTES_MAX = 8 * MIB  # memory of a larger commit is given back
_HEADER_ROOM = bytes(HEADER_BYTES)
ANY = -1  # the caller does not say


class _Staged(NamedTuple):
    """An append whose body is joined; the header is written when its place is known."""

    partition: int
    entry_count: int
    start: int
    end: int
    body_crc: int
    epoch: int = ANY  # of the append, or the newest one
    offset: int = ANY  # at which the writer expects it to begin
    timestamp_ms: int = ANY  # of a copy: when it was written first


class Stage:
    """Collects appends as frames; at its front is room for the link that begins a segment."""

    def __init__(self) -> None:
        self._bytes = BytesIO()
        self._frames: list[_Staged] = []
        self._first = LINK_BYTES
        self.refused: dict[int, Refused] = {}  # by the number of the append
        self.clear()

    def __len__(self) -> int:
        return len(self._frames)

    @property
    def size_bytes(self) -> int:
        """How large the commit is, with a link."""
        return self._bytes.tell()

    @property
    def entry_count(self) -> int:
        return sum([frame.entry_count for frame in self._frames])

    @property
    def partitions(self) -> set[int]:
        return {frame.partition for frame in self._frames}

    def add(
        self,
        partition: int,
        entries: Sequence[bytes],
        lengths: list[int],
        epoch: int = ANY,
        offset: int = ANY,
        timestamp_ms: int = ANY,
    ) -> None:
        """Joins an append's entries; TypeError if one of them is not bytes."""
        staged = self._bytes
        start = staged.tell()
        table, padding = body_edges(lengths)
        staged.write(_HEADER_ROOM + table)
        staged.writelines(entries)
        staged.write(padding)
        end = staged.tell()
        with staged.getbuffer()[start + HEADER_BYTES : end] as body:
            crc = crc32c(body)
        self._frames.append(
            _Staged(partition, len(lengths), start, end, crc, epoch, offset, timestamp_ms)
        )

    def cut(self, count: int) -> None:
        """Takes back what was added after the first `count` appends, whole or in part."""
        del self._frames[count:]
        self._bytes.seek(self._frames[-1].end if count else LINK_BYTES)

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
            for partition, count, start, end, crc, epoch, expected, copied_ms in frames:
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
                following[partition] = offset + count
                body_at = start + HEADER_BYTES
                header = FrameHeader(
                    crc,
                    end - body_at,
                    offset,
                    timestamp_ms if copied_ms == ANY else copied_ms,
                    sequence,
                    epoch,
                    base + start,
                    position,
                    count,
                    partition,
                )
                view[start:body_at] = encode_header(header)
                headers.append(header)
            else:
                return headers
        self._take_out_refused(next_offsets, epochs)
        if not self._frames:
            return []
        return self.place(next_offsets, epochs, timestamp_ms, sequence, position, previous_end)

    def _take_out_refused(self, next_offsets: Sequence[int], epochs: Sequence[int]) -> None:
        """Closes the gaps that appends leave whose expectation does not hold."""
        kept: list[tuple[_Staged, bytes]] = []
        following: dict[int, int] = {}
        for number, frame in enumerate(self._frames):
            offset = following.get(frame.partition, next_offsets[frame.partition])
            last = epochs[frame.partition]
            reason = _refusal(frame, last, offset)
            if reason:
                self.refused[number] = Refused(frame.partition, last, offset, reason)
                continue
            following[frame.partition] = offset + frame.entry_count
            with self._bytes.getbuffer() as view, view[frame.start : frame.end] as whole:
                kept.append((frame, bytes(whole)))
        self.cut(0)
        for frame, whole in kept:
            start = self._bytes.tell()
            self._bytes.write(whole)
            self._frames.append(frame._replace(start=start, end=self._bytes.tell()))

    def data(self) -> memoryview:
        """The bytes of the commit, once it is placed; to be released before the next one."""
        return self._bytes.getbuffer()[self._first : self._bytes.tell()]

    def clear(self) -> None:
        """Begins the next commit."""
        self._frames.clear()
        if self.refused:
            self.refused = {}
        if self._bytes.tell() > _KEPT_BYTES_MAX:
            self._bytes = BytesIO()
        self._bytes.seek(0)
        self._bytes.write(bytes(LINK_BYTES))

    def _with_link(self, view: memoryview, previous_end: int) -> list[_Staged]:
        if self._first:
            return self._frames
        link = encode_link(previous_end)
        view[HEADER_BYTES:LINK_BYTES] = link
        return [_Staged(LINK_PARTITION, 0, 0, LINK_BYTES, crc32c(link)), *self._frames]


def _refusal(frame: _Staged, newest: int, offset: int) -> str:
    """Why an append is not written; empty if it is."""
    if frame.epoch != ANY and frame.epoch < newest and frame.timestamp_ms == ANY:
        return f"epoch {newest} has the partition, and this append is of epoch {frame.epoch}"
    if frame.offset not in (ANY, offset):
        return f"the log ends at {offset}, and this append expects {frame.offset}"
    return ""
