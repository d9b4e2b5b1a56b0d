"""What becomes of steps, for each partition by itself: done, moved, not known, or later.

A refusal closes its partition: nothing of the step happened, and another owner has the log. After
an unknown outcome nobody can say what the log has, so the partition's memory is dropped and read
from the log again. Neither touches a neighbour.
"""

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from holdfast.engine.kernel.behind import WriteBehind
from holdfast.engine.kernel.lives import Lives, tell_awaited, unknown
from holdfast.engine.kernel.work import Stepped, Work
from holdfast.errors import DataLoss, ResourceExhausted, Unknown
from holdfast.journal import Appended, Outcome, Refused
from holdfast.limits import LATE_APPEND_MS
from holdfast.logs import log

S = TypeVar("S")


class Outcomes(Generic[S]):
    """Acts on what the log says of steps, and knows which partitions wait for it."""

    def __init__(
        self,
        lives: Lives[S],
        work: Work[S],
        behind: WriteBehind,
        look_at: Callable[[Sequence[int]], None],
        wake: Callable[[int], None],
        fail: Callable[[BaseException], None],
    ) -> None:
        self._lives = lives
        self._work = work
        self._behind = behind
        self._look_at = look_at
        self._wake = wake
        self._fail = fail
        self.away: set[int] = set()  # partitions that no step may begin on for now
        self.unsettled: set[int] = set()  # whose state holds what is not known to be durable
        self.late: dict[int, Stepped] = {}  # steps whose outcome takes longer than their round
        self.opening: dict[int, asyncio.Task[None]] = {}  # again, after an unknown outcome
        self._landings: list[asyncio.Future[None]] = []  # who waits for a step to land

    def begin(self, steps: Sequence[Stepped]) -> None:
        """Steps go to the log."""
        self.unsettled.update([each.partition for each in steps])

    def end(self) -> None:
        """All that a round can know is known."""
        self.unsettled.clear()
        if self.late or self.opening:
            self.unsettled.update(self.late, self.opening)

    def land(self, stepped: Stepped, outcome: Outcome) -> None:
        """Acts on what became of a step, for its partition alone."""
        partition, step, taken = stepped
        if isinstance(outcome, Appended):
            try:
                self._work.finish(partition, step, taken, outcome)
            except DataLoss:
                raise
            except Exception as error:
                self._work.give_up(stepped, unknown(partition))
                self.stop(partition, error)
        elif isinstance(outcome, Refused):
            self.away.add(partition)  # it may have been woken meanwhile
            self._lives.moved(stepped, outcome, self._work)
        elif isinstance(outcome, Unknown):
            self._open_again(stepped, outcome)
        else:
            self.away.add(partition)
            self.late[partition] = stepped
            outcome.add_done_callback(lambda late: self._land_late(stepped, late))

    def stop(self, partition: int, error: Exception) -> None:
        """The partition cannot go on."""
        self.away.add(partition)
        self._lives.stop(partition, error, self._work)

    def _land_late(self, stepped: Stepped, late: "asyncio.Future[Appended | Refused]") -> None:
        partition = stepped.partition
        if self.late.pop(partition, None) is None:
            return  # nobody waits for it any more
        self.away.discard(partition)
        self.unsettled.discard(partition)
        try:
            self.land(stepped, late.result())
            self._behind.soon()
        except (Unknown, asyncio.CancelledError) as error:
            self._open_again(stepped, error)
        except ResourceExhausted as error:
            self._work.abandon(*stepped, error)
        except Exception as error:
            self._fail(error)
        self.landed()  # before the partition goes on: waiting tasks see its state now
        self._wake(partition)

    def _open_again(self, stepped: Stepped, reason: BaseException) -> None:
        """Nobody knows whether the log has a step: its partition begins anew from what it has."""
        partition = stepped.partition
        log.warning("partition opened again", partition=partition, reason=str(reason))
        self._work.give_up(stepped, unknown(partition))
        tell_awaited(self._lives.processors[partition], partition)
        self._lives.leave(partition, self._work)
        self.away.add(partition)
        self.unsettled.add(partition)
        task = asyncio.get_running_loop().create_task(self._opened_again(partition))
        self.opening[partition] = task

    async def _opened_again(self, partition: int) -> None:
        is_open = await self._lives.open_again(partition, self._work)
        del self.opening[partition]
        self.unsettled.discard(partition)
        if is_open:
            self.away.discard(partition)
            self._look_at([partition])
        self._wake(partition)
        self.landed()

    # --- waiting ------------------------------------------------------------------------------

    async def reopened(self, partition: int) -> None:
        """Waits until a partition is no longer being opened again, whether it is open then or not.

        To open it beside that would take it twice: the second one would close what the first made.
        """
        while (task := self.opening.get(partition)) is not None:
            await asyncio.wait([task])

    async def landing(self) -> None:
        """Waits until something has landed."""
        landing: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._landings.append(landing)
        await landing

    def landed(self) -> bool:
        """Something has landed: those who wait look again. Returns whether somebody waits."""
        if not self._landings:
            return False
        landings, self._landings = self._landings, []
        for landing in landings:
            if not landing.done():
                landing.set_result(None)
        return True

    async def wait_for_late(self) -> None:
        """The node closes: what is late has a moment, then nobody waits for it any more."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LATE_APPEND_MS / 1000):
                while self.late:
                    await self.landing()
        self.give_up_late()

    def give_up_late(self) -> None:
        """Tells the callers of late appends that the outcome is not known."""
        for partition, stepped in self.late.items():
            self._work.give_up(stepped, unknown(partition))
            self._work.changed.pop(partition, None)
        self.late.clear()

    def cancel(self) -> None:
        """Opens nothing any more."""
        for task in self.opening.values():
            task.cancel()
