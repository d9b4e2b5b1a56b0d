"""What can be asked of a node: the gateway keeps it inside, a remote client from afar."""

from importlib import import_module
from typing import TYPE_CHECKING

from holdfast.errors import HoldfastError
from holdfast.gateway.operation import Namespace

if TYPE_CHECKING:  # a namespace is loaded when it is asked for; a client needs few of them
    from holdfast.gateway.access.access import Access
    from holdfast.gateway.batch.api import BatchApi
    from holdfast.gateway.cluster.api import ClusterApi
    from holdfast.gateway.content.api import ContentApi
    from holdfast.gateway.distribution.api import DistributionApi
    from holdfast.gateway.groups.api import GroupApi
    from holdfast.gateway.identity.api import IdentityApi
    from holdfast.gateway.journal.api import JournalApi
    from holdfast.gateway.node.api import NodeApi
    from holdfast.gateway.processes.api import InstanceApi, MessageApi, ProcessApi
    from holdfast.gateway.tasks.api import IncidentApi, JobApi, ScheduleApi, TaskApi
    from holdfast.gateway.transactions.api import TransactionApi


class Api:
    """Everything that clients, workers and the CLI need, by what it is about."""

    # checks requests before they are served to others; None: everybody may do everything
    access: "Access | None" = None

    tasks: "TaskApi"
    jobs: "JobApi"
    incidents: "IncidentApi"
    schedules: "ScheduleApi"
    processes: "ProcessApi"
    instances: "InstanceApi"
    messages: "MessageApi"
    transactions: "TransactionApi"
    distributions: "DistributionApi"
    batches: "BatchApi"
    content: "ContentApi"
    groups: "GroupApi"
    identity: "IdentityApi"
    journal: "JournalApi"
    node: "NodeApi"
    cluster: "ClusterApi"

    patience_s: float = 0.0  # how long it is worth waiting for what is away

    def is_passing(self, error: HoldfastError) -> bool:
        """Whether a node that gave this error, or none at all, may answer soon."""
        del error
        return False

    async def close(self) -> None:
        """Lets go of whatever it holds."""


_TASKS, _PROCESSES = "holdfast.gateway.tasks.api", "holdfast.gateway.processes.api"
_HOMES = {
    "tasks": (_TASKS, "TaskApi"),
    "jobs": (_TASKS, "JobApi"),
    "incidents": (_TASKS, "IncidentApi"),
    "schedules": (_TASKS, "ScheduleApi"),
    "processes": (_PROCESSES, "ProcessApi"),
    "instances": (_PROCESSES, "InstanceApi"),
    "messages": (_PROCESSES, "MessageApi"),
    "transactions": ("holdfast.gateway.transactions.api", "TransactionApi"),
    "distributions": ("holdfast.gateway.distribution.api", "DistributionApi"),
    "batches": ("holdfast.gateway.batch.api", "BatchApi"),
    "content": ("holdfast.gateway.content.api", "ContentApi"),
    "groups": ("holdfast.gateway.groups.api", "GroupApi"),
    "identity": ("holdfast.gateway.identity.api", "IdentityApi"),
    "journal": ("holdfast.gateway.journal.api", "JournalApi"),
    "node": ("holdfast.gateway.node.api", "NodeApi"),
    "cluster": ("holdfast.gateway.cluster.api", "ClusterApi"),
}
SPACES = tuple(_HOMES)
"""The names of the namespaces."""


def namespace(space: str) -> type[Namespace]:
    """The namespace that the Api has under a name."""
    module, name = _HOMES[space]
    return getattr(import_module(module), name)
