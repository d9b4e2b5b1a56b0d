"""Groups that share partitions live with one partition: where that is open, their logs are."""

from holdfast.clock import Clock
from holdfast.engine.kernel.runner import Runner
from holdfast.engine.state import EngineState
from holdfast.errors import HoldfastError
from holdfast.gateway.groups.home import GroupsPort
from holdfast.gateway.groups.near import NearGroups
from holdfast.groups.home import GroupsHome
from holdfast.groups.journal_log import topic_of
from holdfast.journal import Journal
from holdfast.logs import log
from holdfast.partition_life import PartitionLife


class GroupsLife(PartitionLife):
    """The home of groups in this process, as its partition comes and goes."""

    def __init__(self, journal: Journal, clock: Clock, runner: Runner[EngineState]) -> None:
        self.home = GroupsHome(journal, clock)
        self.port: GroupsPort = NearGroups(self.home)  # or that of the member that has them
        super().__init__("groups", self.home, runner)

    async def needs(self) -> dict[str, int]:
        """By topic, what of the groups' logs no member may drop; all of it if nobody tells."""
        used = {topic_of(name): 0 for name in self.home.names()}
        if not used:
            return used
        try:
            return used | await self.port.needs()
        except HoldfastError as error:
            log.info("groups: not known what is needed", error=error.message)
            return used

    async def close(self) -> None:
        """The node closes."""
        await self.settled()
        await self.home.stop()

    def abandon(self) -> None:
        """The process ends."""
        super().abandon()
        self.home.abandon()
