"""What a member does from time to time, put together: closed ranges, and partitions it has left."""

from typing import TYPE_CHECKING

from holdfast.cluster.clearing import Clearing
from holdfast.cluster.tending import Tending
from holdfast.journal.cluster.asking import ReplicaDisks
from holdfast.journal.cluster.settling import Settling

if TYPE_CHECKING:
    from holdfast.cluster.member import ClusterMember


def tending_of(member: "ClusterMember") -> Tending:
    """Looks after the closed ranges of what the member owns."""
    journal, conductor = member.journal, member.conductor
    disks = ReplicaDisks(journal, member.peers)
    settling = Settling(disks, member.coordination, journal.learned)
    return Tending(settling, journal.chain, conductor.owned, journal.disk.earliest_of)


def clearing_of(member: "ClusterMember") -> Clearing:
    """Frees what the member keeps of partitions that have left it."""
    journal = member.journal
    return Clearing(
        journal.replica, member.settings.partitions, journal.leaving, journal.chain, member.node,
        member.conductor.is_used, member.can_act,
    )  # fmt: skip
