"""Whether packages are missing that the log no longer keeps: the node remembers their number."""

from holdfast.content.messages import NOWHERE, RememberedSubscribers, decode_announcement
from holdfast.content.ports import ContentLog
from holdfast.content.topics import PARTITION, ContentTopic
from holdfast.limits import READ_BYTES_MAX


async def counted(log: ContentLog, earliest: int) -> dict[str, int] | None:
    """The number of each publisher's last package before what the log keeps.

    A publisher that is not there has published nothing by then. None: it is not known.
    """
    found: RememberedSubscribers | None = None
    offset = 0
    while True:
        page = await log.read(
            ContentTopic.DISCOVERIES, PARTITION, offset, bytes_max=READ_BYTES_MAX, wait_ms=0
        )
        for entry in page.entries:
            message = decode_announcement(entry.payload)
            if isinstance(message, RememberedSubscribers) and message.packages != NOWHERE:
                found = message
        offset = page.next
        if offset >= page.end:
            break
    if found is None or found.packages < earliest:
        return None
    return {each.publisher: each.number for each in found.publishers}
