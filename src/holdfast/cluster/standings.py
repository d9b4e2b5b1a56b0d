"""Which partitions members have all of: said by each of them, and known by all."""

from collections.abc import Collection

import msgspec

from holdfast.errors import HoldfastError
from holdfast.transport import Link, Links

STANDINGS = 124  # the kind of the message

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(set[int]).decode


class Standings:
    """What each member said last. A member that is lost has said nothing."""

    def __init__(self) -> None:
        self._of: dict[str, set[int]] = {}
        self.own: frozenset[int] = frozenset()  # as it was told last
        self._told: set[str] = set()  # who knows of our own

    def follow(self, link: Link) -> None:
        """Notices the end of each connection, also of one that ends before the member greets."""
        link.on_down(lambda: self.lost(link.peer))

    def told(self, member: str, body: bytes) -> None:
        self._of[member] = _decode(body)

    def lost(self, member: str) -> None:
        """The connection to a member has ended: what was said over it counts no more."""
        self._of.pop(member, None)
        self._told.discard(member)

    def has_all(self, partition: int, member: str) -> bool:
        return partition in self._of.get(member, ())

    def tell(self, own: Collection[int], links: Links) -> None:
        """Tells everybody who does not know it yet what this member has all of."""
        if frozenset(own) != self.own:
            self.own = frozenset(own)
            self._told.clear()
        body = _encode(sorted(self.own))
        for link in links:
            if link.is_up and link.peer not in self._told:
                try:
                    link.tell(STANDINGS, body)
                except HoldfastError:
                    continue  # the next look tells it
                self._told.add(link.peer)
