"""What the node says about itself."""

from collections.abc import Awaitable, Callable

from holdfast.config import Config
from holdfast.engine.progress import FindProgress
from holdfast.gateway.access.asking import Asked
from holdfast.gateway.node.api import NodeApi
from holdfast.gateway.node.shapes import Health, PartitionView, Topology
from holdfast.metrics import Metrics
from holdfast.version import VERSION

UP = Health("UP")


class NodeService(NodeApi):
    """What can be asked about the node."""

    def __init__(
        self,
        asked: Asked,
        config: Config,
        metrics: Metrics,
        count: Callable[[], Awaitable[None]],
    ) -> None:
        self._asked = asked
        self._config = config
        self._metrics = metrics
        self._count = count  # brings numbers up to date that are only counted when asked for
        self.health_now: Callable[[], Health] = lambda: UP

    async def topology(self) -> Topology:
        found = await self._asked.ask_all(FindProgress())
        return Topology(
            VERSION,
            [
                PartitionView(partition, each.next_position, each.processed_position)
                for partition, each in enumerate(found, 1)
            ],
            self._config.host,
            self._config.port,
        )

    async def health(self) -> Health:
        return self.health_now()

    async def metrics(self) -> bytes:
        await self._count()
        return self._metrics.exposition()
