"""A whole node in memory, on virtual time, that can lose its power and come back.

With a `SimulatedDisk` its log is the real local journal on that disk; without one it is a journal
in memory, or the one that it is given. Its state is a `MemoryStore`, which a crash throws back to
what was last flushed.
"""

import asyncio
import contextlib

from holdfast.blobs.memory import MemoryBlobs
from holdfast.clock import Clock
from holdfast.config import Config
from holdfast.engine.batch.selector import Selector
from holdfast.engine.kernel.runner import TOPIC
from holdfast.gateway.batch.tables import OpenTables
from holdfast.journal import Journal
from holdfast.journal.local import LocalJournal
from holdfast.journal.memory import MemoryJournal
from holdfast.limits import SEGMENT_BYTES_MIN
from holdfast.metrics import Metrics
from holdfast.node import Node
from holdfast.state.memory import MemoryStore
from holdfast.testing.disk import DiskOutcome, SimulatedDisk
from holdfast.testing.loop import VirtualClock

_ROOT = "/journal"


class MemoryNode:
    """A node in memory, for tests that `crash` and `restart` it.

    >>> from holdfast.gateway.tasks.shapes import NewTask
    >>> from holdfast.testing.loop import run
    >>> async def story():
    ...     node = await MemoryNode(partitions=1).start()
    ...     (receipt,) = await node.gateway.tasks.submit([NewTask("greet")])
    ...     await node.crash()
    ...     await node.restart()
    ...     return (await node.gateway.tasks.get(receipt.task_key)).state
    >>> run(story())
    <JobState.WAITING: 'WAITING'>
    """

    def __init__(
        self,
        *,
        partitions: int = 1,
        clock: Clock | None = None,
        disk: SimulatedDisk | None = None,
        config: Config | None = None,
        selector: Selector | None = None,
        open_tables: OpenTables | None = None,
        journal: Journal | None = None,
    ) -> None:
        self.partitions = partitions
        self.disk = disk
        self.store = MemoryStore()
        self.config = config or Config()
        self.selector = selector
        self.open_tables = open_tables
        self.blobs = MemoryBlobs()  # of content; they outlive a crash
        self._given_clock = clock
        self._journal: Journal | None = journal
        self._node: Node | None = None

    @property
    def clock(self) -> Clock:
        """The clock that was given, or that of the running virtual loop."""
        if self._given_clock is None:
            loop = asyncio.get_running_loop()
            self._given_clock = getattr(loop, "clock", None) or VirtualClock()
        return self._given_clock

    @property
    def node(self) -> Node:
        """The running node."""
        assert self._node is not None, "the node is not running"
        return self._node

    @property
    def gateway(self):
        """What clients ask."""
        return self.node.gateway

    @property
    def journal(self) -> Journal:
        """The node's log."""
        assert self._journal is not None, "the node was never started"
        return self._journal

    async def start(self) -> "MemoryNode":
        """Starts a new node, or the node that a crash has left."""
        assert self._node is None, "the node is running"
        if self.disk is not None:
            self._journal = LocalJournal.open(
                _ROOT, clock=self.clock, disk=self.disk, segment_bytes=SEGMENT_BYTES_MIN
            )
        elif self._journal is None:
            self._journal = MemoryJournal(clock=self.clock)
        self.journal.create_topic(TOPIC, self.partitions)
        self._node = Node(
            self.journal, self.store, self.config, self.clock, Metrics(), self.selector,
            self.open_tables, content_store=lambda: self.blobs,
        )  # fmt: skip
        await self._node.begin()
        return self

    restart = start

    async def crash(self, outcome: DiskOutcome = DiskOutcome.DROP, *, seed: int = 0) -> None:
        """Simulates a power failure: unsynced writes are kept, dropped or torn."""
        self.node.runtime.batches.stop()
        self.node.content_life.abandon()
        self.node.content.abandon()
        self.node.groups.abandon()
        runner = self.node.runner
        assert runner._task is not None
        for task in (runner._task, *runner._outcomes.opening.values()):
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        runner.forget_timers()
        self._node = None
        self.store = self.store.crash()
        if self.disk is not None:
            self.disk = self.disk.after_crash(outcome, seed=seed)

    async def close(self) -> None:
        """Stops the node cleanly; on a disk it can be started again."""
        await self.node.close()
        self._node = None

    def dump(self, partition: int = 1) -> list[tuple[bytes, bytes]]:
        """All rows of a partition, for comparing two states."""
        return self.node.runner.processors[partition].state.dump()
