"""Opens and closes the partitions that the group gives to this member.

For the group a partition is running while this member writes its log. To open it, the member takes
the log in a newer epoch, which fences the former owner. A fenced owner closes the partition and
reports an error: the group parks that partition alone, and has it run again by a message that is
read back. Until then the member takes nothing, so two members never fence each other in turns.
"""

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any

from holdfast.engine.kernel.runner import Runner
from holdfast.errors import HoldfastError, Unavailable
from holdfast.groups.api import OwnedPartition
from holdfast.limits import CLUSTER_LOOK_MS
from holdfast.logs import log


def token_of(partition: int) -> str:
    """What the group calls a partition of the engine; tokens sort as the numbers do."""
    return f"{partition:05}"


class KeptMoves:
    """What was done since the start."""

    def __init__(self) -> None:
        self.take_overs = 0  # from members that are gone
        self.take_over_seconds = 0.0
        self.moves = 0  # away from here, in order


class Keeping:
    """Keeps the port `GroupWork` over a runner."""

    def __init__(self, runner: Runner[Any], is_orphan: Callable[[int], bool]) -> None:
        """`is_orphan` tells whether the former owner of a partition is gone."""
        self.done = KeptMoves()
        self.given: set[int] = set()  # by the group, until they are closed
        self._runner = runner
        self._is_orphan = is_orphan
        self._ended: dict[int, asyncio.Future[None]] = {}
        self._closing: dict[int, asyncio.Task[None]] = {}
        runner.doors.may_take = self.given.__contains__

    async def run(self, owned: OwnedPartition) -> None:
        """Has a partition open until it is to be handed over; raises why it is not open."""
        partition = int(owned.token)
        await self._closed(partition)
        ended = self._ended[partition] = asyncio.get_running_loop().create_future()
        self.given.add(partition)
        try:
            leaving = asyncio.ensure_future(owned.leaving())
            try:
                if not await self._open(partition, leaving):
                    return
                owned.commit(self._runner.epoch(partition))
                await asyncio.wait([leaving, ended], return_when=asyncio.FIRST_COMPLETED)
            finally:
                leaving.cancel()
            if not owned.is_leaving:
                raise self._why(partition)
            await self._close(partition)
            self.done.moves += 1
        except asyncio.CancelledError:  # it is another's now, or the process ends
            self._close_beside(partition)
            raise
        finally:
            self.given.discard(partition)
            self._ended.pop(partition, None)

    def stopped(self, partition: int) -> None:
        """A partition is not open here any more."""
        ended = self._ended.get(partition)
        if ended is not None and not ended.done():
            ended.set_result(None)

    async def close(self) -> None:
        """Waits until everything is closed."""
        await asyncio.gather(*self._closing.values(), return_exceptions=True)

    # --- inside -------------------------------------------------------------------------------

    async def _open(self, partition: int, leaving: "asyncio.Future[None]") -> bool:
        """Whether it was opened before it was to be handed over again."""
        loop = asyncio.get_running_loop()
        began, is_orphan = loop.time(), self._is_orphan(partition)
        opening = loop.create_task(self._open_once_there(partition), name=f"open {partition}")
        try:
            await asyncio.wait([opening, leaving], return_when=asyncio.FIRST_COMPLETED)
            if not opening.done():
                return False
            opening.result()  # raises what is in the way
        finally:
            opening.cancel()
            with contextlib.suppress(asyncio.CancelledError, Exception):
                await opening
        seconds = loop.time() - began
        if is_orphan:
            self.done.take_overs += 1
            self.done.take_over_seconds += seconds
        log.info("partition opened", partition=partition, seconds=seconds, is_taken=is_orphan)
        return True

    async def _open_once_there(self, partition: int) -> None:
        """Opens a partition, once a state that is just arriving for its standby is there."""
        while partition in self._runner.standbys.closed_to:  # noqa: ASYNC110
            await asyncio.sleep(CLUSTER_LOOK_MS / 5_000)
        await self._runner.open(partition)

    async def _close(self, partition: int) -> None:
        """Finishes what the partition has accepted; a log that refuses it ends it, too."""
        runner = self._runner
        while True:
            with contextlib.suppress(HoldfastError):
                await runner.settled(partition)  # it may just be opened again
            if runner.epoch(partition) is None:
                return
            try:
                await runner.close_partition(partition)
            except HoldfastError as error:  # as while the state is rebuilt
                log.info("partition not closed yet", partition=partition, why=error.message)
                await asyncio.sleep(CLUSTER_LOOK_MS / 1_000)

    def _close_beside(self, partition: int) -> None:
        task = asyncio.get_running_loop().create_task(self._close(partition))
        self._closing[partition] = task
        task.add_done_callback(lambda _: self._closing.pop(partition, None))

    async def _closed(self, partition: int) -> None:
        """Waits until a former life of the partition is over."""
        if (task := self._closing.get(partition)) is not None:
            await asyncio.wait([task])
        if self._runner.epoch(partition) is not None:
            await self._close(partition)

    def _why(self, partition: int) -> HoldfastError:
        try:
            self._runner.processor(partition)
        except HoldfastError as error:
            return error
        return Unavailable(f"Partition {partition} was closed, and is open again")
