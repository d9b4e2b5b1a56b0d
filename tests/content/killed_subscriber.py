"""Kills processes that are subscribers, and compares what each store has with the log.

One process does it all: what it starts are forks of itself, which have the log as it is then.
python killed_subscriber.py directory|sqlite FOLDER KILLS SEED SECONDS_MAX
"""

import asyncio
import os
import signal
import sys
import time
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Any

import msgspec
from model_store import ModelStore, with_properties
from package_kit import fill

from holdfast.blobs.memory import MemoryBlobs
from holdfast.clock import SystemClock
from holdfast.content.messages import Package, PackageAction, SubscriberProgress
from holdfast.content.package.building import build_package, store_package
from holdfast.content.package.sources import RepositorySource
from holdfast.content.publisher import ContentService
from holdfast.content.repository.api import Repository
from holdfast.content.repository.directory import DirectoryRepository
from holdfast.content.repository.memory import MemoryRepository
from holdfast.content.repository.sqlite import SqliteRepository
from holdfast.content.subscriber import Habits, Subscriber, SubscriberCondition
from holdfast.content.subscriber.ledger import FAILED_NOTE, PROGRESS_NOTE, GivenUpPackage
from holdfast.journal.memory import MemoryJournal

GRACE_MS = 2


def opened(kind: str, folder: Path) -> Repository:
    if kind == "sqlite":
        return SqliteRepository(folder / "content.sqlite")
    return DirectoryRepository(folder / "www", grace_ms=GRACE_MS)


class PublishedLog:
    """The log of this process, and all that was published."""

    def __init__(self, random: Random) -> None:
        self.journal = MemoryJournal()
        self.blobs = MemoryBlobs()
        self.packages: dict[int, Package] = {}
        self.damaged: set[int] = set()  # offsets of packages that nobody can import
        self._random = random

    def service(self) -> ContentService:
        return ContentService(self.journal, lambda: self.blobs, SystemClock())

    async def publish(self, count: int) -> None:
        service = self.service()
        for _ in range(count):
            number, is_damaged = len(self.packages) + 1, self._random.random() < 0.05
            built = self._built(number)
            await store_package(built, service)
            message = built.message("site", f"package-{number}")
            if is_damaged and message.content is not None:
                message = msgspec.structs.replace(message, sha256=sha256(b"other").digest())
            published = await service.publish(message)
            self.packages[published.offset] = message
            if message.content is not None and is_damaged:
                self.damaged.add(published.offset)
        await service.stop()

    def _built(self, number: int) -> Any:
        random = self._random
        top = f"/{random.choice('abc')}"
        if random.random() < 0.15:
            return build_package(PackageAction.DELETE, [f"{top}/{random.randrange(4)}"])
        source = MemoryRepository()
        names = random.sample(range(4), 2)
        body = b"%d " % number * random.choice([10, 1_000, 30_000])
        fill(source, {f"{top}/{each}/file": {"data": body, "n": number} for each in names})
        deep = random.random() < 0.3
        paths = [top] if deep else [f"{top}/{each}/file" for each in names]
        return build_package(
            PackageAction.ADD, paths, paths if deep else [], RepositorySource(source)
        )


async def subscribe(kind: str, folder: Path, log: PublishedLog, told: int) -> None:
    """Takes in packages for as long as it lives."""
    repository = opened(kind, folder)
    subscriber = Subscriber(
        log.service(), repository, Habits("edge", ("site",), retries_max=0), store_id="edge"
    )
    subscriber.start()
    while len(subscriber.tasks) == 1:  # noqa: ASYNC110
        await asyncio.sleep(0)
    os.write(told, b"!")
    await subscriber.wait_until(SubscriberCondition.IDLE)
    os.write(told, b"idle")
    await asyncio.sleep(60)


def run(kind: str, folder: Path, log: PublishedLog, seconds: float) -> bool:
    """One life; whether it ended in the middle of its work."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        try:
            asyncio.run(subscribe(kind, folder, log, writing))
        finally:
            os._exit(1)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        assert pipe.read(1) == b"!", "it ended before it began"
        time.sleep(seconds)
        os.kill(child, signal.SIGKILL)
        was_idle = pipe.read() == b"idle"
    assert os.waitpid(child, 0)[1] == signal.SIGKILL, "it ended by itself"
    return not was_idle


def check(kind: str, folder: Path, log: PublishedLog, model: ModelStore) -> int:
    """The store is exactly a prefix of the log, and says so; how many packages that is."""
    repository = opened(kind, folder)
    try:
        note = repository.get_note(PROGRESS_NOTE)
        found = msgspec.msgpack.decode(note, type=list[SubscriberProgress]) if note else []
        offset, number = (found[0].offset, found[0].number) if found else (-1, 0)
        assert number == offset + 1
        given_up = repository.get_note(FAILED_NOTE)
        failed = msgspec.msgpack.decode(given_up, type=list[GivenUpPackage]) if given_up else []
        assert {each.offset for each in failed} == {at for at in log.damaged if at <= offset}
        expected = {
            at: each for at, each in log.packages.items() if at <= offset and at not in log.damaged
        }
        assert with_properties(repository) == model.replay(expected), offset
        if kind == "directory":
            check_files(folder / "www", with_properties(repository))
        return number
    finally:
        repository.close()


def check_files(top: Path, nodes: dict[str, Any]) -> None:
    """What users see is the same."""
    files = [each for each in top.resolve().rglob("*") if each.is_file()]
    seen = {f"/{each.relative_to(top.resolve())}": each.read_bytes() for each in files}
    assert seen == {path: node["data"] for path, node in nodes.items() if "data" in node}


def main(kind: str, where: str, kills: str, seed: str, seconds_max: str) -> None:
    folder, random = Path(where), Random(seed)
    log = PublishedLog(random)
    model, inside, number, seconds = ModelStore(log.blobs), 0, 0, float(seconds_max)
    for _ in range(int(kills)):
        asyncio.run(log.publish(random.randrange(5, 40)))
        inside += run(kind, folder, log, random.uniform(0, seconds))
        now = check(kind, folder, log, model)
        assert now >= number, "it went back"
        if now == number:  # a busy machine needs more time for the same
            seconds = min(2 * seconds, 1.0)
        number = now
    print(f"{kills} kills, {inside} at work, {number} of {len(log.packages)} packages")


if __name__ == "__main__":
    main(*sys.argv[1:])
