"""What a member of a cluster counts and measures of itself."""

from typing import Protocol

from holdfast.cluster.conductor import Conductor
from holdfast.cluster.placing import MemberSight, Sight, is_missing_replicas
from holdfast.journal.cluster.journal import ClusterJournal
from holdfast.metrics.cluster import MemberNumbers
from holdfast.node import Node
from holdfast.sequence.api import ClusterSettings, Coordination


class CountedMember(Protocol):
    """The parts of a member that numbers are made of."""

    name: str
    settings: ClusterSettings
    journal: ClusterJournal
    conductor: Conductor
    node: Node

    def members(self) -> dict[str, MemberSight]: ...


def without_owner(member: CountedMember, sights: dict[str, MemberSight]) -> list[int]:
    """The partitions whose owner is not heard, or which never had one."""
    found: list[int] = []
    for partition in range(1, member.settings.partitions + 1):
        last = member.journal.chain(partition).last
        owner = sights.get(last.owner) if last is not None else None
        if last is None or owner is None or owner.nonce != last.nonce:
            found.append(partition)
    return found


def under_replicated(member: CountedMember, sights: dict[str, MemberSight]) -> list[int]:
    """The partitions owned here that are on fewer disks than they should be."""
    settings = member.settings
    sight = Sight(member.name, sights, settings.replicas, settings.partitions)
    ranges = {each: member.journal.chain(each).last for each in member.conductor.owned()}
    return [each for each, last in ranges.items() if last and is_missing_replicas(last, sight)]


def numbers_of(member: CountedMember, waiting_commands: int) -> MemberNumbers:
    """All of them, as they are now."""
    sights = member.members()
    lags: dict[str, int] = {}
    for (name, _), lag in member.journal.lags().items():
        lags[name] = lags.get(name, 0) + lag
    done = member.conductor.done
    return MemberNumbers(
        len(sights), sum(each.is_there for each in sights.values()), done.take_overs,
        done.take_over_seconds, done.moves, len(member.conductor.owned()),
        len(under_replicated(member, sights)), len(without_owner(member, sights)), lags,
        sum(member.node.runner.standbys.lags().values()), waiting_commands,
    )  # fmt: skip


def own_problems(member: CountedMember, coordination: Coordination) -> list[str]:
    """What is wrong with this member, and nobody else may know."""
    found: list[str] = []
    if coordination.rolled_back:
        found.append(f"etcd was rolled back: {coordination.rolled_back}")
    elif not coordination.available:
        found.append("etcd does not answer: partitions continue, but none can be taken over")
    runner = member.node.runner
    stopped = {**runner.stopped, **runner.standbys.stopped}
    return found + [f"Partition {each}: {why}" for each, why in stopped.items()]


def cluster_problems(member: CountedMember) -> list[str]:
    """What is wrong with the cluster, as far as this member sees it."""
    sights = member.members()
    found = [f"Member {name} is away" for name, each in sights.items() if not each.is_there]
    for what, partitions in (
        ("has no owner that is heard", without_owner(member, sights)),
        ("is on fewer disks than it should be", under_replicated(member, sights)),
    ):
        found += [f"Partition {each} {what}" for each in partitions]
    return found
