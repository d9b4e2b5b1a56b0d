"""One member of a group that runs: the shell around its core.

It reads the sync log back, is ready, and only then joins. From then on it feeds its core with what
it reads, with generations, with what its work reports and with the time, and does what the core
asks for. A member that is left out, that has lost the log or its place among the members, stops
its work and begins anew under another incarnation: nothing runs without a fresh epoch.
"""

import asyncio
import contextlib
import secrets
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from holdfast.errors import (
    AlreadyExists,
    Forbidden,
    HoldfastError,
    InvalidArgument,
    NotFound,
    Unavailable,
)
from holdfast.groups.api import (
    Entry,
    Generation,
    MemberId,
    Membership,
    NewPartition,
    Offset,
    SyncLog,
    member_id,
)
from holdfast.groups.core import GroupCore
from holdfast.groups.effects import (
    Alarm,
    Checkpoint,
    Durable,
    Effect,
    EpochStarted,
    LeftOut,
    Send,
    StartRun,
    StopRun,
)
from holdfast.groups.observing import PartitionSummary, summary_of
from holdfast.groups.runs import OwnedWork, Runs
from holdfast.groups.sending import SyncSending
from holdfast.groups.whole_log import read_whole
from holdfast.limits import (
    GROUP_PAUSE_MS,
    GROUP_PAUSE_MS_MAX,
    GROUP_STALE_MS_MAX,
    GROUP_TICK_MS,
)
from holdfast.logs import log

OpenMembership = Callable[[MemberId], Membership]
_FOR_GOOD = (Forbidden, InvalidArgument, AlreadyExists)  # a retry does not help


class Group:
    """A member of a group, from `run` until `stop`."""

    def __init__(
        self,
        group: str,
        name: str,
        sync_log: SyncLog,
        open_membership: OpenMembership,
        work: OwnedWork,
        *,
        partitions: Sequence[NewPartition] = (),
        card: bytes = b"",
        new_incarnation: Callable[[], str] = lambda: secrets.token_hex(4),
    ) -> None:
        self.group = group
        self.name = name
        self.alarms: list[str] = []
        self.member: MemberId = ""
        self.core: GroupCore | None = None  # of the present incarnation
        self.on_effect: list[Callable[[Effect], None]] = []
        self.log = sync_log
        self._open_membership = open_membership
        self._membership: Membership | None = None
        self._partitions = tuple(partitions)
        self._card = card
        self._new_incarnation = new_incarnation
        self._runs = Runs(group, work)
        self._life: _Life | None = None
        self._stopping = asyncio.Event()

    # --- its life -----------------------------------------------------------------------------

    async def run(self) -> None:
        """Is a member until `stop`; raises what makes it of no use to try again."""
        pause_ms = GROUP_PAUSE_MS
        while not self._stopping.is_set():
            life = self._life = _Life(self)
            try:
                await life.live(self._stopping)
                pause_ms = GROUP_PAUSE_MS
            except _FOR_GOOD:
                raise
            except HoldfastError as error:
                log.warning(
                    "group: begins anew", group=self.group, member=self.member, why=error.message
                )
                pause_ms = min(2 * pause_ms, GROUP_PAUSE_MS_MAX)
            finally:
                await life.end()
                self._life = None
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause_ms / 1_000):
                    await self._stopping.wait()

    def stop(self) -> None:
        """Lets go of everything; `run` returns when that is done."""
        self._stopping.set()

    def declare(self, partitions: Sequence[NewPartition]) -> None:
        """These partitions are to exist, too."""
        self._partitions += tuple(partitions)
        if self._life is not None:
            self._life.declare(partitions)

    @property
    def cards(self) -> dict[MemberId, bytes]:
        """What the members of the present generation say of themselves."""
        return {} if self._membership is None else dict(self._membership.cards)

    @property
    def owned(self) -> list[str]:
        """The partitions that run here, by token."""
        return self._runs.tokens()

    def partitions(self) -> dict[str, PartitionSummary]:
        """All partitions of the group, as far as the log was read."""
        if self.core is None:
            return {}
        found = self.core.state.partitions
        return {token: summary_of(found[token]) for token in sorted(found)}

    @property
    def watermark(self) -> int | None:
        """The lowest of all live partitions."""
        return None if self.core is None else self.core.state.watermark

    @property
    def epoch(self) -> int:
        """The present one."""
        return 0 if self.core is None else self.core.state.epoch

    @property
    def members(self) -> list[MemberId]:
        """Those of the present epoch."""
        return [] if self.core is None else sorted(self.core.state.members)


