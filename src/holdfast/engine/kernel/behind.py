"""State is written behind: after so many rows, or a while, what is durable goes to the store.

Partitions are written one after the other, small ones together. What the store does of a write
cannot be divided, so a write has no more rows than others can wait for.
"""

import asyncio
from collections.abc import Callable
from typing import Any

from holdfast.engine.kernel.halt import Halt
from holdfast.engine.kernel.lives import Lives
from holdfast.engine.kernel.others import others
from holdfast.engine.kernel.processor import Processor
from holdfast.engine.kernel.work import Work
from holdfast.limits import (
    STORE_INTERVAL_MS,
    STORE_ROWS_MAX,
    STORE_SLICE_ROWS,
    STORE_WRITE_ROWS,
)
from holdfast.state import Writing


class WriteBehind:
    """Writes the changes of each partition with the position they stand for."""

    def __init__(
        self,
        lives: Lives[Any],
        work: Work[Any],
        halt: Halt,
        fail: Callable[[BaseException], None],
    ) -> None:
        self._lives = lives
        self._work = work
        self._halt = halt
        self._fail = fail
        self._timer: asyncio.TimerHandle | None = None
        self._slice: asyncio.Handle | None = None
        self._overdue: set[int] = set()  # partitions that have waited for long enough
        self._is_stopped = False
        self.rows_max = STORE_ROWS_MAX
        self.slice_rows = STORE_SLICE_ROWS

    def soon(self) -> None:
        """Begins to write now, if there is much or it is time, or after a while."""
        if self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(STORE_INTERVAL_MS / 1000, self._later)
        if self._lives.writing is None and (following := self._following()):
            self._lives.writing = self._freeze(following)
            self._halt.meets_damage(self._go_on)

    def stop(self) -> None:
        """Writes nothing by itself any more."""
        self._is_stopped = True
        for handle in (self._timer, self._slice):
            if handle is not None:
                handle.cancel()

    async def write_most(self) -> None:
        """Hands what has changed until now to the store in slices; few rows are left then."""
        self._overdue = set(self._work.changed)
        self.soon()
        while self._lives.writing is not None and not (self._halt.reason or self._is_stopped):
            await others()

    def write(self) -> None:
        """Hands all committed changes to the store at once; a step under way is not committed."""
        self._lives.finish_writing()
        self._freeze(self._settled()).finish()

    def _later(self) -> None:
        self._timer = None
        self._overdue = set(self._work.changed)
        try:
            if self._overdue:
                self.soon()
        except Exception as error:
            self._fail(error)

    def _following(self) -> list[Processor[Any]]:
        """The partitions to write now: the largest, and others as long as they are one write."""
        changed = self._work.changed
        rows = changed.values()
        is_much = sum(rows) > self.rows_max or max(rows, default=0) > STORE_WRITE_ROWS
        if not is_much and not self._overdue:
            return []
        found: list[Processor[Any]] = []
        room = STORE_WRITE_ROWS
        for each in sorted(self._settled(), key=lambda each: -changed[each.partition]):
            if is_much or each.partition in self._overdue:
                room -= changed[each.partition]
                if found and room < 0:
                    break
                found.append(each)
        return found

    def _freeze(self, frozen: list[Processor[Any]]) -> Writing:
        for processor in frozen:
            del self._work.changed[processor.partition]
            self._overdue.discard(processor.partition)
        return Writing(self._lives.store, [(each.state, each.progress) for each in frozen])

    def _settled(self) -> list[Processor[Any]]:
        """The partitions that have changed and have no step under way: their changes can go."""
        processors = self._lives.processors
        if self._lives.standing:
            processors = processors | self._lives.standing
        changed = [processors[each] for each in self._work.changed]
        return [each for each in changed if not each.state.undo_log]

    def _go_on(self) -> None:
        """A slice now, and the next one when others have had a turn."""
        writing = self._lives.writing
        if writing is None or self._halt.reason:
            return  # it was finished, or the store is replaced
        if writing.go_on(self.slice_rows):
            following = self._following()
            self._lives.writing = self._freeze(following) if following else None
        if self._lives.writing is not None:
            self._slice = asyncio.get_running_loop().call_soon(self._go_on_or_fail)
        elif self._work.changed:
            self.soon()

    def _go_on_or_fail(self) -> None:
        try:
            self._halt.meets_damage(self._go_on)
        except Exception as error:
            self._fail(error)
