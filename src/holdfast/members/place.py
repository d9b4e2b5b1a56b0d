"""One member of a folder on this machine: its partitions, and its ways to the others."""

import hashlib
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from holdfast.gateway.far import Call
from holdfast.layout import Layout
from holdfast.limits import UNIX_PATH_BYTES_MAX
from holdfast.members.colleagues import CONTENT, Colleagues
from holdfast.partitions import Placement
from holdfast.partitions.placement import Placements
from holdfast.partitions.routed import RoutedPartitions
from holdfast.runtime import Runtime
from holdfast.transport import Address, Connection, Handler, Identity, Link, Links, UnixAddress
from holdfast.transport.sockets import SocketTransport

CONTENT_PARTITION = 1  # the process that has this one has the topics of content
_EPOCH = 1  # of a division that never changes while the node runs


class MemberPlace:
    """Where a member stands. Others are dialed from `start` on, and until `close`."""

    def __init__(self, layout: Layout, member: int) -> None:
        self._layout = layout
        self._member = member
        self.home = layout.folder
        self.own: Sequence[int] = layout.owned(member)
        self.colleagues = Colleagues()
        identity = Identity(str(member), layout.cluster)
        self._links = Links(
            str(member), SocketTransport(identity), addresses(layout), self._answering
        )

    @property
    def far_content(self) -> Call | None:
        """The way to the member that has the topics of content; None: it is this one."""
        home = str(self._layout.owner(CONTENT_PARTITION))
        if home == str(self._member):
            return None
        [link] = [each for each in self._links if each.peer == home]
        return partial(link.call, CONTENT)

    def ways(self) -> list[Call]:
        """The ways to all other members."""
        return [partial(link.call, CONTENT) for link in self._links]

    def around(self, runtime: Runtime) -> RoutedPartitions:
        """All partitions, as this member reaches them."""
        owner = self._layout.owner
        everywhere = range(1, self._layout.partitions + 1)
        placements = Placements([Placement(each, str(owner(each)), _EPOCH) for each in everywhere])
        ways = {link.peer: link for link in self._links}
        self._routed = RoutedPartitions(str(self._member), runtime.partitions, placements, ways)
        for link in self._links:
            # What was sent to its partitions while it was away is sent again at once.
            link.on_up(partial(runtime.post.reached, self._layout.owned(int(link.peer))))
        return self._routed

    async def start(self) -> None:
        self.colleagues.links = list(self._links)
        await self._links.start()

    async def close(self) -> None:
        await self._links.close()

    def _answering(self, link: Link, connection: Connection) -> Handler:
        return self.colleagues.answering(self._routed.serving(link, connection))


def addresses(layout: Layout) -> dict[str, Address]:
    """Where the members of a folder listen for one another."""
    folder = _sockets(layout)
    return {
        str(each): UnixAddress(str(folder / f"{each}.socket"))
        for each in range(1, layout.members + 1)
    }


def _sockets(layout: Layout) -> Path:
    """Beside the members; where that path is too long for a socket, among temporary files."""
    beside = layout.folder.resolve() / "members"
    if len(str(beside / f"{layout.members}.socket").encode()) <= UNIX_PATH_BYTES_MAX:
        return beside
    name = hashlib.sha256(str(beside).encode()).hexdigest()[:16]
    folder = Path(tempfile.gettempdir()) / f"holdfast-{name}"
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder
