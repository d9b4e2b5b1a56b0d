"""Asking one disk of the cluster something: this member's own, or another member's."""

from holdfast.errors import Unavailable
from holdfast.journal.cluster.messages import Answer, Call
from holdfast.journal.cluster.ports import OwnReplica, Peers
from holdfast.sequence.api import Replica


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
