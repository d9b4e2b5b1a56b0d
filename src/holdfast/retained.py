"""What of the log is kept, on this machine alone: for recovery, for readers, for other members."""

from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import Any

from holdfast.config import Config
from holdfast.content.publisher.retention import ContentNeeds
from holdfast.engine.kernel.cut import cut_before
from holdfast.engine.kernel.recovery import TOPIC
from holdfast.journal import Journal
from holdfast.limits import ENDED_LOG_BYTES_MAX, ENDED_RECORDS
from holdfast.state.copies import Positions
from holdfast.state.snapshots import Snapshots
from holdfast.uploads import Uploads


class Retained:
    """Cuts the log behind the snapshots and the readers that still need it."""

    def __init__(
        self,
        journal: Journal,
        config: Config,
        snapshots: Snapshots,
        uploads: Uploads,
        readers: Callable[[str], list[Positions]],
        content_needs: Callable[[], Coroutine[Any, Any, ContentNeeds]],
    ) -> None:
        self._journal = journal
        self._config = config
        self._snapshots = snapshots
        self._uploads = uploads
        self._readers = readers
        self._content_needs = content_needs
        # Members that are sent a partition read its log from an offset on: by a token, both.
        self.held: dict[object, tuple[int, int]] = {}

    def cut(self, here: Iterable[int], *, for_ended: bool = True) -> Mapping[int, int]:
        """Gives up the records that nobody needs, of partitions that are here.

        Those that tell what ended recently are kept `for_ended`, as far as the log is small.
        """
        if self._uploads.is_shared:  # others begin with what is in the blob store, never with ours
            kept, here = self._uploads.kept_from(), self._uploads.owned
        else:
            kept = self._snapshots.kept_from()
        kept = {each: kept[each] for each in here if each in kept}
        for partition, offset in self.held.values():
            if partition in kept:
                kept[partition] = min(kept[partition], offset)
        readers = [*self._readers(TOPIC), *self._uploads.needed_from()]
        bytes_used, bytes_max = self._journal.bytes_used(TOPIC), self._config.journal_bytes_max
        if for_ended and bytes_used <= ENDED_LOG_BYTES_MAX:
            readers.append(self._told_of_ended(kept))
        found = cut_before(kept, readers, bytes_used, bytes_max)
        for partition, offset in found.items():
            self._journal.discard(TOPIC, partition, offset)
        return found

    def _told_of_ended(self, partitions: Iterable[int]) -> Positions:
        """From where on the log is read for what ended recently: so many records before its end."""
        share = -(-self._config.ended_kept_max // self._journal.topics()[TOPIC])
        records = ENDED_RECORDS * share
        ends = {each: self._journal.bounds(TOPIC, each).next for each in partitions}
        return {each: max(end - records, 0) for each, end in ends.items()}

    async def enforce(self) -> None:
        """Drops what the retention of topics no longer keeps and nobody needs."""
        content = await self._content_needs()
        needed = {
            topic: self._needed(topic, range(1, count + 1), content)
            for topic, count in self._journal.topics().items()
        }
        self._journal.enforce_retention(needed=needed)

    def _needed(
        self, topic: str, partitions: Iterable[int], content: ContentNeeds
    ) -> dict[int, int]:
        """The first offset of each partition that recovery or a reader needs.

        Recovery needs what the kept snapshots do not stand for. Of other topics only those of
        content are recovered, and read by subscribers.
        """
        if topic == TOPIC:
            uploads = self._uploads
            kept = uploads.kept_from() if uploads.is_shared else self._snapshots.kept_from()
            readers = [*uploads.needed_from()]
            recovery = {each: kept.get(each, 0) for each in partitions}
        else:
            recovery, readers = {e: self._journal.bounds(topic, e).next for e in partitions}, []
            if topic in content.recovery:
                recovery[1] = content.recovery[topic]
            if topic in content.subscribers:
                readers = [recovery | {1: content.subscribers[topic]}]
        return cut_before(
            recovery, [*readers, *self._readers(topic)],
            self._journal.bytes_used(topic), self._config.journal_bytes_max,
        )  # fmt: skip
