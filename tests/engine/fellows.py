"""Members in one loop over one log that knows epochs, with a store each and no network between.

Partitions are opened, closed and taken over by the test. What members send one another goes to the
partition's owner directly; where nobody owns it, it is refused.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from holdfast.clock import Clock
from holdfast.config import Config
from holdfast.engine.kernel import Command, Reply
from holdfast.engine.kernel.runner import TOPIC
from holdfast.engine.partition import open_partition
from holdfast.errors import Moved
from holdfast.journal.memory import MemoryJournal
from holdfast.metrics import Metrics
from holdfast.node import Node
from holdfast.partitions import Partitions, Placement
from holdfast.runtime import Runtime
from holdfast.state.memory import MemoryStore


class SharedLog:
    """A log that outlives the members that write it."""

    def __init__(self, journal: MemoryJournal) -> None:
        self._journal = journal

    def __getattr__(self, name: str) -> Any:
        return getattr(self._journal, name)

    async def close(self) -> None:
        """It stays open for the others."""


class Everywhere:
    """Keeps the port `Partitions`: each call goes to the node that has the partition open."""

    def __init__(self, group: "Fellows", local: Any) -> None:
        self._group = group
        self._local = local
        self.count = group.partitions

    @property
    def near(self) -> Sequence[int]:
        return range(1, self.count + 1)

    @property
    def of_machine(self) -> Sequence[int]:
        return self.near

    def placement(self) -> list[Placement]:
        return [Placement(each, "", 1) for each in self.near]

    def submit(self, partition: int, commands: Sequence[Command], size_bytes: int = 0) -> Any:
        return self._group.owner(partition).partitions.submit(partition, commands, size_bytes)

    def submit_all(self, commands: Mapping[int, Sequence[Command]], size_bytes: int = 0) -> Any:
        return [self.submit(each, group, size_bytes) for each, group in commands.items()]

    def activate(self, partition: int, command: Command) -> "asyncio.Future[list[Reply]]":
        return self._group.owner(partition).partitions.activate(partition, command)

    async def ask(self, partition: int, query: Any, asker: Any = None, **how: Any) -> Any:
        return await self._group.owner(partition).partitions.ask(partition, query, asker, **how)

    def follow(self, topic: Any, tell: Any) -> Callable[[], None]:
        stops = [each.runtime.partitions.follow(topic, tell) for each in self._group.nodes.values()]
        return lambda: [stop() for stop in stops] and None

    def serve(self, waiting: Any) -> None:
        self._local.serve(waiting)


class FellowPlace:
    """Where a member stands: it has what it opens."""

    home = Path()
    far_content = None

    def __init__(self, group: "Fellows") -> None:
        self._group = group
        self.own: list[int] = []

    def around(self, runtime: Runtime) -> Partitions:
        return Everywhere(self._group, runtime.partitions)  # type: ignore[return-value]


class Fellows:
    """All members, and the log that they share."""

    def __init__(
        self,
        names: Sequence[str],
        partitions: int,
        clocks: Mapping[str, Clock] | None = None,
        journal: MemoryJournal | None = None,
        log: Callable[[Any, str], Any] = lambda journal, name: SharedLog(journal),
        selector: Any = None,
    ) -> None:
        clock = asyncio.get_running_loop().clock  # type: ignore[attr-defined]
        self.partitions = partitions
        self.journal = journal or MemoryJournal(clock=clock)
        self.journal.create_topic(TOPIC, partitions)
        self.stores = {name: MemoryStore() for name in names}
        self.nodes: dict[str, Node] = {}
        self._clocks = clocks or {}
        for name in names:
            own_clock = self._clocks.get(name, clock)
            self.nodes[name] = Node(
                log(self.journal, name), self.stores[name], Config(), own_clock, Metrics(),
                selector, place=FellowPlace(self),
            )  # fmt: skip

    async def start(self, standing_by: bool = True) -> "Fellows":
        for node in self.nodes.values():
            await node.begin()
            if standing_by:
                for partition in range(1, self.partitions + 1):
                    node.runner.stand_by(partition)
        return self

    async def close(self) -> None:
        for node in self.nodes.values():
            await node.close()

    def owner(self, partition: int) -> Any:
        """The runtime of the node that has a partition in the newest epoch."""
        found = [
            (epoch, node.runtime)
            for node in self.nodes.values()
            if (epoch := node.runner.epoch(partition)) is not None
        ]
        if not found:
            raise Moved(f"nobody owns partition {partition}", partition=partition)
        return max(found, key=lambda each: each[0])[1]

    async def caught_up(self, name: str) -> None:
        """Waits until the standbys of a member have applied everything."""
        runner = self.nodes[name].runner
        while any(runner.standbys.lags().values()):  # noqa: ASYNC110
            await asyncio.sleep(0.01)

    async def replayed(self, partition: int, upto: int | None = None) -> Any:
        """A processor that has read the log from its beginning, up to an offset."""
        fresh = open_partition(MemoryStore(), partition, self.partitions)
        offset = 0
        while entries := await self.journal.read(TOPIC, partition, offset, 2_000):
            fresh.replay([each for each in entries if upto is None or each.offset < upto])
            offset = entries[-1].offset + 1
        return fresh
