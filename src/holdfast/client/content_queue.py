"""The queue of a subscriber, as a program looks at it."""

from collections.abc import AsyncIterator, Iterator

from holdfast.client.portal import Portal
from holdfast.gateway.api import Api
from holdfast.gateway.content.shapes import QueuedPackage, QueuePage, QueueQuery

PAGE = 1_000  # packages that are asked for at once


class ContentQueue:
    """The packages that a subscriber has not imported yet, read page by page."""

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
            page = self._portal.call(self._page(after, PAGE))
            yield from page.items
            after = page.after

    async def __aiter__(self) -> AsyncIterator[QueuedPackage]:
        after: int | None = -1
        while after is not None:
            page = await self._portal.reach(self._page(after, PAGE))
            for each in page.items:
                yield each
            after = page.after

    def __len__(self) -> int:
        return self._portal.call(self._page(-1, 1)).length

    async def length_async(self) -> int:
        """How many packages there are, for an event loop."""
        return (await self._portal.reach(self._page(-1, 1))).length

    @property
    def head(self) -> QueuedPackage | None:
        """The next package; None if the queue is empty."""
        return next(iter(self._portal.call(self._page(-1, 1)).items), None)

    async def head_async(self) -> QueuedPackage | None:
        """Like `head`, for an event loop."""
        return next(iter((await self._portal.reach(self._page(-1, 1))).items), None)

    async def _page(self, after: int, limit: int) -> QueuePage:
        query = QueueQuery(after, limit)
        return await self._content.queue(self.publisher, self.subscriber, query)
