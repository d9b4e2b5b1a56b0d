"""A publisher: sends trees of content to subscribers, and sees how far they are."""

import asyncio
import secrets
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from holdfast.client.content_progress import Progress, PublishCounter
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
    QueuePage,
    QueueQuery,
    SubscriberView,
)
from holdfast.version import VERSION

Source = str | Path | Repository | ContentSource
Paths = str | Sequence[str]

_PAGE = 1_000
_EVENTS_WAIT_MS = 20_000


class ContentPublisher:
    """Publishes content under a name. It can be had from anywhere: `app.publisher(name)`."""

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

    def close(self) -> None:
        """Closes the source, if it was opened here."""
        if self._repository is not None:
            self._repository.close()
            self._repository = None

    @property
    def skipped(self) -> list[Path]:
        """The links that were left out so far."""
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
        """Publishes paths as they are in the source; durable when it returns.

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
        """Deletes paths, with all below them, at all subscribers."""
        built = self._build(PackageAction.DELETE, paths)
        return self._portal.call(self._publish(built, metadata, package_id))

    def invalidate(
        self,
        paths: Paths,
        *,
        metadata: Mapping[str, str] | None = None,
        package_id: str | None = None,
    ) -> PackageReceipt:
        """Tells subscribers that what they made of these paths is to be made anew."""
        built = self._build(PackageAction.INVALIDATE, paths)
        return self._portal.call(self._publish(built, metadata, package_id))

    def test(self) -> PackageReceipt:
        """Publishes a package that changes nothing and is in no queue."""
        return self._portal.call(self._publish(self._build(PackageAction.TEST, ()), None, None))

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

    def queue(self, subscriber: str) -> "ContentQueue":
        """What a subscriber has still to take in, as it is when it is looked at."""
        return ContentQueue(self._portal, self._api, self.name, subscriber)

    def errors(self, subscriber: str) -> list[QueuedPackage]:
        """The packages that a subscriber gave up on."""
        found: list[QueuedPackage] = []
        after: int | None = -1
        while after is not None:
            query = QueueQuery(after, _PAGE)
            page = self._portal.call(self._content.errors(self.name, subscriber, query))
            found += page.items
            after = page.after
        return found

    def clear(self, subscriber: str, *, up_to: int) -> CommandReceipt:
        """Lets an editable subscriber skip all packages up to an offset."""
        return self._portal.call(self._content.clear(self.name, subscriber, up_to))

    def remove(self, subscriber: str, offset: int) -> CommandReceipt:
        """Lets an editable subscriber skip one package, or drops one that failed."""
        return self._portal.call(self._content.remove(self.name, subscriber, offset))

    def retry(self, subscriber: str, offset: int) -> CommandReceipt:
        """Lets a subscriber import a package that it gave up on."""
        return self._portal.call(self._content.retry(self.name, subscriber, offset))

    # --- subscribers --------------------------------------------------------------------------

    def subscribers(self) -> list[SubscriberView]:
        """All subscribers, by name, and how far they are."""
        return self._portal.call(self._content.subscribers(self.name))

    def farm(self) -> FarmView:
        """All subscribers in one view."""
        return self._portal.call(self._content.farm(self.name))

    def events(self, after: int = -1, *, wait: bool = False) -> Iterator[DistributedPackage]:
        """The packages that every subscriber has, behind an event; with `wait` it goes on."""
        while True:
            wait_ms = _EVENTS_WAIT_MS if wait else 0
            query = EventQuery(after, _PAGE, wait_ms)
            page = self._portal.call(self._content.events(self.name, query))
            yield from page.items
            if not page.items and page.after == after and not wait:
                return
            after = page.after


class ContentQueue:
    """What a subscriber has still to take in: iterated page by page, never held as a whole."""

    def __init__(self, portal: Portal, api: Api, publisher: str, subscriber: str) -> None:
        self.publisher = publisher
        self.subscriber = subscriber
        self._portal = portal
        self._content = api.content

    def __repr__(self) -> str:
        return f"ContentQueue({self.publisher!r}, {self.subscriber!r})"

    def __iter__(self) -> Iterator[QueuedPackage]:
        after: int | None = -1
        while after is not None:
            page = self._page(after, _PAGE)
            yield from page.items
            after = page.after

    def __len__(self) -> int:
        return self._page(-1, 1).length

    @property
    def head(self) -> QueuedPackage | None:
        """The package that is next; None if the queue is empty."""
        return next(iter(self._page(-1, 1).items), None)

    def _page(self, after: int, limit: int) -> QueuePage:
        query = QueueQuery(after, limit)
        return self._portal.call(self._content.queue(self.publisher, self.subscriber, query))
