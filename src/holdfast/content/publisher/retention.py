"""What of the topics somebody needs, so that retention does not drop it."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from holdfast.content.topics import PARTITION, ContentTopic
from holdfast.journal import Journal

if TYPE_CHECKING:  # a node without content does not load it
    from holdfast.content.publisher.state import ContentState


class ContentNeeds(NamedTuple):
    """By topic, the first offset that is needed."""

    recovery: dict[str, int]  # without it a start would not know what was known
    subscribers: dict[str, int]  # for those that are behind, as far as there is room


EVERYTHING = ContentNeeds({each.topic: 0 for each in ContentTopic}, {})
"""What is needed while that is not known."""


def first_needed(behind: Iterable[int], next_offset: int, too_old: int) -> int:
    """The first package that is kept, whatever its age.

    `behind` are the offsets that subscribers with a backlog are done with. Nobody holds what
    stands before `too_old`: one that is stuck must not fill the disk.

    >>> first_needed([70, 20], next_offset=100, too_old=0), first_needed([], 100, too_old=0)
    (21, 100)
    >>> first_needed([20], next_offset=100, too_old=60)
    60
    """
    slowest = min((offset + 1 for offset in behind), default=next_offset)
    return min(max(slowest, too_old), next_offset)


async def needs_of(
    state: "ContentState", journal: Journal, recovery: dict[str, int], too_old_ms: int
) -> ContentNeeds:
    """What is needed now; nobody holds packages that were written before a time."""
    topic = ContentTopic.PACKAGES.topic
    next_offset = journal.bounds(topic, PARTITION).next
    behind = [
        progress.offset
        for each in state.topology.known.values()
        for name, progress in each.of.items()
        if name in state.publishers and progress.number < state.publishers[name].number
    ]
    first = first_needed(
        behind, next_offset, journal.offset_at(topic, PARTITION, max(too_old_ms, 0))
    )
    needed = {topic: first}
    earliest = journal.bounds(topic, PARTITION).earliest
    found = await journal.read(topic, PARTITION, max(first, earliest), 1)
    for other in (ContentTopic.STATUSES, ContentTopic.COMMANDS):
        # What is said of a package, or asked of a subscriber, is kept as long as the package.
        needed[other.topic] = (
            journal.offset_at(other.topic, PARTITION, found[0].timestamp_ms)
            if found
            else journal.bounds(other.topic, PARTITION).next
        )
    return ContentNeeds(recovery, needed)
