"""What runs for the partitions of one member: started, told to let go, and reported."""

import asyncio
import traceback
from collections.abc import Sequence
from typing import Protocol

from holdfast.groups.api import NewPartition, Offset
from holdfast.groups.owned import OwnedRun
from holdfast.limits import GROUP_STOP_MS
from holdfast.logs import log


class ReportsTo(Protocol):
    """Who is told what became of the work."""

    def started(self, token: str) -> None: ...

    def committed(self, token: str, offset: Offset, watermark: int | None) -> None: ...

    def finished(self, token: str, children: Sequence[NewPartition]) -> None: ...

    def failed(self, token: str, error: str) -> None: ...

    def released(self, token: str) -> None: ...


class OwnedWork(Protocol):
    """Keeps the port `GroupWork`, and may use all that an `OwnedRun` of this room has."""

    async def run(self, owned: OwnedRun) -> None: ...


class Runs:
    """The runs of one member. A partition has one at a time, also across incarnations."""

    def __init__(self, group: str, work: OwnedWork) -> None:
        self._group = group
        self._work = work
        self._life: ReportsTo | None = None
        self._is_draining = False  # the member leaves: others learn of it by that
        self._owned: dict[str, OwnedRun] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}  # also those that are lost and still run

    def reports_to(self, life: ReportsTo) -> None:
        """From now on runs are of this incarnation."""
        assert not self._owned, "the former incarnation has lost all"
        self._life, self._is_draining = life, False

    def tokens(self) -> list[str]:
        """What runs here, by token."""
        return sorted(self._owned)

    def start(self, token: str, epoch: int, offset: Offset) -> None:
        """Runs a partition, once a former run of it has ended."""
        if self._is_draining:
            return
        assert self._life is not None and token not in self._owned, f"{token} runs already"
        owned = self._owned[token] = OwnedRun(self._life, token, epoch, offset)
        former = self._tasks.get(token)
        loop = asyncio.get_running_loop()
        task = loop.create_task(self._run(self._life, owned, former), name=f"group {token}")
        self._tasks[token] = task
        task.add_done_callback(lambda done: self._ended(token, done))

    def stop(self, token: str, why: str) -> None:
        """Lets go of a partition; the end is reported. Work that does not end is cancelled."""
        owned = self._owned.get(token)
        if owned is None:
            if self._life is not None:
                self._life.released(token)
            return
        if not owned.is_leaving:
            owned.leave(why)
            asyncio.get_running_loop().call_later(GROUP_STOP_MS / 1_000, self._cancel, owned)

    def durable(self, token: str, offset: Offset) -> None:
        """A commit was read back."""
        if (owned := self._owned.get(token)) is not None:
            owned.durable(offset)

    def epoch_started(self, epoch: int) -> None:
        """What runs here, runs in this epoch from now on."""
        for owned in self._owned.values():
            owned.epoch = epoch

    def lose_all(self, why: str) -> None:
        """Nothing is this member's any more: what runs is cancelled, and reports to nobody."""
        self._life = None
        lost, self._owned = self._owned, {}
        for token, owned in lost.items():
            owned.lose(why)
            self._tasks[token].cancel()

    async def drain(self) -> None:
        """Everything is told to let go; returns when nothing runs, or after a time."""
        self._is_draining = True
        for owned in list(self._owned.values()):
            owned.leave("the member leaves its group")
        tasks = [self._tasks[token] for token in self._owned]
        if tasks:
            await asyncio.wait(tasks, timeout=GROUP_STOP_MS / 1_000)

    # --- inside -------------------------------------------------------------------------------

    async def _run(
        self, life: ReportsTo, owned: OwnedRun, former: "asyncio.Task[None] | None"
    ) -> None:
        token = owned.token
        if former is not None and not former.done():
            await asyncio.wait([former])
        if self._owned.get(token) is not owned:
            return
        life.started(token)
        try:
            await self._work_on(owned)
        except asyncio.CancelledError:
            if self._forget(owned):  # it was told to let go and did not
                life.released(token)
            raise
        except Exception as error:
            if self._forget(owned):
                text = "".join(traceback.format_exception(error)).rstrip()
                log.warning(
                    "group: partition failed", group=self._group, token=token, error=repr(error)
                )
                life.failed(token, text)
        else:
            if self._forget(owned):
                if owned.children is None and owned.is_leaving:
                    if not self._is_draining:
                        life.released(token)
                else:
                    life.finished(token, owned.children or ())

    async def _work_on(self, owned: OwnedRun) -> None:
        try:
            await self._work.run(owned)
        finally:  # a function that kept it cannot commit any more
            owned.end()

    def _forget(self, owned: OwnedRun) -> bool:
        """Whether the run still counts: it does not once its incarnation is over."""
        if self._owned.get(owned.token) is not owned:
            return False
        del self._owned[owned.token]
        return True

    def _cancel(self, owned: OwnedRun) -> None:
        if self._owned.get(owned.token) is owned:
            log.warning("group: work did not let go and is cancelled", token=owned.token)
            self._tasks[owned.token].cancel()

    def _ended(self, token: str, task: "asyncio.Task[None]") -> None:
        if self._tasks.get(token) is task:
            del self._tasks[token]
