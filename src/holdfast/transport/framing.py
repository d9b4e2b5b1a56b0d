"""Frames in a stream of bytes: a length of four bytes, and so many bytes.

Bytes are read straight into the buffer that frames are decoded from. A frame that is larger than
the buffer gets one of its own, so that however large it is, its bytes are not moved.
"""

from collections.abc import Iterator

from holdfast.limits import HELLO_BYTES_MAX, KIB
from holdfast.transport.messages import (
    MESSAGE_HEAD_BYTES,
    Fault,
    Message,
    encode_head,
    encode_messages,
)

HEAD_BYTES = 4
LENGTH_MAX = 2**32 - 1
BUFFER_BYTES = 256 * KIB  # what one read takes at the most: four frames of 64 KB
READ_BYTES_MIN = 64 * KIB  # less room at the end, and what is left of a frame moves to the front
STRANGER_BUFFER_BYTES = HEAD_BYTES + HELLO_BYTES_MAX
LARGE_BYTES = 32 * KIB  # a message from here on is not copied into a frame, but sent as it is

Frame = tuple[bytes, bytes]
"""What is sent, in two parts: the length with what comes first, and the rest."""


def frame_of(body: bytes) -> Frame:
    """A frame with this content."""
    return len(body).to_bytes(HEAD_BYTES), body


def frames_of(messages: list[Message], frame_bytes: int) -> Iterator[Frame]:
    """The messages in as few frames as `frame_bytes` allows, in their order; a large one alone."""
    begin, size = 0, 0
    for place, message in enumerate(messages):
        more = len(message[2]) + MESSAGE_HEAD_BYTES
        is_large = more > LARGE_BYTES
        if begin < place and (is_large or size + more > frame_bytes):
            yield frame_of(encode_messages(messages[begin:place]))
            begin, size = place, 0
        if is_large:
            head = encode_head(message)
            yield (len(head) + len(message[2])).to_bytes(HEAD_BYTES) + head, message[2]
            begin = place + 1
        else:
            size += more
    if begin < len(messages):
        yield frame_of(encode_messages(messages[begin:]))


class Incoming:
    """Puts frames together from the bytes of a stream."""

    def __init__(self, frame_bytes_max: int) -> None:
        self._frame_bytes_max = frame_bytes_max
        self._limit = HELLO_BYTES_MAX  # until the peer is known
        self._renew(STRANGER_BUFFER_BYTES)
        self._begin = self._end = 0
        self._large = False  # the buffer is made for one frame, and goes with it

    def _renew(self, size: int) -> None:
        self._view = memoryview(bytearray(size))

    def admit(self) -> None:
        """The peer is known from now on: frames may be as large as messages are."""
        self._limit = self._frame_bytes_max
        if not self._large:
            self._move(BUFFER_BYTES)

    @property
    def in_frame(self) -> bool:
        """Whether a frame has begun that is not whole."""
        return self._end > self._begin

    def room(self) -> memoryview:
        """Where the next bytes go; never empty."""
        if self._begin == self._end and not self._large:
            self._begin = self._end = 0
        elif not self._large and len(self._view) - self._end < READ_BYTES_MIN:
            self._move(len(self._view))
        return self._view[self._end :]

    def filled(self, count: int) -> Iterator[memoryview]:
        """The frames that are whole now that `count` bytes came; each is gone with the next."""
        self._end += count
        while (held := self._end - self._begin) >= HEAD_BYTES:
            body = self._begin + HEAD_BYTES
            length = int.from_bytes(self._view[self._begin : body])
            if length > self._limit:
                raise Fault(f"a frame says that it has {length} bytes, more than {self._limit}")
            if held < HEAD_BYTES + length:
                if HEAD_BYTES + length > len(self._view):
                    self._move(HEAD_BYTES + length)
                    self._large = True
                return
            self._begin = body + length
            yield self._view[body : body + length]
        if self._large and self._begin == self._end:
            self._move(BUFFER_BYTES)
            self._large = False

    def _move(self, size: int) -> None:
        """What is left of a frame goes to the front of a buffer of this size."""
        rest = self._view[self._begin : self._end]
        if size != len(self._view):
            self._renew(max(size, len(rest)))
            self._view[: len(rest)] = rest
        elif self._begin:
            self._view[: len(rest)] = bytes(rest)
        self._begin, self._end = 0, len(rest)
