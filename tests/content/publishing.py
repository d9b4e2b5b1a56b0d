"""Publishers and subscribers for tests of the node's side: messages, and a service around them."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from typing import Any

from holdfast.blobs.memory import MemoryBlobs
from holdfast.clock import Clock
from holdfast.content.messages import (
    NOWHERE,
    Discovery,
    ImportOutcome,
    Package,
    PackageAction,
    PackageStatus,
    SubscriberProgress,
)
from holdfast.content.publisher import ContentService
from holdfast.journal import Append, Outcome
from holdfast.journal.memory import MemoryJournal


def package(
    number: int,
    publisher: str = "site",
    action: PackageAction = PackageAction.ADD,
    size_bytes: int = 100,
) -> Package:
    """A package that has not been published; its id tells it apart."""
    return Package(
        publisher, f"{publisher}-{number}", action, [f"/pages/{number}"], [], 0, size_bytes,
        b"", bytes(size_bytes), None,
    )  # fmt: skip


def discovery(
    subscriber: str,
    offset: int = NOWHERE,
    number: int = 0,
    *,
    publisher: str = "site",
    retries: int = 0,
    reason: str = "",
    editable: bool = False,
    store: str = "",
    **more: Any,
) -> Discovery:
    """A subscriber that says how far it is."""
    progress = SubscriberProgress(publisher, offset, number, retries, reason)
    return Discovery(subscriber, store or f"store-{subscriber}", editable, 3, [progress], **more)


def status(
    subscriber: str,
    offset: int,
    outcome: ImportOutcome = ImportOutcome.REMOVED_FAILED,
    at_ms: int = 1,
    reason: str = "no room",
) -> PackageStatus:
    """What became of a package."""
    return PackageStatus(subscriber, "site", offset, outcome, offset + 1, "", reason, 3, at_ms)


class CountingJournal(MemoryJournal):
    """Counts what is read of it, and can be told to fail."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.reads: Counter[str] = Counter()
        self.failure: Exception | None = None
        self.is_kept = False  # what fails is on the log all the same

    async def read(self, topic: str, partition: int, offset: int, bytes_max: int = 2**20):
        self.reads[topic] += 1
        await asyncio.sleep(0)  # as with a disk, others have their turn
        return await super().read(topic, partition, offset, bytes_max)

    async def append_many(self, appends: Sequence[Append]) -> list[Outcome]:
        if self.failure is not None:
            if self.is_kept:
                await super().append_many(appends)
            raise self.failure
        outcomes = await super().append_many(appends)
        for _ in range(5):  # nor is a disk that quick
            await asyncio.sleep(0)
        return outcomes


class Setting:
    """A service over a journal in memory that outlives it."""

    def __init__(self, clock: Clock, **options: Any) -> None:
        self.clock = clock
        self.journal = CountingJournal(clock=clock, **options)
        self.blobs = MemoryBlobs()
        self.service = self._new()

    def _new(self) -> ContentService:
        return ContentService(self.journal, lambda: self.blobs, self.clock)

    async def restart(self, *, killed: bool = False) -> ContentService:
        """Another service on what the log has."""
        if killed:
            self.service.abandon()
        else:
            await self.service.stop()
        self.service = self._new()
        await self.service.start()
        await self.service.running()
        return self.service

    async def retain(self) -> None:
        """Enforces retention as a node does, with room for all that is needed."""
        recovery, subscribers = await self.service.needs()
        needed = {
            topic: {1: min(each[topic] for each in (recovery, subscribers) if topic in each)}
            for topic in recovery.keys() | subscribers.keys()
        }
        self.journal.enforce_retention(needed=needed)

    async def publish(self, count: int, publisher: str = "site", first: int = 1) -> list[int]:
        """Publishes packages; their offsets."""
        published = await asyncio.gather(
            *(self.service.publish(package(first + each, publisher)) for each in range(count))
        )
        return [each.offset for each in published]


def setting(**options: Any) -> Setting:
    """A service on the clock of the running virtual loop."""
    return Setting(asyncio.get_running_loop().clock, **options)  # type: ignore[attr-defined]
