"""The map of the cluster: members, who owns which partition, cuts, and what can be done."""

from holdfast.console.page import ConsolePage, PageAsk, PageReply
from holdfast.engine.identity.values import Permission, ResourceType
from holdfast.errors import InvalidState
from holdfast.gateway.access.needs import one
from holdfast.gateway.cluster.shapes import ClusterPartitionView, ClusterStatus

_READ = one(ResourceType.SYSTEM, Permission.READ)
_UPDATE = one(ResourceType.SYSTEM, Permission.UPDATE)
_HOME = "/console/cluster"
_CUTS_SHOWN = 10


async def show(ask: PageAsk) -> PageReply:
    """The cluster as the member sees it that is asked; a node without one says so."""
    try:
        status = await ask.api.cluster.status()
    except InvalidState:
        return await ask.show("cluster.html", status=None)
    return await ask.show(
        "cluster.html",
        status=status,
        targets={each.partition_id: _targets(status, each) for each in status.partitions},
        cuts=[] if status.journal else (await ask.api.cluster.cuts(_CUTS_SHOWN)).items,
        may_update=await ask.may(_UPDATE),
    )


def _targets(status: ClusterStatus, partition: ClusterPartitionView) -> list[str]:
    """The members that a partition can go to: those that have its log, and are there."""
    if status.journal:  # the log is kept by a broker, so all of them have it
        there = [each.member for each in status.members if each.state == "UP"]
    else:
        there = [each.member for each in partition.replicas if each.is_heard]
    return [each for each in there if each != partition.owner]


async def drain(ask: PageAsk) -> PageReply:
    """A member gives its partitions away."""
    member = ask.parameters["member"]
    await ask.api.cluster.drain(member)
    return ask.go(_HOME, f"{member} gives its partitions away. The map tells how far it is.")


async def keep(ask: PageAsk) -> PageReply:
    """A member that drained may have partitions again."""
    member = ask.parameters["member"]
    await ask.api.cluster.drain(member, is_draining=False)
    return ask.go(_HOME, f"{member} may have partitions again.")


async def move(ask: PageAsk) -> PageReply:
    """A partition goes to another member that keeps its log."""
    partition, member = ask.parameters["partition"], ask.wanted("member")
    await ask.api.cluster.move(partition, member)
    return ask.go(_HOME, f"Partition {partition} is handed to {member}.")


PAGES = (
    ConsolePage(_HOME, "Cluster", show, _READ, group="Node"),
    ConsolePage(f"{_HOME}/members/{{member}}/drain", "Drain", drain, _UPDATE, method="POST"),
    ConsolePage(f"{_HOME}/members/{{member}}/keep", "Keep", keep, _UPDATE, method="POST"),
    ConsolePage(f"{_HOME}/partitions/{{partition}}/move", "Move", move, _UPDATE, method="POST"),
)
