"""Nodes with a folder each over one log in memory, as members of a cluster have it.

Each has its own beginning of the log: what one cuts, another may still read.
"""

import asyncio
from pathlib import Path
from typing import Any

from holdfast.config import Config
from holdfast.engine.kernel.runner import TOPIC
from holdfast.engine.partition import open_partition
from holdfast.errors import NotFound
from holdfast.journal import Bounds
from holdfast.journal.local import LocalJournal
from holdfast.journal.memory import MemoryJournal
from holdfast.node import LocalNode
from holdfast.partitions import Partitions
from holdfast.runtime import Runtime
from holdfast.state.memory import MemoryStore

PARTITIONS = 2


class MemberLog:
    """The shared log as one member has it: from an offset of its own on."""

    def __init__(self, shared: MemoryJournal, local: LocalJournal | None = None) -> None:
        self._shared = shared
        self._local = local
        self.earliest: dict[tuple[str, int], int] = {}
        self.healed: list[str] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._shared, name)

    @property
    def folder(self) -> str:
        assert self._local is not None
        return self._local.folder

    def heal(self, file: str) -> None:
        self.healed.append(file)

    def bounds(self, topic: str, partition: int) -> Bounds:
        bounds = self._shared.bounds(topic, partition)
        return bounds._replace(earliest=self.earliest.get((topic, partition), bounds.earliest))

    def discard(self, topic: str, partition: int, before: int) -> None:
        self.earliest[topic, partition] = max(self.bounds(topic, partition).earliest, before)

    async def begin_at(self, partition: int, positions: dict[str, int]) -> None:
        for topic, offset in positions.items():
            self.earliest[topic, partition] = offset

    def _check(self, topic: str, partition: int, offset: int) -> None:
        bounds = self.bounds(topic, partition)
        if not bounds.earliest <= offset <= bounds.next:
            raise NotFound(f"{offset} is not in {bounds}", earliest=bounds.earliest)

    async def read(self, topic: str, partition: int, offset: int, *rest: int) -> Any:
        self._check(topic, partition, offset)
        return await self._shared.read(topic, partition, offset, *rest)

    def stream(self, topic: str, partition: int, start: int) -> Any:
        self._check(topic, partition, start)
        return self._shared.stream(topic, partition, start)

    def enforce_retention(self, *_: Any, **__: Any) -> None:
        """Others need it."""

    async def close(self) -> None:
        """It stays open for the others; the files do not."""
        if self._local is not None:
            await self._local.close()


class MemberPlace:
    """A member that has what it opens."""

    far_content = None

    def __init__(self, home: Path) -> None:
        self.home = home
        self.own: list[int] = []

    def around(self, runtime: Runtime) -> Partitions:
        return runtime.partitions


async def open_member(folder: Path, shared: MemoryJournal, **config: Any) -> LocalNode:
    async def over(local: LocalJournal, _: Any) -> Any:
        shared.create_topic(TOPIC, PARTITIONS)
        log = MemberLog(shared, local)
        if (folder / "earliest").exists():
            log.earliest = eval((folder / "earliest").read_text())
        return log

    node = await LocalNode.open(
        folder, Config(ended_kept_max=0, **config), place=MemberPlace(folder), over=over
    )
    for partition in range(1, PARTITIONS + 1):
        node.runner.stand_by(partition)
    return node


async def close_member(folder: Path, node: LocalNode) -> None:
    journal: Any = node.journal
    await node.close()
    (folder / "earliest").write_text(repr(journal.earliest))


async def caught_up(node: LocalNode) -> None:
    async with asyncio.timeout(20):
        while any(node.runner.standbys.lags().values()):  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def replayed(shared: MemoryJournal, partition: int) -> Any:
    fresh = open_partition(MemoryStore(), partition, PARTITIONS)
    offset = 0
    while entries := await shared.read(TOPIC, partition, offset):
        fresh.replay(entries)
        offset = entries[-1].offset + 1
    return fresh
