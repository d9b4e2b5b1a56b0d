"""Does what the rule of placement says: takes partitions, opens them, hands them over.

It looks again whenever something may have changed: a connection came or went, a chain is newer, a
partition was closed. What it does takes a while and is done for each partition by itself.
"""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Protocol

from holdfast.cluster.calm import Calm
from holdfast.cluster.placing import (
    Action,
    HandOver,
    MemberSight,
    PlacementPlan,
    Sight,
    Take,
    action,
    is_orphan,
)
from holdfast.cluster.targets import check_target
from holdfast.errors import HoldfastError, InvalidState, Moved, NotFound, Unavailable
from holdfast.journal import Refused
from holdfast.limits import (
    CLUSTER_ACTOR_MS,
    CLUSTER_CALM_MS,
    CLUSTER_FOLLOW_MS,
    CLUSTER_LOOK_MS,
    CLUSTER_MOVES_MAX,
    CLUSTER_RETRY_MS_MAX,
    CLUSTER_RETRY_MS_MIN,
    CLUSTER_SETTLE_MS,
)
from holdfast.logs import log
from holdfast.sequence.api import Chain, LiveMember, Replica


class Chains(Protocol):
    """The part of the cluster's journal that is about who owns what."""

    on_chain: list[Callable[[Chain], None]]
    on_fenced: list[Callable[[int], None]]

    def is_fenced(self, partition: int) -> bool: ...

    def chain(self, partition: int) -> Chain: ...

    async def learn(self, partition: int) -> Chain: ...

    async def hand_over(self, partition: int, to: LiveMember) -> Chain | Refused: ...


class PartitionDoors(Protocol):
    """The part of the runner that is about which partitions are open."""

    async def open(self, partition: int, epoch: int | None = None) -> None: ...

    async def close_partition(self, partition: int) -> None: ...

    def epoch(self, partition: int) -> int | None: ...

    def lose(self, partition: int) -> None:
        """Another member has the partition."""
        ...

    def stand_by(self, partition: int) -> None: ...

    def forget(self, partition: int) -> None: ...

    def follow_again(self) -> None:
        """Standbys that could not go on try again."""
        ...


class View(Protocol):
    """What this member sees of the others."""

    def members(self) -> dict[str, MemberSight]:
        """All registered members, with this one."""
        ...

    def live(self) -> dict[str, LiveMember]:
        """Those that run, as etcd says."""
        ...

    def can_act(self) -> bool:
        """Whether etcd can be asked, and is believed."""
        ...

    def has_all(self, partition: int, member: str) -> bool:
        """Whether a member says that it has all of a partition, in its log and in its state."""
        ...

    def tell(self, chain: Chain) -> None:
        """Tells the others of a chain that was written here: they need not wait for etcd."""
        ...


class ConductedMoves:
    """What a conductor has done since its start."""

    def __init__(self) -> None:
        self.take_overs = 0
        self.take_over_seconds = 0.0
        self.moves = 0  # planned ones, away from here

    def taken_over(self, seconds: float) -> None:
        """A partition was taken from an owner that was gone."""
        self.take_overs += 1
        self.take_over_seconds += seconds


class _Doing:
    """What is under way for a partition."""

    def __init__(self, wanted: Action) -> None:
        self.wanted = wanted
        self.task: asyncio.Task[None] | None = None


