"""What may hold a package back: a function of the user, or another subscriber that goes first."""

from collections.abc import Sequence

from holdfast.content.messages import (
    NOWHERE,
    Discovery,
    ImportOutcome,
    Package,
    RememberedSubscribers,
    SubscriberProgress,
    decode_announcement,
    decode_status,
)
from holdfast.content.ports import ContentLog
from holdfast.content.subscriber.decisions import Admission
from holdfast.content.topics import ContentTopic
from holdfast.limits import READ_BYTES_MAX


class GoldenSubscriber:
    """What one subscriber has imported, for those that are to import nothing else.

    What it announces says how far it is; what it left out on the way it has reported before.
    """

    def __init__(self, log: ContentLog, name: str) -> None:
        self.name = name
        self._log = log
        self._offsets: dict[str, int] = {}  # by publisher, how far it is
        self._left_out: set[tuple[str, int]] = set()
        self._next = {ContentTopic.DISCOVERIES: 0, ContentTopic.STATUSES: 0}

    def admit(self, package: Package, offset: int) -> Admission:
        if offset > self._offsets.get(package.publisher, NOWHERE):
            return Admission.WAIT
        left_out = (package.publisher, offset) in self._left_out
        return Admission.SKIP if left_out else Admission.ACCEPT

    async def refresh(self) -> None:
        """Reads on. The statuses come second: all of those that came before what is announced."""
        announced = await self._read(ContentTopic.DISCOVERIES)
        offsets: dict[str, int] = {}
        for payload in announced:
            for discovery in _discoveries(decode_announcement(payload)):
                if discovery.subscriber == self.name:
                    offsets = _offsets(discovery.progress)
        for payload in await self._read(ContentTopic.STATUSES):
            status = decode_status(payload)
            if status.subscriber == self.name and status.outcome is not ImportOutcome.IMPORTED:
                self._left_out.add((status.publisher, status.offset))
        for publisher, offset in offsets.items():
            self._offsets[publisher] = max(offset, self._offsets.get(publisher, NOWHERE))

    async def _read(self, topic: ContentTopic) -> list[bytes]:
        partition, found = topic.partition_of(self.name), []
        while True:
            page = await self._log.read(
                topic, partition, self._next[topic], bytes_max=READ_BYTES_MAX, wait_ms=0
            )
            found += [entry.payload for entry in page.entries]
            self._next[topic] = page.next
            if page.next >= page.end:
                return found


def _discoveries(announcement: Discovery | RememberedSubscribers) -> Sequence[Discovery]:
    if isinstance(announcement, Discovery):
        return [announcement]
    return [each.discovery for each in announcement.heard]


def _offsets(progress: Sequence[SubscriberProgress]) -> dict[str, int]:
    return {each.publisher: each.offset for each in progress}
