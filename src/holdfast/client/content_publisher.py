"""A publisher: sends trees of content to subscribers, and sees how far they are."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from pathlib import Path

from holdfast.client.content_progress import Progress, PublishCounter
from holdfast.client.content_queue import PAGE, ContentQueue
from holdfast.client.portal import Portal
from holdfast.content.messages import PackageAction
from holdfast.content.package.building import BuiltPackage, build_package, store_package
from holdfast.content.package.folder import FolderSource
from holdfast.content.package.sources import ContentSource, RepositorySource
from holdfast.content.ports import ContentLog
from holdfast.content.repository.api import Repository
from holdfast.content.repository.opening import open_repository
from holdfast.gateway.api import Api
from holdfast.gateway.content.shapes import (
    CommandReceipt,
    DistributedPackage,
    EventQuery,
    FarmView,
    PackageReceipt,
    QueuedPackage,
    QueueQuery,
    SubscriberView,
)
from holdfast.version import VERSION

Source = str | Path | Repository | ContentSource
Paths = str | Sequence[str]

_EVENTS_WAIT_MS = 20_000


class ContentPublisher:
    """Publishes content under a name; `app.publisher(name)` gives it in any program."""

    def __init__(
        self,
        portal: Portal,
        api: Api,
        log: ContentLog,
        name: str,
        source: Source | None,
        skip_links: bool = False,
    ) -> None:
        self.name = name
        self._portal = portal
        self._api = api
        self._content = api.content
        self._log = log
        self._repository: Repository | None = None
        self._source = None if source is None else self._source_of(source, skip_links)

    def __repr__(self) -> str:
        return f"ContentPublisher({self.name!r})"

    def __enter__(self) -> "ContentPublisher":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> "ContentPublisher":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close_async()

    def close(self) -> None:
        """Closes the source, if it was opened here."""
        if self._repository is not None:
            self._repository.close()
            self._repository = None

    async def close_async(self) -> None:
        """Like `close`, for an event loop."""
        await asyncio.to_thread(self.close)

    @property
    def skipped(self) -> list[Path]:
        """The symbolic links that were skipped so far."""
        return self._source.skipped if isinstance(self._source, FolderSource) else []

    def _source_of(self, source: Source, skip_links: bool) -> ContentSource:
        if isinstance(source, str | Path):
            if Path(source).is_dir():
                return FolderSource(Path(source), skip_links=skip_links)
            self._repository = open_repository(source, create=False)
            return RepositorySource(self._repository)
        if hasattr(source, "nodes"):
            return source  # pyright: ignore[reportReturnType]
        return RepositorySource(source)  # pyright: ignore[reportArgumentType]

    # --- publishing ---------------------------------------------------------------------------

    def add(
        self,
        paths: Paths = "/",
        *,
        deep: bool = True,
        metadata: Mapping[str, str] | None = None,
        package_id: str | None = None,
        progress: Progress | None = None,
    ) -> PackageReceipt:
        """Publishes paths from the source. The package is durable when it returns.

        With `deep` all below them comes with them, and what is not there any more goes. The same
        `package_id` is published once. `progress` is told how much was read and stored so far.
        """
        told = PublishCounter(progress)
        built = self._build(PackageAction.ADD, paths, deep, told)
        return self._portal.call(self._publish(built, metadata, package_id, told))

    async def add_async(
        self,
        paths: Paths = "/",
        *,
        deep: bool = True,
        metadata: Mapping[str, str] | None = None,
        package_id: str | None = None,
        progress: Progress | None = None,
    ) -> PackageReceipt:
        """Like `add`, for an event loop."""
        told = PublishCounter(progress)
        built = await asyncio.to_thread(self._build, PackageAction.ADD, paths, deep, told)
        return await self._portal.reach(self._publish(built, metadata, package_id, told))

    def delete(
        self,
        paths: Paths,
        *,
        metadata: Mapping[str, str] | None = None,
        package_id: str | None = None,
    ) -> PackageReceipt:
        """Deletes paths, with everything below them, at all subscribers."""
        built = self._build(PackageAction.DELETE, paths)
        return self._portal.call(self._publish(built, metadata, package_id))

    async def delete_async(
        self,
        paths: Paths,
        *,
        metadata: Mapping[str, str] | None = None,
        package_id: str | None = None,
    ) -> PackageReceipt:
        """Like `delete`, for an event loop."""
        built = await asyncio.to_thread(self._build, PackageAction.DELETE, paths)
        return await self._portal.reach(self._publish(built, metadata, package_id))

    def invalidate(
        self,
        paths: Paths,
        *,
        metadata: Mapping[str, str] | None = None,
        package_id: str | None = None,
    ) -> PackageReceipt:
        """Tells subscribers to rebuild what they derived from these paths."""
        built = self._build(PackageAction.INVALIDATE, paths)
        return self._portal.call(self._publish(built, metadata, package_id))

    async def invalidate_async(
        self,
        paths: Paths,
        *,
        metadata: Mapping[str, str] | None = None,
        package_id: str | None = None,
    ) -> PackageReceipt:
        """Like `invalidate`, for an event loop."""
        built = await asyncio.to_thread(self._build, PackageAction.INVALIDATE, paths)
        return await self._portal.reach(self._publish(built, metadata, package_id))

    def test(self) -> PackageReceipt:
        """Publishes a package that changes nothing and is in no queue."""
        return self._portal.call(self._publish(self._build(PackageAction.TEST, ()), None, None))

    async def test_async(self) -> PackageReceipt:
        """Like `test`, for an event loop."""
        built = await asyncio.to_thread(self._build, PackageAction.TEST, ())
        return await self._portal.reach(self._publish(built, None, None))

    def _build(
        self,
        action: PackageAction,
        paths: Paths,
        deep: bool = False,
        told: PublishCounter | None = None,
    ) -> BuiltPackage:
        named = [paths] if isinstance(paths, str) else list(paths)
        watch = None if told is None else told.read
        return build_package(action, named, named if deep else (), self._source, watch=watch)

    async def _publish(
        self,
        built: BuiltPackage,
        metadata: Mapping[str, str] | None,
        package_id: str | None,
        told: PublishCounter | None = None,
    ) -> PackageReceipt:
        with built:
            await store_package(built, self._log if told is None else told.around(self._log))
            package_id = package_id or secrets.token_hex(16)
            message = built.message(
                self.name, package_id, origin=f"holdfast {VERSION}", metadata=metadata or {}
            )
            offset, number, waited_ms = await self._log.publish(message)
        return PackageReceipt(package_id, offset, number, waited_ms)

    # --- queues -------------------------------------------------------------------------------

    def queue(self, subscriber: str) -> ContentQueue:
        """The packages that a subscriber has not imported yet, read when you iterate."""
        return ContentQueue(self._portal, self._api, self.name, subscriber)

    def errors(self, subscriber: str) -> list[QueuedPackage]:
        """The packages that failed at a subscriber."""
        return self._portal.call(self._errors(subscriber))

    async def errors_async(self, subscriber: str) -> list[QueuedPackage]:
        """Like `errors`, for an event loop."""
        return await self._portal.reach(self._errors(subscriber))

    async def _errors(self, subscriber: str) -> list[QueuedPackage]:
        found: list[QueuedPackage] = []
        after: int | None = -1
        while after is not None:
            page = await self._content.errors(self.name, subscriber, QueueQuery(after, PAGE))
            found += page.items
            after = page.after
        return found

    def clear(self, subscriber: str, *, up_to: int) -> CommandReceipt:
        """Makes an editable subscriber skip all packages up to an offset."""
        return self._portal.call(self._content.clear(self.name, subscriber, up_to))

    async def clear_async(self, subscriber: str, *, up_to: int) -> CommandReceipt:
        """Like `clear`, for an event loop."""
        return await self._portal.reach(self._content.clear(self.name, subscriber, up_to))

    def remove(self, subscriber: str, offset: int) -> CommandReceipt:
        """Makes an editable subscriber skip one package, or drop a failed one."""
        return self._portal.call(self._content.remove(self.name, subscriber, offset))

    async def remove_async(self, subscriber: str, offset: int) -> CommandReceipt:
        """Like `remove`, for an event loop."""
        return await self._portal.reach(self._content.remove(self.name, subscriber, offset))

    def retry(self, subscriber: str, offset: int) -> CommandReceipt:
        """Retries a failed package at a subscriber."""
        return self._portal.call(self._content.retry(self.name, subscriber, offset))

    async def retry_async(self, subscriber: str, offset: int) -> CommandReceipt:
        """Like `retry`, for an event loop."""
        return await self._portal.reach(self._content.retry(self.name, subscriber, offset))

    # --- subscribers --------------------------------------------------------------------------

    def subscribers(self) -> list[SubscriberView]:
        """All subscribers by name, with their progress."""
        return self._portal.call(self._content.subscribers(self.name))

    async def subscribers_async(self) -> list[SubscriberView]:
        """Like `subscribers`, for an event loop."""
        return await self._portal.reach(self._content.subscribers(self.name))

    def farm(self) -> FarmView:
        """All subscribers in one view."""
        return self._portal.call(self._content.farm(self.name))

    async def farm_async(self) -> FarmView:
        """Like `farm`, for an event loop."""
        return await self._portal.reach(self._content.farm(self.name))

    def events(self, after: int = -1, *, wait: bool = False) -> Iterator[DistributedPackage]:
        """Packages that all subscribers have, after an event; `wait` follows new ones."""
        following: int | None = after
        while following is not None:
            items, following = self._portal.call(self._events(following, wait))
            yield from items

    async def events_async(
        self, after: int = -1, *, wait: bool = False
    ) -> AsyncIterator[DistributedPackage]:
        """Like `events`, for an event loop: `async for`."""
        following: int | None = after
        while following is not None:
            items, following = await self._portal.reach(self._events(following, wait))
            for each in items:
                yield each

    async def _events(self, after: int, wait: bool) -> tuple[list[DistributedPackage], int | None]:
        """The next packages, and after which one to go on; None at the end."""
        query = EventQuery(after, PAGE, _EVENTS_WAIT_MS if wait else 0)
        page = await self._content.events(self.name, query)
        is_end = not page.items and page.after == after and not wait
        return page.items, None if is_end else page.after