class Conductor:
    """Runs from `start` to `stop`; `look` may be called at any time, by anybody."""

    def __init__(
        self,
        member: str,
        disk: str,
        partitions: int,
        replicas: int,
        journal: Chains,
        doors: PartitionDoors,
        view: View,
    ) -> None:
        self.done = ConductedMoves()
        self._replica = Replica(member, disk)
        self._me = member
        self._partitions = range(1, partitions + 1)
        self._replicas = replicas
        self._journal = journal
        self._doors = doors
        self._view = view
        self._doing: dict[int, _Doing] = {}
        self._failures: dict[int, int] = {}  # in a row
        self._not_before: dict[int, float] = {}  # of the loop
        self._standing: set[int] = set()
        self._ever_heard: set[str] = set()  # members, since the start
        self._orphans: dict[int, float] = {}  # without an owner that runs, since when
        self._news_at = 0.0  # when a chain has changed last
        self._follow_at = 0.0
        self._is_due = False
        self._timer: asyncio.TimerHandle | None = None
        self._is_stopped = True

    # --- life ---------------------------------------------------------------------------------

    def start(self) -> None:
        loop = asyncio.get_running_loop()
        self._is_stopped = False
        self._began = loop.time()
        self._calm = Calm(loop.time())
        self._journal.on_chain.append(self._learned)
        self._journal.on_fenced.append(lambda _: self.look())
        self.look()

    async def stop(self) -> None:
        """Begins nothing any more, and ends what can be given up."""
        self._is_stopped = True
        if self._timer is not None:
            self._timer.cancel()
        tasks = [each.task for each in self._doing.values() if each.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def look(self) -> None:
        """Something may have changed: looks at it in the next turn of the loop."""
        if not self._is_due and not self._is_stopped:
            self._is_due = True
            asyncio.get_running_loop().call_soon(self._look)

    def _learned(self, chain: Chain) -> None:
        self._news_at = asyncio.get_running_loop().time()
        self.look()

    def owned(self) -> list[int]:
        """The partitions that are open here."""
        return [each for each in self._partitions if self._doors.epoch(each) is not None]

    def is_used(self, partition: int) -> bool:
        """Whether a partition is open or followed here, or something is under way with it."""
        is_open = self._doors.epoch(partition) is not None
        return is_open or partition in self._doing or partition in self._standing

    # --- what is seen -------------------------------------------------------------------------

    def sight(self) -> Sight:
        """What this member sees of the cluster now."""
        now = asyncio.get_running_loop().time()
        members = self._view.members()
        heard = {name for name, each in members.items() if each.is_there}
        self._ever_heard |= heard
        is_settled = (
            self._view.live().keys() <= self._ever_heard
            or now - self._began >= CLUSTER_SETTLE_MS / 1_000
        )
        return Sight(
            self._me,
            members,
            self._replicas,
            len(self._partitions),
            is_settled=is_settled,
            is_calm=self._calm.has_lasted(CLUSTER_CALM_MS / 1_000, now),
            is_rebalancing=self._calm.is_rebalancing,
            has_all=self._view.has_all,
        )

    def _look(self) -> None:
        self._is_due = False
        if self._is_stopped:
            return
        loop = asyncio.get_running_loop()
        self._calm.see(frozenset(self._view.members().items()), loop.time())
        sight = self.sight()
        for partition in self._partitions:
            self._let_go(partition)
            self._stand_by(partition)
        if loop.time() >= self._follow_at:  # as when no member could be reached that had the log
            self._follow_at = loop.time() + CLUSTER_FOLLOW_MS / 1_000
            self._doors.follow_again()
        if self._view.can_act() and self._me in sight.members:
            self._act(sight)
        if self._timer is not None:
            self._timer.cancel()
        self._timer = loop.call_later(CLUSTER_LOOK_MS / 1_000, self.look)

    def _act(self, sight: Sight) -> None:
        now = asyncio.get_running_loop().time()
        is_balanced = True
        plan = PlacementPlan(lambda: map(self._journal.chain, self._partitions), sight)
        for partition in self._partitions:
            is_open = self._doors.epoch(partition) is not None
            chain = self._journal.chain(partition)
            if is_open and sight.is_calm and sight.is_rebalancing:
                is_balanced &= plan.owner(partition) == self._me
            if partition in self._doing:
                is_balanced = False
                continue
            is_overdue = self._is_overdue(partition, is_orphan(chain.last, sight), now)
            wanted = action(chain, sight, plan, is_open=is_open, is_overdue=is_overdue)
            is_balanced &= wanted is None
            if wanted is None or now < self._not_before.get(partition, 0):
                continue
            if isinstance(wanted, HandOver) and self._moves() >= CLUSTER_MOVES_MAX:
                continue
            self._begin(partition, wanted)
        if sight.is_calm and is_balanced:
            self._calm.rebalanced()

    def _is_overdue(self, partition: int, is_orphan: bool, now: float) -> bool:
        """Whether the member that is to take a partition does not do so.

        While chains change, others are at work: of thousands of partitions the last is taken late.
        """
        if not is_orphan:
            self._orphans.pop(partition, None)
            return False
        since = max(self._orphans.setdefault(partition, now), self._news_at)
        return now - since >= CLUSTER_ACTOR_MS / 1_000

    def _moves(self) -> int:
        return sum(isinstance(each.wanted, HandOver) for each in self._doing.values())

    def _let_go(self, partition: int) -> None:
        """A partition that somebody else took is not open here, though nothing was appended.

        Nor is one that was fenced: the fencing member may have given up, so it is taken again.
        """
        epoch, chain = self._doors.epoch(partition), self._journal.chain(partition)
        if epoch is None or partition in self._doing:
            return
        if epoch < chain.epoch or self._journal.is_fenced(partition):
            self._doors.lose(partition)

    def _stand_by(self, partition: int) -> None:
        """A partition whose log is kept here is followed, so that it opens quickly."""
        last = self._journal.chain(partition).last
        is_kept = last is not None and self._replica in last.replicas
        if is_kept and partition not in self._standing:
            self._standing.add(partition)
            self._doors.stand_by(partition)
        elif not is_kept and partition in self._standing:
            self._standing.discard(partition)
            self._doors.forget(partition)

    # --- what is done -------------------------------------------------------------------------

    def _begin(self, partition: int, wanted: Action) -> None:
        doing = self._doing[partition] = _Doing(wanted)
        doing.task = asyncio.get_running_loop().create_task(
            self._do(partition, doing), name=f"conduct {partition}"
        )
        doing.task.add_done_callback(partial(self._done, partition, doing))

    def _done(self, partition: int, doing: _Doing, task: "asyncio.Task[None]") -> None:
        if self._doing.get(partition) is doing:
            del self._doing[partition]
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("partition not placed", partition=partition, exc_info=error)
            self._failed(partition)
        self.look()

    async def _do(self, partition: int, doing: _Doing) -> None:
        try:
            if isinstance(doing.wanted, HandOver):
                await self._hand_over(partition, doing.wanted.to)
            elif self._doors.epoch(partition) is None:
                await self._open(partition, is_taken=isinstance(doing.wanted, Take))
        except Moved as error:  # others have not noticed yet that its owner is gone, or were first
            log.info("partition not opened", partition=partition, why=error.message)
            self._failed(partition, is_quick=True)
        except HoldfastError as error:
            log.warning(
                "partition not placed", partition=partition, why=error.message,
                wanted=type(doing.wanted).__name__,
            )  # fmt: skip
            self._failed(partition)
        else:
            self._failures.pop(partition, None)

    async def _open(self, partition: int, *, is_taken: bool) -> None:
        """Opens a partition, which takes it over where its open range is another start's."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        is_first = self._journal.chain(partition).last is None
        await self._doors.open(partition)
        took = loop.time() - began
        if is_taken and not is_first:
            self.done.taken_over(took)
        log.info("partition opened", partition=partition, seconds=took, is_taken=is_taken)

    async def _hand_over(self, partition: int, to: str) -> None:
        """Closes a partition that is open here, and opens its next range for somebody."""
        target = self._view.live().get(to)
        if target is None:
            raise Unavailable(f"Expected member {to!r} in etcd, but it is not there yet")
        began = asyncio.get_running_loop().time()
        await self._journal.learn(partition)  # without etcd it stays open here, and is not stuck
        await self._doors.close_partition(partition)
        handed = await self._journal.hand_over(partition, target)
        if isinstance(handed, Refused):
            raise Unavailable(f"Partition {partition} is not handed to {to!r}: {handed.reason}")
        self._view.tell(handed)
        took = asyncio.get_running_loop().time() - began
        self.done.moves += to != self._me
        log.info("partition moved", partition=partition, to=to, seconds=took)

    def _failed(self, partition: int, *, is_quick: bool = False) -> None:
        """Waits a moment before the next attempt: longer and longer, unless it is a race."""
        loop = asyncio.get_running_loop()
        failures = self._failures[partition] = self._failures.get(partition, 0) + 1
        pause_ms = CLUSTER_RETRY_MS_MIN
        if not is_quick:
            pause_ms = min(CLUSTER_RETRY_MS_MIN << min(failures, 10), CLUSTER_RETRY_MS_MAX)
        self._not_before[partition] = loop.time() + pause_ms / 1_000
        loop.call_later(pause_ms / 1_000, self.look)

    # --- by hand ------------------------------------------------------------------------------

    async def move(self, partition: int, to: str) -> None:
        """Hands a partition that is owned here to another member, because somebody says so."""
        if partition not in self._partitions:
            raise NotFound(f"Expected a partition from 1 to {len(self._partitions)}")
        check_target(partition, to, self._journal.chain(partition), self.sight())
        if self._doors.epoch(partition) is None or partition in self._doing:
            raise Unavailable(
                f"Partition {partition} is on the move; try again", retry_after_ms=CLUSTER_LOOK_MS
            )
        if not self._view.has_all(partition, to):
            raise InvalidState(
                f"Expected member {to!r} to have all of partition {partition}, but it is behind;"
                " try again later", member=to, partition=partition,
            )  # fmt: skip
        doing = self._doing[partition] = _Doing(HandOver(to))
        try:
            await self._hand_over(partition, to)
        finally:
            if self._doing.get(partition) is doing:
                del self._doing[partition]
            self.look()
