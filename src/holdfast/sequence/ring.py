"""The ring of members: who publishes the next cut, and how long the others wait for it.

Nobody is elected. The last writer goes on; each of the others waits longer, by its place in the
ring behind it. Two members that see different rings may try at once: the first one wins, and is the
last writer from then on.
"""

from bisect import bisect_left
from collections.abc import Mapping
from functools import lru_cache
from hashlib import sha256

from holdfast.limits import RING_DELAY_TICKS


class Ring:
    """Members in the order of their hashed public keys, the first behind the last again."""

    def __init__(self, members: Mapping[str, str], former: Mapping[str, str] | None = None) -> None:
        """Names and keys (hex); `former` ones take no part, but their places are remembered."""
        places = sorted((_place(key), name) for name, key in members.items())
        self._places = [place for place, _ in places]
        self._former = {name: _place(key) for name, key in (former or {}).items()}
        self.order = tuple(name for _, name in places)

    def position(self, member: str, writer: str | None) -> int | None:
        """How many members come before this one after the writer; None if it is not in the ring.

        Without a writer the ring begins with its first; with one that is gone, behind its place.
        """
        if member not in self.order:
            return None
        return (self.order.index(member) - self._start(writer)) % len(self.order)

    def delay_ticks(
        self, member: str, writer: str | None, step_ticks: int = RING_DELAY_TICKS
    ) -> int | None:
        """How many ticks a member lets the others go first; None if it is not in the ring."""
        position = self.position(member, writer)
        return None if position is None else position * step_ticks

    def _start(self, writer: str | None) -> int:
        if writer in self.order:
            return self.order.index(writer)
        if writer in self._former:
            return bisect_left(self._places, self._former[writer])
        return 0


@lru_cache(maxsize=1_024)  # a ring is made for every tick, mostly of the same members
def _place(key: str) -> bytes:
    return sha256(bytes.fromhex(key)).digest()