class _Life:
    """One incarnation: from reading back until it is left out, or the group is stopped."""

    def __init__(self, group: Group) -> None:
        self._group = group
        self.log = group.log
        self._runs = group._runs
        group.member = self._member = member_id(group.name, group._new_incarnation())
        self._core = GroupCore(self._member, group._partitions)
        group.core = self._core
        self._membership = group._open_membership(self._member)
        group._membership = self._membership
        self._sending = SyncSending(self.log.append, self._flush)
        self._runs.reports_to(self)
        self._next = 0  # what is before it was read
        self._checkpoint = 0
        self._over: asyncio.Future[str] | None = None
        self._flushing = False
        self._read_at = 0.0
        self._tasks: list[asyncio.Task[None]] = []

    async def live(self, stopping: asyncio.Event) -> None:
        """Reads back, joins, and returns when it is left out or to be stopped."""
        loop = asyncio.get_running_loop()
        self._over = loop.create_future()
        self._core.tick(_now_ms())  # the core knows the time before something happens
        await self._read_back()
        self._sending.start()
        await self._membership.join(self._group._card)
        self._begin(self._follow())
        self._begin(self._hear())
        self._begin(self._tick())
        stopped = loop.create_task(stopping.wait())
        try:
            await asyncio.wait(
                [stopped, self._over, *self._tasks], return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            stopped.cancel()
        for task in self._tasks:
            if task.done():
                task.result()  # raises what it ended with
        if self._over.done():
            log.warning(
                "group: left out", group=self._group.group, member=self._member,
                why=self._over.result(),
            )  # fmt: skip
        elif stopping.is_set():
            await self._drain()

    async def end(self) -> None:
        """Stops what runs, and is no member any more."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._runs.lose_all("the member left its group")
        await self._sending.close()
        with contextlib.suppress(HoldfastError):
            await self._membership.leave()

    async def _drain(self) -> None:
        """Everything that runs comes to an end and is committed before the member leaves."""
        await self._runs.drain()
        self._do(self._core.tick(_now_ms()))
        await self._sending.drained()

    def _begin(self, coroutine: Coroutine[Any, Any, None]) -> None:
        self._tasks.append(asyncio.get_running_loop().create_task(coroutine))

    # --- what goes in -------------------------------------------------------------------------

    async def _read_back(self) -> None:
        """All that the log keeps: it begins with a whole state, or with the group's first."""
        found = await read_whole(self.log)
        self._next = found.next
        self._read_at = asyncio.get_running_loop().time()
        self._do(self._core.restore(found.entries, found.is_complete))

    async def _follow(self) -> None:
        """Reads the log for ever; after an error again, but not for long without it."""
        pause_ms = GROUP_PAUSE_MS
        loop = asyncio.get_running_loop()
        while True:
            try:
                async for entries in self.log.stream(self._next):
                    self._read_at, pause_ms = loop.time(), GROUP_PAUSE_MS
                    self._take(entries)
                return
            except NotFound:  # it fell behind what is kept
                await self._read_back()
            except HoldfastError as error:
                stale_ms = (loop.time() - self._read_at) * 1_000
                if isinstance(error, _FOR_GOOD) or stale_ms > GROUP_STALE_MS_MAX:
                    raise
                log.info("group: log not read", group=self._group.group, why=error.message)
                await asyncio.sleep(pause_ms / 1_000)
                pause_ms = min(2 * pause_ms, GROUP_PAUSE_MS_MAX)

    def _take(self, entries: Sequence[Entry]) -> None:
        for entry in entries:
            self._do(self._core.read(entry))
        if entries:
            self._next = entries[-1].offset + 1

    async def _hear(self) -> None:
        async for generation in self._membership.generations():
            self._heard(generation)

    def _heard(self, generation: Generation) -> None:
        self._do(self._core.joined(generation))

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(GROUP_TICK_MS / 1_000)
            if not self._membership.is_held:
                raise Unavailable("the membership has not answered for the time of a session")
            if self._sending.is_stuck:
                raise Unavailable("the log has taken no message for too long")
            if not self._sending.is_full:
                self._do(self._core.tick(_now_ms()))

    def declare(self, partitions: Sequence[NewPartition]) -> None:
        self._do(self._core.declare(partitions))

    # --- what the work reports ----------------------------------------------------------------

    def started(self, token: str) -> None:
        self._do(self._core.started(token))

    def committed(self, token: str, offset: Offset, watermark: int | None) -> None:
        self._do(self._core.committed(token, offset, watermark))

    def finished(self, token: str, children: Sequence[NewPartition]) -> None:
        self._do(self._core.finished(token, children))

    def failed(self, token: str, error: str) -> None:
        self._do(self._core.failed(token, error))

    def released(self, token: str) -> None:
        self._do(self._core.released(token))

    # --- what comes out -----------------------------------------------------------------------

    def _do(self, effects: Sequence[Effect]) -> None:
        for effect in effects:
            self._do_one(effect)
            for tell in self._group.on_effect:
                tell(effect)
        if not self._flushing and not self._sending.is_full:
            self._flushing = True
            asyncio.get_running_loop().call_soon(self._flush)

    def _flush(self) -> None:
        """At the end of a turn: what others wait for goes out in one message."""
        self._flushing = False
        if self._over is None or self._over.done() or self._sending.is_full:
            return
        for effect in self._core.flush():
            self._do_one(effect)

    def _do_one(self, effect: Effect) -> None:
        match effect:
            case Send(message):
                self._sending.send(message)
            case StartRun(token, epoch, offset):
                self._runs.start(token, epoch, offset)
            case StopRun(token, why):
                self._runs.stop(token, why)
            case Durable(token, offset, _):
                self._runs.durable(token, offset)
            case EpochStarted(epoch):
                self._runs.epoch_started(epoch)
            case LeftOut(why):
                if self._over is not None and not self._over.done():
                    self._over.set_result(why)
            case Checkpoint(offset):
                # Up to the one before: a slow reader does not fall behind each time.
                before, self._checkpoint = self._checkpoint, offset
                if before:
                    self.log.discard(before)
            case Alarm(text):
                self._group.alarms.append(text)
                log.error("group: alarm", group=self._group.group, what=text)


def _now_ms() -> int:
    return int(asyncio.get_running_loop().time() * 1_000)
