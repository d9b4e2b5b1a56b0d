"""What the journal of a cluster needs from outside: the other members."""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import Protocol

from holdfast.journal.cluster.messages import Answer, Call, Told
from holdfast.sequence.api import Replica


class Peers(Protocol):
    """The other members, as they are reached now. What arrives goes to the journal's handler."""

    def heard(self) -> AbstractSet[str]:
        """The members whose connection is up and not silent, without this one."""
        ...

    def disk(self, member: str) -> str | None:
        """The disk that a member has now; None while it is not reached."""
        ...

    def nonce(self, member: str) -> str | None:
        """Of the start of a member that is reached; None while it is not, or not known."""
        ...

    def tell(self, members: Sequence[str], message: Told) -> list[str]:
        """Sends to each, and forgets; who did not take it: not reached, or too much is waiting."""
        ...

    async def call(self, member: str, message: Call) -> Answer:
        """Sends and waits for the answer; Unavailable if it was certainly not sent, else Unknown.

        There is no time limit: a member that falls silent is disconnected, and the call fails.
        """
        ...


class OwnReplica(Protocol):
    """This member's disk, as a take-over sees it: one replica among others, asked like them."""

    @property
    def replica(self) -> Replica: ...

    async def called(self, member: str, message: Call) -> Answer:
        """As `PeerHandler.called`; the member is this one."""
        ...


class PeerHandler(Protocol):
    """What the journal does with what arrives from another member, in the order of arrival."""

    def told(self, member: str, message: Told) -> None: ...

    async def called(self, member: str, message: Call) -> Answer: ...

    def reached(self, member: str) -> None:
        """A connection to the member is new: it knows nothing of what was told before."""
        ...

    def lost(self, member: str) -> None:
        """The connection has ended, or the member is silent."""
        ...
