"""Publishers and subscribers around one service in memory, for tests in virtual time."""

import asyncio
from typing import Any

from package_kit import Tree, fill
from publishing import Setting

from holdfast.content.messages import (
    ContentCommand,
    Discovery,
    Package,
    PackageAction,
    PackageStatus,
    decode_announcement,
    decode_status,
)
from holdfast.content.package.building import build_package, store_package
from holdfast.content.package.sources import RepositorySource
from holdfast.content.ports import Published
from holdfast.content.repository.memory import MemoryRepository
from holdfast.content.subscriber import (
    Habits,
    Subscriber,
    SubscriberCondition,
    SubscriberExtras,
)
from holdfast.content.topics import ContentTopic

IDLE = SubscriberCondition.IDLE


class PickyRepository(MemoryRepository):
    """A store that refuses some paths, and counts its commits."""

    def __init__(self) -> None:
        super().__init__()
        self.refused: dict[str, Exception] = {}
        self.commits = 0
        self.after_commit = self._count

    def _count(self) -> None:
        self.commits += 1

    def change(self) -> Any:
        changes = super().change()
        put, delete = changes.put, changes.delete

        def picky(path: str, *args: Any) -> None:
            if (error := self.refused.get(path)) is not None:
                raise error
            put(path, *args)

        def picky_delete(path: str) -> None:
            if (error := self.refused.get(path)) is not None:
                raise error
            delete(path)

        changes.put, changes.delete = picky, picky_delete  # type: ignore[method-assign]
        return changes


class Stage(Setting):
    """A node with publishers, and subscribers that run beside it."""

    def __init__(self, **options: Any) -> None:
        super().__init__(asyncio.get_running_loop().clock, **options)  # type: ignore[attr-defined]
        self.published: list[tuple[int, Package]] = []
        self._ids = 0

    # --- publishing ---------------------------------------------------------------------------

    async def add(self, tree: Tree, *, deep: str = "", publisher: str = "site") -> Published:
        """Publishes these nodes; with `deep`, that path and all below it."""
        source = MemoryRepository()
        fill(source, tree)
        paths = [deep] if deep else list(tree)
        built = build_package(
            PackageAction.ADD, paths, [deep] if deep else [], RepositorySource(source)
        )
        await store_package(built, self.service)
        return await self.send(built, publisher)

    async def delete(self, *paths: str, publisher: str = "site") -> Published:
        return await self.send(build_package(PackageAction.DELETE, paths), publisher)

    async def invalidate(self, *paths: str, publisher: str = "site") -> Published:
        return await self.send(build_package(PackageAction.INVALIDATE, paths), publisher)

    async def test(self, publisher: str = "site") -> Published:
        return await self.send(build_package(PackageAction.TEST, []), publisher)

    async def send(self, built: Any, publisher: str) -> Published:
        self._ids += 1
        message = built.message(publisher, f"package-{self._ids}")
        published = await self.service.publish(message)
        self.published.append((published.offset, message))
        return published

    async def command(self, command: ContentCommand) -> None:
        running = await self.service.running()
        await running.commands.append([command])

    # --- subscribing --------------------------------------------------------------------------

    def subscriber(
        self,
        name: str = "edge",
        repository: Any = None,
        *,
        of: tuple[str, ...] = ("site",),
        log: Any = None,
        clock: Any = None,
        store_id: str = "",
        precondition: Any = None,
        only_after: str | None = None,
        seed_from: str | None = None,
        invalidate: Any = None,
        **habits: Any,
    ) -> Subscriber:
        """A subscriber that was started."""
        found = Subscriber(
            log or self.service,
            repository if repository is not None else MemoryRepository(),
            Habits(name, of, **habits),
            SubscriberExtras(precondition, only_after, seed_from, invalidate),
            store_id=store_id or f"store of {name}",
            clock=clock or self.clock,
        )
        found.start()
        return found

    async def statuses(self) -> list[PackageStatus]:
        return [decode_status(each) for each in await self.payloads(ContentTopic.STATUSES)]

    async def discoveries(self, subscriber: str = "edge") -> list[Discovery]:
        """What a subscriber said, in order."""
        await asyncio.sleep(1)  # what is said is written a little later
        said = map(decode_announcement, await self.payloads(ContentTopic.DISCOVERIES))
        return [
            each for each in said if isinstance(each, Discovery) and each.subscriber == subscriber
        ]

    async def payloads(self, topic: ContentTopic) -> list[bytes]:
        found: list[bytes] = []
        bounds = self.journal.bounds(topic.topic, 1)
        if bounds.earliest < bounds.next:
            found = [
                each.payload
                for each in self.journal.read_now(topic.topic, 1, bounds.earliest, 2**30)
            ]
        return found
