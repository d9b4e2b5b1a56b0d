"""Content from a user's program: publishers and subscribers of a node, here or elsewhere."""

from typing import TYPE_CHECKING

from holdfast.client.portal import Portal
from holdfast.gateway.api import Api

if TYPE_CHECKING:  # a program without content does not load them
    from holdfast.blobs import Blobs
    from holdfast.client.content_publisher import ContentPublisher, Source
    from holdfast.content.ports import ContentLog
    from holdfast.gateway.content.shapes import FarmView


class ContentCalls:
    """The part of `Holdfast` that is about content."""

    portal: Portal
    api: Api

    def publisher(
        self, name: str, source: "Source | None" = None, *, store: str | None = None
    ) -> "ContentPublisher":
        """Publishes trees of files or of nodes to subscribers anywhere.

        `source` is a folder, a content repository, or the URL of one; only `add` needs it. Large
        files go through the node; with `store` they go straight to the blob store that the node
        uses, such as `s3://bucket/prefix`.
        """
        from holdfast.client.content_publisher import ContentPublisher

        return ContentPublisher(self.portal, self.api, self._log(name, store), name, source)

    def publishers(self) -> "list[FarmView]":
        """All publishers, each with its subscribers in one view."""
        return self.portal.call(self.api.content.publishers())

    def _log(self, publisher: str, store: str | None) -> "ContentLog":
        """A node in this process is asked directly; another one over its Api."""
        near: ContentLog | None = getattr(self.api.content, "log", None)
        if near is not None and store is None:
            return near
        from holdfast.blobs import open_blobs
        from holdfast.client.content_blobs import NodeBlobs
        from holdfast.client.content_log import NodeContentLog

        blobs: Blobs
        if store is None:
            blobs = NodeBlobs(self.api, self.portal.loop, publisher)
        else:
            blobs = open_blobs(store)
        return NodeContentLog(self.api, blobs)
