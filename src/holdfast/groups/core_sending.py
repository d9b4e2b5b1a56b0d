"""The messages of a member that are on their way: sent, and not read back."""

from typing import NamedTuple

from holdfast.groups.messages import Ask
from holdfast.limits import GROUP_ANSWER_MS_MAX, GROUP_RESEND_MS


class SentMessage(NamedTuple):
    """What depends on a message that was sent."""

    kind: type
    at_ms: int
    tokens: frozenset[str] = frozenset()
    asks: tuple[Ask, ...] = ()


class SentMessages:
    """Counts a member's messages, and knows which of them it has not read back."""

    def __init__(self) -> None:
        self._counter = 0
        self._waiting: dict[int, SentMessage] = {}  # by counter, in the order of sending
        self._patience_ms = GROUP_RESEND_MS

    def send(self, sent: SentMessage) -> int:
        """Notes a message; its counter."""
        self._counter += 1
        self._waiting[self._counter] = sent
        return self._counter

    def is_waiting(self, kind: type) -> bool:
        return any(sent.kind is kind for sent in self._waiting.values())

    @property
    def tokens(self) -> set[str]:
        """The partitions of which something is on its way."""
        return {token for sent in self._waiting.values() for token in sent.tokens}

    def read(self, counter: int) -> list[SentMessage]:
        """A message was read back and counts; those before it that were not read back."""
        self._patience_ms = GROUP_RESEND_MS
        self._waiting.pop(counter, None)
        return [self._waiting.pop(each) for each in list(self._waiting) if each < counter]

    def refused(self, counter: int) -> SentMessage | None:
        """A message was read back and does not count."""
        self._patience_ms = GROUP_RESEND_MS
        return self._waiting.pop(counter, None)

    def give_up(self) -> list[SentMessage]:
        """Nothing that was sent is relied upon any more; what it was."""
        given_up = list(self._waiting.values())
        self._waiting.clear()
        return given_up

    def is_lost(self, now_ms: int) -> bool:
        """Whether the oldest was not heard of for so long that all are taken for lost."""
        oldest = next(iter(self._waiting.values()), None)
        if oldest is None or now_ms - oldest.at_ms < self._patience_ms:
            return False
        self._patience_ms = min(2 * self._patience_ms, GROUP_ANSWER_MS_MAX)
        return True
