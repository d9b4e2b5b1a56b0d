"""Content from a user's program: publishers and subscribers of a node, here or elsewhere."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.client.portal import Portal
from holdfast.gateway.api import Api

if TYPE_CHECKING:  # a program without content does not load them
    from holdfast.blobs import Blobs
    from holdfast.client.content_publisher import ContentPublisher, Source
    from holdfast.client.content_subscriber import ContentSubscriber, Invalidated
    from holdfast.content.ports import ContentLog
    from holdfast.content.repository.api import Repository
    from holdfast.content.subscriber.decisions import Admit
    from holdfast.gateway.content.shapes import FarmView


class ContentCalls:
    """The part of `Holdfast` that is about content."""

    portal: Portal
    api: Api
    _subscribers: "list[ContentSubscriber]"
    _logs: "dict[tuple[str, str | None], ContentLog]"

    def publisher(
        self,
        name: str,
        source: "Source | None" = None,
        *,
        skip_links: bool = False,
        store: str | None = None,
    ) -> "ContentPublisher":
        """A publisher of trees of files or nodes to subscribers on any machine.

        `source` is a folder, a content repository, or the URL of one; only `add` needs it. A
        symbolic link in a folder is an error, unless `skip_links` leaves links out. Large files go
        through the node; with `store` they go straight to the blob store that the node
        uses, such as `s3://bucket/prefix`.
        """
        from holdfast.client.content_publisher import ContentPublisher
        from holdfast.gateway.content.checked import agent_name

        agent_name(name, "publisher")
        log = self._log(name, store)
        return ContentPublisher(self.portal, self.api, log, name, source, skip_links)

    async def publisher_async(
        self,
        name: str,
        source: "Source | None" = None,
        *,
        skip_links: bool = False,
        store: str | None = None,
    ) -> "ContentPublisher":
        """Like `publisher`, for an event loop: a repository may be opened and modules loaded."""
        return await asyncio.to_thread(
            self.publisher, name, source, skip_links=skip_links, store=store
        )

    def subscriber(
        self,
        name: str,
        *,
        of: str | Sequence[str],
        into: "str | Path | Repository",
        editable: bool = False,
        retries_max: int = -1,
        precondition: "Admit | None" = None,
        only_after: str | None = None,
        seed_from: str | None = None,
        invalidated: "Invalidated | None" = None,
        accept_gap: bool = False,
        store: str | None = None,
    ) -> "ContentSubscriber":
        """Takes the packages of a publisher into a folder or a repository, until it is closed.

        A subscriber keeps its place in its store: opened again it goes on from there. Its queue may
        be cleared if it is `editable`. It gives up on a package after `retries_max` retries; with
        -1 never. `precondition` says of each package whether to accept it, to skip it, or to wait;
        `only_after` takes a package only after another subscriber has. `seed_from` begins with a
        snapshot of another subscriber. `invalidated` is called with the paths of packages that
        invalidate. `accept_gap` begins with what the log still keeps, though it is not all.
        """
        from holdfast.client.content_subscriber import ContentSubscriber
        from holdfast.content.subscriber.decisions import Habits
        from holdfast.content.subscriber.subscriber import SubscriberExtras
        from holdfast.errors import InvalidArgument
        from holdfast.gateway.content.checked import agent_name

        publishers = (of,) if isinstance(of, str) else tuple(of)
        agent_name(name, "subscriber")
        for each in publishers:
            agent_name(each, "publisher")
        if not publishers:
            raise InvalidArgument(
                f"Expected a publisher for {name} to subscribe to, but found none"
            )
        habits = Habits(name, publishers, editable, retries_max, accept_gap)
        extras = SubscriberExtras(precondition, only_after, seed_from, invalidated, _host())
        log = self._log(publishers[0], store)
        opened = ContentSubscriber(self.portal, log, into, habits, extras)
        self._subscribers.append(opened)
        return opened

    async def subscriber_async(
        self,
        name: str,
        *,
        of: str | Sequence[str],
        into: "str | Path | Repository",
        editable: bool = False,
        retries_max: int = -1,
        precondition: "Admit | None" = None,
        only_after: str | None = None,
        seed_from: str | None = None,
        invalidated: "Invalidated | None" = None,
        accept_gap: bool = False,
        store: str | None = None,
    ) -> "ContentSubscriber":
        """Like `subscriber`, for an event loop: its store is opened in a thread."""
        return await asyncio.to_thread(
            self.subscriber, name, of=of, into=into, editable=editable, retries_max=retries_max,
            precondition=precondition, only_after=only_after, seed_from=seed_from,
            invalidated=invalidated, accept_gap=accept_gap, store=store,
        )  # fmt: skip

    def publishers(self) -> "list[FarmView]":
        """All publishers, each with its subscribers in one view."""
        return self.portal.call(self.api.content.publishers())

    async def publishers_async(self) -> "list[FarmView]":
        """Like `publishers`, for an event loop."""
        return await self.portal.reach(self.api.content.publishers())

    def _log(self, publisher: str, store: str | None) -> "ContentLog":
        """A node in this process is asked directly; another one over its Api."""
        near: ContentLog | None = getattr(self.api.content, "log", None)
        if near is not None and store is None:
            return near
        opened = self._logs.get((publisher, store))
        if opened is None:
            opened = self._logs[publisher, store] = self._far_log(publisher, store)
        return opened

    def _far_log(self, publisher: str, store: str | None) -> "ContentLog":
        from holdfast.blobs import open_blobs
        from holdfast.client.content_blobs import NodeBlobs
        from holdfast.client.content_log import NodeContentLog

        blobs: Blobs
        if store is None:
            blobs = NodeBlobs(self.api, self.portal.loop, publisher)
        else:
            blobs = open_blobs(store)
        return NodeContentLog(self.api, blobs)

    def close_content(self) -> None:
        """Closes the subscribers that were opened here."""
        for each in self._subscribers:
            each.close()


def _host() -> str:
    import socket

    return socket.gethostname()
