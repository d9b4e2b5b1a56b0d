"""The gateway inside the node: keeps the `Api` over the partitions, wherever they are."""

from collections.abc import Callable, Coroutine
from typing import Any

from holdfast.clock import Clock
from holdfast.config import Config
from holdfast.config.showing import Setting
from holdfast.engine.batch.selector import Selector
from holdfast.gateway.access.access import Access
from holdfast.gateway.access.asking import Asked
from holdfast.gateway.batch.service import BatchService
from holdfast.gateway.batch.tables import OpenTables, TablesSelector
from holdfast.gateway.cluster.service import ClusterHome, ClusterService
from holdfast.gateway.content.service import ContentGateway
from holdfast.gateway.distribution.service import DistributionService
from holdfast.gateway.groups.service import GroupGateway
from holdfast.gateway.identity.service import IdentityService
from holdfast.gateway.identity.sessions import SessionService
from holdfast.gateway.journal.service import JournalService
from holdfast.gateway.node.service import AllMembers, BackupHome, NodeService, with_problems
from holdfast.gateway.node.shapes import Health
from holdfast.gateway.processes.definitions import ProcessService
from holdfast.gateway.processes.instances import InstanceService
from holdfast.gateway.processes.messages import MessageService
from holdfast.gateway.rest.common import RestApi
from holdfast.gateway.rest.look import NodeLook
from holdfast.gateway.rest.tables import NoTables, SearchTables
from holdfast.gateway.rest.visible import VisibleTables
from holdfast.gateway.tasks.defaults import DefaultsOfTasks
from holdfast.gateway.tasks.incidents import IncidentService
from holdfast.gateway.tasks.jobs import JobService
from holdfast.gateway.tasks.schedules import ScheduleService
from holdfast.gateway.tasks.service import TaskService
from holdfast.gateway.transactions.service import TransactionService
from holdfast.metrics import Metrics
from holdfast.partitions import Partitions


class Gateway(RestApi):
    """Everything that can be asked of this node."""

    def __init__(
        self,
        partitions: Partitions,
        config: Config,
        clock: Clock,
        metrics: Metrics,
        open_tables: OpenTables | None = None,
    ) -> None:
        asked = Asked(partitions)
        self.access = Access(config, clock, asked) if config.authorization else None
        self.look = NodeLook(asked, clock)
        self._asked = asked
        self.show_tables(NoTables())
        defaults = DefaultsOfTasks(asked)
        self.tasks = TaskService(asked, config, clock, defaults)
        self.jobs = jobs = JobService(asked, clock, defaults)
        metrics.work.workers = jobs.workers
        self.incidents = IncidentService(asked, config)
        self.schedules = ScheduleService(asked, config, clock, defaults)
        self.distributions = distributions = DistributionService(asked)
        self.identity = identity = IdentityService(asked, distributions, clock)
        self.let_first_in = identity.let_first_in
        if self.access is not None:
            self.sessions = SessionService(self.access, asked, distributions, config, clock)
        self.processes = ProcessService(asked, distributions, clock)
        self.instances = InstanceService(asked, config)
        self.messages = MessageService(asked)
        self.transactions = TransactionService(asked, config, clock, defaults)
        self.journal = JournalService(asked)
        self.content = content = ContentGateway(asked)
        self.serve_content = content.serve
        self.groups = groups = GroupGateway(asked)
        self.serve_groups = groups.serve
        self.batches = batches = BatchService(asked, clock, open_tables)
        self.selector: Selector = TablesSelector(batches.open_tables)
        metrics.batch.numbers = batches.counts.numbers
        self.cluster = self._cluster = ClusterService(asked)
        self.node = self._node = NodeService(asked, config, metrics, batches.counts.count)

    def show_tables(self, tables: SearchTables) -> None:
        """From now on searches are answered from these."""
        self.tables: SearchTables = VisibleTables(tables, self._asked)

    def join(self, members: AllMembers) -> Callable[[], Coroutine[Any, Any, bytes]]:
        """From now on all members of the node are asked together; what gives this one's numbers."""
        self._node.members = members
        return self._node.own_metrics

    def join_cluster(self, home: ClusterHome) -> None:
        """From now on this node answers as a member of a cluster."""
        self._cluster.home = self._node.cluster = home

    def watch_health(self, problems: Callable[[], list[str]]) -> None:
        """From now on the node is DEGRADED while there are such problems."""
        shown = self._node.health_now
        self._node.health_now = lambda: with_problems(shown(), problems())

    def serve_backups(self, home: BackupHome) -> None:
        """From now on this makes backups of the node."""
        self._node.backups = home

    def show_health(self, health_now: Callable[[], Health]) -> None:
        """From now on this tells how the node is."""
        self._node.health_now = health_now

    def show_settings(self, settings: list[Setting]) -> None:
        """From now on these are shown: they know which come from a file or the environment."""
        self._node.settings_now = settings

    async def close(self) -> None:
        """Nothing: the code that opened the node of this gateway closes it."""
