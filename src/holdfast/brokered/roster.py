"""Who the members are, as the generation's cards say: their keys, and the links to them."""

import asyncio
from collections.abc import Callable, Mapping

from holdfast.brokered.cards import (
    BrokeredCard,
    MemberSaid,
    cards_by_name,
    decode_said,
    encode,
)
from holdfast.cluster.roster import address_of
from holdfast.errors import HoldfastError
from holdfast.groups.api import MemberId
from holdfast.limits import BROKERED_KEPT_MS
from holdfast.logs import log
from holdfast.transport import Link, Links

SAID = 130  # the kind of the message


class CardRoster:
    """The members of the present generation. Links and keys follow from their cards.

    Each member says over its links how it is: when a connection begins, and whenever that changes.
    Without the broker nobody is forgotten: what was read last stays true.
    """

    def __init__(self, me: str, links: Links, keys: dict[str, bytes]) -> None:
        """`keys` are those that TLS looks at: they grow and shrink with the members."""
        self.cards: dict[str, BrokeredCard] = {}  # of all members, with this one
        self.said: dict[str, MemberSaid] = {}  # of the others that are heard
        self.problems: list[str] = []
        self.own = MemberSaid({})
        self.on_joined: list[Callable[[Link], None]] = []
        self.on_left: list[Callable[[str], None]] = []
        self.on_said: list[Callable[[str, MemberSaid], None]] = []
        self._me = me
        self._links = links
        self._keys = keys
        self._untold: set[str] = set()
        self._leaving: dict[str, float] = {}  # who left, and until when it may come back

    # --- cards --------------------------------------------------------------------------------

    def see(self, cards: Mapping[MemberId, bytes]) -> None:
        """There is a new generation: who is not in it any more is forgotten, after a while.

        A member that is still connected may only have lost its broker, and come back.
        """
        found, self.problems = cards_by_name(cards)
        now = asyncio.get_running_loop().time()
        for name in self.cards.keys() - found.keys() - {self._me}:
            self._leaving.setdefault(name, now + BROKERED_KEPT_MS / 1_000)
        self.cards = found
        for name, card in found.items():
            if name != self._me:
                self._leaving.pop(name, None)
                self._keys[name] = bytes.fromhex(card.key)
                self._link(name, card)
        self.forget_gone()

    def forget_gone(self) -> None:
        """Cuts off the members that have left, once they are not connected or it is long ago."""
        now = asyncio.get_running_loop().time()
        for name, until in list(self._leaving.items()):
            if now < until and name in self._links and self._links[name].is_up:
                continue
            log.info("member left", member=name)
            del self._leaving[name]
            self._keys.pop(name, None)
            self._links.remove(name)
            self.said.pop(name, None)
            for callback in self.on_left:
                callback(name)

    def _link(self, name: str, card: BrokeredCard) -> None:
        is_known = name in self._links
        link = self._links.add(name, address_of(card.address))
        if not is_known:
            link.on_up(lambda: self._tell(name))
            link.on_down(lambda: self._lost(name))
            for callback in self.on_joined:
                callback(link)

    def is_heard(self, name: str) -> bool:
        """Whether a member has said how it is, over a connection that stands."""
        return name == self._me or name in self.said

    # --- what members say ---------------------------------------------------------------------

    def say(self, own: MemberSaid) -> None:
        """Tells everybody how this member is, unless they know."""
        if own != self.own:
            self.own = own
            self._untold = {link.peer for link in self._links if link.is_up}
        for name in list(self._untold):
            self._tell(name)

    def heard(self, name: str, body: bytes) -> None:
        """A member has said how it is."""
        said = self.said[name] = decode_said(body)
        for callback in self.on_said:
            callback(name, said)

    def _tell(self, name: str) -> None:
        self._untold.discard(name)
        if name not in self._links or not self._links[name].is_up:
            return  # it is told when it is reached
        try:
            self._links[name].tell(SAID, encode(self.own))
        except HoldfastError as error:  # it has much to read: with the next look
            log.debug("member not told", peer=name, why=error.message)
            self._untold.add(name)

    def _lost(self, name: str) -> None:
        self.said.pop(name, None)
