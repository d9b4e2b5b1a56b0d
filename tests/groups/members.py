"""Several members of a group in one process, on virtual time, over a journal in memory."""

import asyncio
from collections.abc import Callable, Sequence
from itertools import count

from holdfast.groups.api import Membership, NewPartition
from holdfast.groups.journal_log import JournalSyncLog
from holdfast.groups.local import Hub, LocalMembership
from holdfast.groups.owned import OwnedRun
from holdfast.groups.running import Group
from holdfast.journal.memory import MemoryJournal


class Work:
    """Counts up the offset of each partition, one a second, and notes who ran what."""

    def __init__(self, member: str, ran: list[tuple[str, str, int, object]]) -> None:
        self.member = member
        self.ran = ran
        self.raises: dict[str, Exception] = {}
        self.running: set[str] = set()

    async def run(self, owned: OwnedRun) -> None:
        assert owned.token not in self.running, "a partition runs once at a time"
        self.ran.append((self.member, owned.token, owned.epoch, owned.offset))
        self.running.add(owned.token)
        try:
            offset = owned.offset or 0
            while not owned.is_leaving:
                if (error := self.raises.get(owned.token)) is not None:
                    raise error
                offset += 1
                owned.commit(offset, watermark=offset)
                leaving = asyncio.ensure_future(owned.leaving())
                await asyncio.wait([leaving], timeout=1)
                leaving.cancel()
        finally:
            self.running.discard(owned.token)


class World:
    """A log, a hub, and members by name."""

    def __init__(self) -> None:
        self.journal = MemoryJournal()
        self.hub = Hub()
        self.ran: list[tuple[str, str, int, object]] = []
        self.works: dict[str, Work] = {}
        self.groups: dict[str, Group] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._starts = count(1)

    def log(self) -> JournalSyncLog:
        return JournalSyncLog(self.journal, "sync")

    def start(
        self,
        name: str,
        partitions: Sequence[str] = (),
        membership: Callable[[str], Membership] | None = None,
        log: JournalSyncLog | None = None,
    ) -> Group:
        work = self.works[name] = Work(name, self.ran)
        group = self.groups[name] = Group(
            "numbers", name, log or self.log(),
            membership or (lambda member: LocalMembership(self.hub, member)), work,
            partitions=[NewPartition(each) for each in partitions],
            new_incarnation=lambda: str(next(self._starts)),
        )  # fmt: skip
        self._tasks[name] = asyncio.get_running_loop().create_task(group.run())
        return group

    async def stop(self, name: str) -> None:
        self.groups.pop(name).stop()
        await self._tasks.pop(name)
        assert not self.works[name].running

    async def kill(self, name: str) -> None:
        """As after kill -9: the membership notices, nothing is said."""
        group, task = self.groups.pop(name), self._tasks.pop(name)
        member = group.member
        group.log = Broken()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        self.hub.leave(member)

    async def close(self) -> None:
        for name in list(self.groups):
            await self.stop(name)

    def owners(self) -> dict[str, list[str]]:
        """By partition, the members that run it."""
        found: dict[str, list[str]] = {}
        for name, work in self.works.items():
            if name in self.groups:
                for token in work.running:
                    found.setdefault(token, []).append(name)
        return found

    def check_one_owner(self, tokens: Sequence[str]) -> None:
        owners = self.owners()
        assert {token: len(names) for token, names in owners.items()} == dict.fromkeys(tokens, 1)

    def load(self) -> dict[str, int]:
        return {name: len(work.running) for name, work in self.works.items() if name in self.groups}


class Broken:
    """A log of a member that is dead."""

    async def append(self, body: bytes) -> None:
        raise AssertionError("the dead say nothing")
