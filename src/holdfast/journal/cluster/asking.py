"""Asking one disk of the cluster something: this member's own, or another member's."""

from tenacity import AsyncRetrying, retry_if_exception, wait_exponential

from holdfast.errors import Unavailable, Unknown
from holdfast.journal.cluster.messages import Answer, Call
from holdfast.journal.cluster.ports import OwnReplica, Peers
from holdfast.limits import TAKE_OVER_RETRY_MS_MAX, TAKE_OVER_RETRY_MS_MIN
from holdfast.sequence.api import Replica, RolledBack


class ReplicaDisks:
    """All disks as this member reaches them."""

    def __init__(self, own: OwnReplica, peers: Peers) -> None:
        self._own = own
        self._peers = peers

    @property
    def own(self) -> Replica:
        return self._own.replica

    async def ask(self, replica: Replica, message: Call) -> Answer:
        """Unavailable if the disk is not reached, or its member has another one by now."""
        if replica == self.own:
            return await self._own.called(replica.member, message)
        if replica.member == self.own.member or self._peers.disk(replica.member) != replica.disk:
            raise Unavailable(
                f"Disk {replica.disk} of member {replica.member} is not reached: the member is "
                "down, or it has a new disk",
                member=replica.member,
            )
        return await self._peers.call(replica.member, message)


def tries() -> AsyncRetrying:
    """Attempts that go on until one succeeds, with pauses that grow up to a limit."""
    return AsyncRetrying(
        retry=retry_if_exception(_may_pass),
        wait=wait_exponential(TAKE_OVER_RETRY_MS_MIN / 1_000, max=TAKE_OVER_RETRY_MS_MAX / 1_000),
    )


def _may_pass(error: BaseException) -> bool:
    return isinstance(error, Unavailable | Unknown) and not isinstance(error, RolledBack)
