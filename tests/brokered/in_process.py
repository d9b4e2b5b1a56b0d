"""Members in one process, over one log in memory and one hub: all but the broker is real."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

from holdfast.brokered.joining import BrokeredLog, join
from holdfast.brokered.member import BrokeredMember
from holdfast.config import Config
from holdfast.engine.jobs.values import JobIntent, NewJob
from holdfast.engine.kernel import Command
from holdfast.engine.kernel.runner import TOPIC
from holdfast.engine.partition import DISPATCH
from holdfast.groups.local import Hub, LocalMembership
from holdfast.journal.memory import MemoryJournal
from holdfast.records import RecordKind, ValueType

WAIT_SECONDS = 20.0
PARTITIONS = 6


class Kept(MemoryJournal):
    """A log that outlives its users."""

    async def close(self) -> None:
        """It stays open for the others."""


class Members:
    """A broker's log and group, and the members over it."""

    def __init__(self, folder: Path, **config: Any) -> None:
        self.kept = Kept()
        self.hub = Hub()
        self.members: dict[str, BrokeredMember] = {}
        self.dropped: list[BrokeredMember] = []
        self.submitted: dict[bytes, int] = {}  # payloads that were acknowledged
        self._folder = folder
        self._config = config

    async def start(self, *names: str, **config: Any) -> None:
        for name in names:
            broker = BrokeredLog(
                self.kept, "memory/test", "memory://test",
                lambda member, _: LocalMembership(self.hub, member),
            )  # fmt: skip
            settings = Config(partitions=PARTITIONS, member=name, **{**self._config, **config})
            self.members[name] = await join(self._folder / name, settings, broker)
        await self.settled()

    async def settled(self) -> None:
        """All members see the same owners, and each partition has one that is balanced."""
        await self.until(self._is_settled)

    def _is_settled(self) -> bool:
        views = [
            [(each.partition, each.member, each.epoch) for each in m.place.placements.all()]
            for m in self.members.values()
        ]
        counts = self.counts().values()
        return (
            all(view == views[0] for view in views)
            and {member for _, member, _ in views[0]} <= self.members.keys()
            and not any(m.without_owner() for m in self.members.values())
            and max(counts) - min(counts) <= 1
        )

    def counts(self) -> dict[str, int]:
        return {name: len(m.owned()) for name, m in self.members.items()}

    def owner(self, partition: int) -> str:
        owners = [name for name, m in self.members.items() if partition in m.owned()]
        assert len(owners) == 1, owners
        return owners[0]

    async def until(self, condition: Callable[[], object]) -> None:
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                while not condition():  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
        except TimeoutError:
            raise AssertionError(
                {
                    n: (m.owned(), m.problems(), m.place.placements.all())
                    for n, m in self.members.items()
                }
            ) from None

    async def submit(self, count: int) -> None:
        """Through all members in turn, to all partitions in turn."""
        members = list(self.members.values())
        for number in range(count):
            payload = b"%d" % len(self.submitted)
            command = Command(ValueType.JOB, JobIntent.CREATE, 0, NewJob("mail", payload))
            partition = 1 + number % PARTITIONS
            member = members[number // PARTITIONS % len(members)]
            await member.place.routed.submit(partition, [command])
            self.submitted[payload] = partition

    async def drop(self, name: str) -> BrokeredMember:
        """As kill -9 looks to the others. What is left of it believes to own its partitions."""
        member = self.members.pop(name)
        member._in_group.cancel()
        for task in member._tasks:
            task.cancel()
        self.hub.leave(member.group.member)
        await member.links.close()
        self.dropped.append(member)
        return member

    async def close(self) -> None:
        for member in [*self.members.values(), *self.dropped]:
            await member.close()

    async def check(self) -> None:
        """What was acknowledged is in the log, once."""
        found: list[bytes] = []
        for partition in range(1, PARTITIONS + 1):
            earliest = self.kept.bounds(TOPIC, partition).earliest
            entries = await self.kept.read(TOPIC, partition, earliest, 1 << 30)
            for record in DISPATCH.codec.decode_many([each.payload for each in entries]):
                kind = (record.kind, record.value_type, record.intent)
                if kind == (RecordKind.EVENT, ValueType.JOB, JobIntent.CREATED):
                    found.append(record.value.payload)
        assert len(found) == len(set(found))
        if not self._config.get("snapshot_store"):  # else the log was cut
            assert set(found) >= set(self.submitted)
        assert not [m.alarms + m.group.alarms for m in self.members.values() if m.alarms]
