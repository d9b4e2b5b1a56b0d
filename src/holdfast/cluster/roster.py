"""Who the members are, as etcd says: their keys, their addresses, and the links to them.

What was read stays true for this member until it is read anew: without etcd nobody is forgotten.
"""

from collections.abc import Callable

from holdfast.cluster.peers import LinkedPeers
from holdfast.logs import log
from holdfast.sequence.api import Coordination, LiveMember, Registered
from holdfast.transport import Address, Link, Links, TcpAddress


class Roster:
    """The members that may take part and those that run; links follow from both."""

    def __init__(
        self,
        me: str,
        coordination: Coordination,
        links: Links,
        keys: dict[str, bytes],
        peers: LinkedPeers,
    ) -> None:
        """`keys` are those that TLS looks at: they grow and shrink with the members."""
        self.registered: dict[str, Registered] = {}
        self.live: dict[str, LiveMember] = {}
        self.is_removed = False  # this member was: nobody listens to it any more
        self.on_joined: list[Callable[[Link], None]] = []
        self.on_left: list[Callable[[str], None]] = []
        self.on_change: list[Callable[[], None]] = []
        self._me = me
        self._coordination = coordination
        self._links = links
        self._keys = keys
        self._peers = peers

    def is_registered(self, member: str) -> bool:
        """Whether a name is a member's; before the first look at etcd everybody's is."""
        return not self.registered or member in self.registered

    async def read_registered(self) -> None:
        """Reads which members are registered. The others are cut off at once."""
        self.registered = await self._coordination.registered()
        self.is_removed = self._me not in self.registered
        for name in self._keys.keys() - self.registered.keys():
            del self._keys[name]
            if name != self._me:
                log.warning("member removed", member=name)
                self._links.remove(name)
                for callback in self.on_left:
                    callback(name)
        for name, member in self.registered.items():
            self._keys[name] = bytes.fromhex(member.key)
            self._link(name)
        self._changed()

    async def read_live(self) -> None:
        """Takes up who runs, and where."""
        self.live = {each.member: each for each in (await self._coordination.live()).values()}
        for name in self.registered:
            self._link(name)
        self._changed()

    def _link(self, name: str) -> None:
        if name == self._me:
            return
        known = name in self._links
        running = self.live.get(name)
        if known and running is None:
            return  # where it was last is as good a place to look as any
        link = self._links.add(name, None if running is None else address_of(running.address))
        if not known:
            self._peers.follow(link)
            for callback in self.on_joined:
                callback(link)

    def _changed(self) -> None:
        for callback in self.on_change:
            callback()


def address_of(text: str) -> Address | None:
    """Where a member says that it listens; None if that is not understood."""
    host, _, port = text.rpartition(":")
    if not host or not port.isdigit():
        log.warning("a member's address is not understood", address=text)
        return None
    return TcpAddress(host.strip("[]"), int(port))
