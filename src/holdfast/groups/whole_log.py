"""Reading all that a sync log keeps, while its beginning may be discarded."""

from typing import NamedTuple

from holdfast.errors import NotFound
from holdfast.groups.api import Entry, SyncLog


class WholeLog(NamedTuple):
    """What a sync log kept when it was read."""

    entries: list[Entry]
    next: int  # what is before it was read
    is_complete: bool  # nothing was discarded before the first entry


async def read_whole(sync_log: SyncLog) -> WholeLog:
    """All messages that are kept. Begins again where the first of them are gone by now."""
    while True:
        earliest = following = sync_log.bounds().earliest
        entries: list[Entry] = []
        try:
            while following < sync_log.bounds().next:
                some = await sync_log.read(following)
                if not some:
                    break
                entries += some
                following = some[-1].offset + 1
        except NotFound:
            if sync_log.bounds().earliest <= earliest:
                raise
            continue
        return WholeLog(entries, following, earliest == 0)
