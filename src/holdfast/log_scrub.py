"""Reads the files of a log at rest, and knows which of them are damaged."""

from collections.abc import AsyncGenerator, Callable, Iterator
from pathlib import Path

from holdfast.journal import DiskJournal
from holdfast.journal.local import Damage
from holdfast.journal.local import scrub as scrub_journal
from holdfast.metrics import StorageMetrics

Slowly = Callable[[Iterator[Damage | None]], AsyncGenerator[Damage | None, None]]
"""Makes pieces one after the other, with pauses in between."""


class LogScrub:
    """Looks after the files of a journal; without a journal on this machine there are none."""

    def __init__(self, journal: DiskJournal | None, metrics: StorageMetrics) -> None:
        self._journal = journal
        self._metrics = metrics
        self._damage: dict[str, str] = {}  # files that are damaged, and how

    def damage(self) -> list[str]:
        """What is known to be damaged, and is still there."""
        self._damage = {path: text for path, text in self._damage.items() if Path(path).exists()}
        self._metrics.damaged_files = len(self._damage)
        return list(self._damage.values())

    async def run(self, slowly: Slowly, note: Callable[[str, str], None]) -> bool:
        """Reads the log; whether something of it is damaged."""
        if self._journal is None:
            return False
        found: dict[str, str] = {}
        async for damage in slowly(scrub_journal(self._journal.folder)):
            if damage is not None:
                found[damage.file] = f"{damage.file} at byte {damage.position}: {damage.reason}"
                if damage.file not in self._damage:
                    note("log", found[damage.file])
                self._journal.heal(damage.file)
        self._damage = found
        self._metrics.damaged_files = len(found)
        return bool(found)
