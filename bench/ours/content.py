"""A publisher and many subscribers in one process, over a log on disk and stores in memory."""

import asyncio
import gc
import hashlib
import secrets
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from holdfast.blobs.memory import MemoryBlobs
from holdfast.clock import SystemClock
from holdfast.content.messages import Discovery, Package, PackageAction, SubscriberProgress
from holdfast.content.package.building import build_package
from holdfast.content.package.sources import RepositorySource
from holdfast.content.publisher.service import ContentService
from holdfast.content.repository.api import DATA, Binary, Properties
from holdfast.content.repository.memory import MemoryRepository
from holdfast.content.subscriber.decisions import Admission, Habits
from holdfast.content.subscriber.subscriber import Subscriber, SubscriberExtras
from holdfast.journal.local import LocalJournal

PUBLISHER = "site"
UNDER_WAY = 64  # packages that are published side by side: they share a sync
PAGES = 16  # different ones
LOOK_SECONDS = 0.02
GC_THRESHOLD = (50_000, 20, 50)


class _Dropped:
    """Changes of which only the notes are kept."""

    def __init__(self, notes: dict[str, bytes]) -> None:
        self._kept = notes
        self._notes: dict[str, bytes] = {}

    def put(self, path: str, properties: Properties, offset: int = 0) -> None:
        pass

    def store(self, binary: Binary, pieces: Iterable[bytes]) -> None:
        pass

    def delete(self, path: str) -> None:
        pass

    def note(self, name: str, value: bytes | None) -> None:
        self._notes[name] = value or b""

    def commit(self) -> None:
        self._kept.update(self._notes)

    def __enter__(self) -> "_Dropped":
        return self

    def __exit__(self, *_: object) -> None:
        pass


class DroppingRepository(MemoryRepository):
    """Keeps offsets and no content, as readers do that acknowledge a message and drop it."""

    def __init__(self) -> None:
        super().__init__()
        self._offsets: dict[str, bytes] = {}

    def change(self) -> Any:
        return _Dropped(self._offsets)

    def get_note(self, name: str) -> bytes | None:
        return self._offsets.get(name)


class Farm:
    """A log with a publisher and its subscribers."""

    def __init__(self, journal: LocalJournal, package_bytes: int) -> None:
        self._journal = journal
        self.service = ContentService(journal, MemoryBlobs, SystemClock())
        self._packages = _packages(package_bytes)
        self.subscribers: dict[str, Subscriber] = {}
        self.published: list[float] = []  # when each package was
        self.late: list[float] = []  # how long healthy subscribers had missed a package, sampled

    @classmethod
    async def open(cls, folder: Path, package_bytes: int) -> "Farm":
        gc.set_threshold(*GC_THRESHOLD)  # as in a node
        farm = cls(LocalJournal.open(folder), package_bytes)
        await farm.service.start()
        return farm

    async def close(self) -> None:
        await asyncio.gather(*(each.close() for each in self.subscribers.values()))
        await self.service.stop()
        await self._journal.close()

    # --- subscribers --------------------------------------------------------------------------

    def subscribe(self, name: str, *, stalled: bool = False, keeps: bool = True) -> None:
        """One that runs; a stalled one takes nothing in, ever."""
        store = MemoryRepository() if keeps else DroppingRepository()
        extras = SubscriberExtras(precondition=_wait) if stalled else SubscriberExtras()
        subscriber = Subscriber(
            self.service, store, Habits(name, (PUBLISHER,)), extras,
            store_id=secrets.token_hex(8),
        )  # fmt: skip
        subscriber.start()
        self.subscribers[name] = subscriber

    async def announce(self, count: int, number: int) -> None:
        """Subscribers on other machines say that they have so many packages."""
        progress = [SubscriberProgress(PUBLISHER, number - 1, number)]
        for each in range(count):
            await self.service.announce(Discovery(f"far-{each}", "store", False, -1, progress))

    # --- publishing ---------------------------------------------------------------------------

    async def publish(self, count: int) -> None:
        """Publishes so many packages."""
        for first in range(0, count, UNDER_WAY):
            await asyncio.gather(*(self._publish(n) for n in range(first, count)[:UNDER_WAY]))

    async def _publish(self, number: int) -> None:
        package = self._packages[number % PAGES]
        await self.service.publish(_named(package, secrets.token_hex(8)))
        self.published.append(time.monotonic())

    async def delivered(self, names: list[str]) -> None:
        """Waits until these have everything."""
        last, waiting = len(self.published), list(names)
        while waiting:
            await asyncio.sleep(LOOK_SECONDS / 10)
            waiting = [name for name in waiting if self._number(name) < last]

    def _number(self, name: str) -> int:
        return self.subscribers[name].progress[0].number

    async def watch(self, names: list[str]) -> None:
        """Notes again and again how long the oldest package is missing at each of these."""
        while True:
            now, end = time.monotonic(), len(self.published)
            for name in names:
                number = self._number(name)
                self.late.append(now - self.published[number] if number < end else 0.0)
            await asyncio.sleep(LOOK_SECONDS)


def _wait(*_: object) -> Admission:
    return Admission.WAIT


def _packages(size_bytes: int) -> list[Package]:
    """A few pages, each as a package."""
    repository, packages = MemoryRepository(), list[Package]()
    for number in range(PAGES):
        content = secrets.token_bytes(size_bytes)
        path, binary = f"/pages/page-{number}", _binary(content)
        with repository.change() as change:
            change.store(binary, [content])
            change.put(path, {DATA: binary, "title": f"Page {number}"})
            change.commit()
        with build_package(PackageAction.ADD, [path], [], RepositorySource(repository)) as built:
            packages.append(built.message(PUBLISHER, ""))
    return packages


def _binary(content: bytes) -> Binary:
    return Binary(hashlib.sha256(content).digest(), len(content))


def _named(package: Package, package_id: str) -> Package:
    return msgspec.structs.replace(package, package_id=package_id)
