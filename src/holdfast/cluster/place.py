"""Where a member of a cluster stands: partitions come and go, and so do the other members."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any

from holdfast.errors import Moved, NotFound, Unavailable
from holdfast.gateway.far import Call
from holdfast.limits import OWNER_WAIT_MS_MAX
from holdfast.partitions import Placement
from holdfast.partitions.placement import Placements
from holdfast.partitions.routed import RoutedPartitions
from holdfast.runtime import Runtime
from holdfast.sequence.api import Chain
from holdfast.transport import Answer, Connection, Handler, Link, Links

CONTENT_PARTITION = 1  # its owner has the topics of content
CONTENT = 66  # the kind of a call about them, as among the processes of a node

Content = Callable[[bytes], Coroutine[Any, Any, bytes]]


class ClusterPlace:
    """Keeps the port `Place`. Its node begins without a partition; the conductor opens them."""

    own: Sequence[int] = ()

    def __init__(self, member: str, home: Path, partitions: int) -> None:
        self.home = home
        self.placements = Placements.unknown(partitions)
        self.content: Content | None = None  # of this member, once it has a node
        self._member = member
        self._links: Links | None = None
        self._routed: RoutedPartitions | None = None
        self._runtime: Runtime | None = None
        self._moved: set[int] = set()
        self.placements.on_change(self._placed)

    def over(self, links: Links) -> None:
        """The links that lead to the others; they may change."""
        self._links = links

    def around(self, runtime: Runtime) -> RoutedPartitions:
        """All partitions, as this member reaches them."""
        self._runtime = runtime
        self._routed = RoutedPartitions(
            self._member, runtime.partitions, self.placements, {}, OWNER_WAIT_MS_MAX
        )
        return self._routed

    @property
    def routed(self) -> RoutedPartitions:
        assert self._routed is not None, "a node was made around this place"
        return self._routed

    # --- who owns what ------------------------------------------------------------------------

    def learned(self, chain: Chain) -> None:
        """A chain is newer than what was known: its last range has the owner."""
        if chain.last is not None:
            self.placements.learn(Placement(chain.partition, chain.last.owner, chain.epoch))

    def joined(self, link: Link) -> None:
        """A member joined; what was sent to its partitions in vain goes out when it is reached."""
        self.routed.add(link)
        link.on_up(lambda: self._reached(link.peer))

    def left(self, member: str) -> None:
        self.routed.remove(member)

    def _reached(self, member: str) -> None:
        placed = self.placements.all()
        self._send_again({each.partition for each in placed if each.member == member})

    def _placed(self, placement: Placement) -> None:
        self._send_again({placement.partition})

    def _send_again(self, partitions: set[int]) -> None:
        """What partitions here have for these is sent at once: all of a turn together."""
        if self._runtime is not None and partitions:
            if not self._moved:
                asyncio.get_running_loop().call_soon(self._send_now)
            self._moved |= partitions

    def _send_now(self) -> None:
        moved, self._moved = self._moved, set()
        if self._runtime is not None:
            self._runtime.post.reached(moved)

    # --- content ------------------------------------------------------------------------------

    @property
    def far_content(self) -> Call | None:
        """The way to the owner of the first partition, which may be this member."""
        return self._ask_for_content

    async def _ask_for_content(self, body: bytes) -> bytes:
        room = self.routed.room
        assert room is not None, "members of a cluster wait for owners"
        deadline = room.deadline()
        while True:
            try:
                return await self._content_owner()(body)
            except (Moved, Unavailable):
                if not await room.change(CONTENT_PARTITION, deadline):
                    raise

    def _content_owner(self) -> Content:
        owner = self.placements.of(CONTENT_PARTITION).member
        if owner == self._member:
            return self._content_here
        link = self._links[owner] if self._links is not None and owner in self._links else None
        if link is None:
            raise Unavailable("No member serves the topics of content at the moment; try again")

        async def call(body: bytes) -> bytes:
            return await link.call(CONTENT, body)

        return call

    async def _content_here(self, body: bytes) -> bytes:
        if self.content is None or self.placements.of(CONTENT_PARTITION).member != self._member:
            raise self.placements.moved(CONTENT_PARTITION)
        return await self.content(body)

    # --- connections --------------------------------------------------------------------------

    def answering(self, link: Link, connection: Connection) -> Handler:
        """Who answers another member about partitions and content."""
        if link.peer not in self.routed.remotes:
            raise NotFound(f"Member {link.peer!r} is not known yet; try again")
        return _Answering(self._content_here, self.routed.serving(link, connection))


class _Answering:
    """Answers one connection of one other member."""

    def __init__(self, content: Content, rest: Handler) -> None:
        self._content = content
        self._rest = rest
        self.told = rest.told

    def called(self, kind: int, body: bytes) -> Answer:
        return self._content(body) if kind == CONTENT else self._rest.called(kind, body)
