"""What one side has sent, or is about to send, counted in bytes."""

from collections.abc import Iterator

from holdfast.errors import HoldfastError, InvalidArgument, ResourceExhausted
from holdfast.limits import CALL_BYTES, MEMBER_BUSY_RETRY_MS
from holdfast.transport.api import ConnectionBounds
from holdfast.transport.framing import LARGE_BYTES, Frame, frame_of, frames_of
from holdfast.transport.messages import MESSAGE_HEAD_BYTES, Message, encode_messages


class Outbox:
    """The messages of one turn, and how much the other side has still to take and to answer.

    Both are bounded by `held_bytes_max`. A message is taken while less is held, so that it is never
    more than that and one message; a large message is not passed over for small ones.
    """

    def __init__(self, bounds: ConnectionBounds) -> None:
        self._bounds = bounds
        self._messages: list[Message] = []
        self._waiting_bytes = 0
        self._unanswered_bytes = 0

    def __len__(self) -> int:
        return len(self._messages)

    @property
    def waiting_bytes(self) -> int:
        """What waits to be written."""
        return self._waiting_bytes

    def refusal(self, size: int, unsent: int = 0) -> HoldfastError | None:
        """Why a message of this size is not taken; `unsent` was written and is still here."""
        if size > self._bounds.message_bytes_max:
            return self.too_large(size)
        if self._unanswered_bytes >= self._bounds.held_bytes_max:
            return self._full(self._unanswered_bytes, "answered")
        if self._waiting_bytes + unsent >= self._bounds.held_bytes_max:
            return self.unread(unsent)
        return None

    def unread(self, unsent: int) -> HoldfastError | None:
        """Why a member is not served either: it does not even take what is there for it."""
        held = self._waiting_bytes + unsent
        return self._full(held, "taken") if held >= self._bounds.held_bytes_max else None

    def too_large(self, size: int) -> HoldfastError:
        """Why a message of this size is never taken."""
        return InvalidArgument(
            f"Expected a message of at most {self._bounds.message_bytes_max} bytes"
            f" (MESSAGE_BYTES_MAX), but it has {size}; send it in parts",
            limit="MESSAGE_BYTES_MAX", size_bytes=size,
        )  # fmt: skip

    def _full(self, held: int, what: str) -> HoldfastError:
        return ResourceExhausted(
            f"The member has not {what} {held} bytes; no more than {self._bounds.held_bytes_max}"
            " (MEMBER_BYTES_MAX) are sent ahead",
            limit="MEMBER_BYTES_MAX", retry_after_ms=MEMBER_BUSY_RETRY_MS,
        )  # fmt: skip

    def add(self, message: Message) -> None:
        """Puts a message behind the others."""
        self._messages.append(message)
        self._waiting_bytes += len(message[2]) + MESSAGE_HEAD_BYTES

    def add_call(self, message: Message) -> None:
        """The same for one whose bytes count until it is answered."""
        size = len(message[2])
        self._messages.append(message)
        self._waiting_bytes += size + MESSAGE_HEAD_BYTES
        self._unanswered_bytes += size + CALL_BYTES

    def answered(self, body_bytes: int) -> None:
        """A call of so many bytes has its answer."""
        self._unanswered_bytes -= body_bytes + CALL_BYTES
        assert self._unanswered_bytes >= 0, "an answer counts once"

    def take(self) -> Iterator[Frame]:
        """All that waits, in frames; mostly one."""
        messages, size = self._messages, self._waiting_bytes
        self._messages, self._waiting_bytes = [], 0
        if size <= LARGE_BYTES and size <= self._bounds.frame_bytes:
            return iter((frame_of(encode_messages(messages)),))
        return frames_of(messages, self._bounds.frame_bytes)

    def unsent_calls(self) -> set[int]:
        """The numbers of calls that were certainly not sent."""
        return {number for kind, number, _ in self._messages if kind >= 0 and number}


class UnansweredCalls:
    """The other side's calls that have no answer yet, in bytes: it may not have more than we."""

    def __init__(self, bounds: ConnectionBounds) -> None:
        self._bytes_max = bounds.held_bytes_max + bounds.message_bytes_max + CALL_BYTES
        self._bytes = 0

    def begin(self, body_bytes: int) -> bool:
        """Counts a call; false if the other side does not keep to its bound."""
        self._bytes += body_bytes + CALL_BYTES
        return self._bytes <= self._bytes_max

    def end(self, body_bytes: int) -> None:
        self._bytes -= body_bytes + CALL_BYTES
