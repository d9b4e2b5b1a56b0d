"""The cuts that a member keeps, in a topic of its own journal."""

import asyncio
from collections.abc import Sequence

from holdfast.errors import HoldfastError
from holdfast.journal.api import Journal, Retention
from holdfast.limits import CUTS_KEEP_SECONDS, CUTS_KEPT_BYTES
from holdfast.logs import log
from holdfast.sequence.keeping import CutKeeper

CUTS_TOPIC = "cuts"
_PARTITION = 1


class JournalCutLog:
    """Keeps the port `CutLog` on the member's own journal, one entry a cut."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        if CUTS_TOPIC not in journal.topics():
            journal.create_topic(CUTS_TOPIC, 1, Retention(bytes=CUTS_KEPT_BYTES))

    async def append(self, cuts: Sequence[bytes]) -> int:
        return await self._journal.append(CUTS_TOPIC, _PARTITION, cuts)

    async def read(self, offset: int, count: int) -> Sequence[bytes]:
        found: list[bytes] = []
        while len(found) < count:
            entries = await self._journal.read(CUTS_TOPIC, _PARTITION, offset + len(found))
            if not entries:
                break
            found += (entry.payload for entry in entries)
        return found[:count]

    @property
    def earliest(self) -> int:
        return self._journal.bounds(CUTS_TOPIC, _PARTITION).earliest

    @property
    def next(self) -> int:
        return self._journal.bounds(CUTS_TOPIC, _PARTITION).next


async def keep_cuts(keeper: CutKeeper) -> None:
    """Writes cuts that wait, once a second, until it is cancelled; then the last of them."""
    try:
        while True:
            await asyncio.sleep(CUTS_KEEP_SECONDS)
            # What is being written is written whole: the last flush waits for it.
            await asyncio.shield(_flush(keeper))
    finally:
        await _flush(keeper)


async def _flush(keeper: CutKeeper) -> None:
    try:
        await keeper.flush()
    except (HoldfastError, OSError) as error:
        # They wait, and are written when the disk has room again.
        log.warning("cuts could not be kept", last=keeper.last, error=str(error))
