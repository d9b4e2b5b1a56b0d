"""Opens and closes partitions while a node runs."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

from holdfast.engine.kernel.halt import Halt
from holdfast.engine.kernel.lives import Lives, MayTake, moved
from holdfast.engine.kernel.outcomes import Outcomes
from holdfast.engine.kernel.processor import Processor
from holdfast.engine.kernel.recovery import write_state
from holdfast.engine.kernel.standbys import Standbys
from holdfast.engine.kernel.work import Work
from holdfast.errors import HoldfastError, InvalidState, NotFound

S = TypeVar("S")

Prepare = Callable[[int], Awaitable[None]]
"""Sees to it that the store has rows of a partition that its log goes on from."""


class Doors(Generic[S]):
    """How a partition comes to be open here, and ceases to be."""

    def __init__(
        self,
        lives: Lives[S],
        work: Work[S],
        outcomes: Outcomes[S],
        standbys: Standbys[S],
        halt: Halt,
        look_at: Callable[[Sequence[int]], None],
        something_new: Callable[[], None],
    ) -> None:
        self.prepare: Prepare | None = None  # where rows may have to come from elsewhere
        self._lives = lives
        self._work = work
        self._outcomes = outcomes
        self._standbys = standbys
        self._halt = halt
        self._look_at = look_at
        self._something_new = something_new

    @property
    def may_take(self) -> MayTake | None:
        return self._lives.may_take

    @may_take.setter
    def may_take(self, may_take: MayTake) -> None:
        """Has others decide which partitions may be taken here, first and again."""
        self._lives.may_take = may_take

    async def open(self, partition: int, epoch: int | None = None) -> None:
        """Opens a partition that is not open here, in an epoch or the next one.

        Its standby goes on until the partition is taken; only the rest of the log is read then. One
        that is being opened again after an unknown outcome is waited for.
        """
        self._halt.check()
        lives = self._lives
        if partition in self._outcomes.opening:
            await self._outcomes.reopened(partition)
            if epoch is None and partition in lives.epochs:
                return
        if partition in lives.opening:
            raise InvalidState(f"Partition {partition} is being opened here already")
        self._standbys.check_there(partition)
        lives.opening.add(partition)
        try:
            taken = await lives.take(partition, epoch)
            self._halt.check()
            processor = self._standbys.give(partition) or await self._read_state(partition)
            self._standbys.check_reaches(processor)
            await lives.bring_up(processor, taken)
        except NotFound:
            self._standbys.lacks(partition)  # no member has the log any more
            raise
        except (HoldfastError, asyncio.CancelledError):
            self._standbys.resume_one(partition)
            raise
        except Exception as error:
            self._outcomes.stop(partition, error)
            raise lives.why_closed(partition) from error
        finally:
            lives.opening.discard(partition)
            self._something_new()  # a caller that waits until nothing is being opened looks again
        self._work.changed[partition] = lives.processors[partition].state.changed_rows()
        self._outcomes.away.discard(partition)
        self._look_at([partition])

    async def _read_state(self, partition: int) -> Processor[S]:
        if self.prepare is not None:
            await self.prepare(partition)
            self._halt.check()
        return self._lives.read_state(partition)

    async def close(self, partition: int) -> None:
        """Finishes what a partition has accepted, writes its state and lets go of it."""
        lives, outcomes, inbox = self._lives, self._outcomes, self._lives.inbox
        self._halt.check()
        if partition not in lives.epochs:
            raise lives.why_closed(partition)
        inbox.shut(partition)
        processor = lives.processors[partition]
        while partition in lives.epochs and (
            inbox.has(partition)
            or partition in outcomes.unsettled
            or processor.awaited_tickets()
            or self._halt.reason
        ):
            await outcomes.landing()
            processor = lives.processors.get(partition, processor)
        if partition in lives.epochs:
            outcomes.away.add(partition)
            lives.finish_writing()
            write_state([processor], lives.store)
            lives.drop(partition, moved(partition, "it was closed"), self._work)

    def lose(self, partition: int) -> None:
        """Another member has the partition in a newer epoch: what is in memory does not count.

        A step under way hears so from the log.
        """
        if partition in self._lives.epochs and partition not in self._outcomes.unsettled:
            self._outcomes.away.add(partition)
            error = moved(partition, "another member has it in a newer epoch")
            self._lives.drop(partition, error, self._work)
