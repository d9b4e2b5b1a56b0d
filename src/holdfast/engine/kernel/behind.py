"""State is written behind: after so many rows, or a while, what is durable goes to the store."""

import asyncio
from collections.abc import Callable
from typing import Any

from holdfast.engine.kernel.halt import Halt
from holdfast.engine.kernel.lives import Lives
from holdfast.engine.kernel.processor import Processor
from holdfast.engine.kernel.work import Work
from holdfast.limits import STORE_INTERVAL_MS, STORE_ROWS_MAX, STORE_SLICE_ROWS
from holdfast.state import Writing


class WriteBehind:
    """Writes the changes of all partitions together, each with the position it stands for."""

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
        self.rows_max = STORE_ROWS_MAX
        self.slice_rows = STORE_SLICE_ROWS

    def soon(self) -> None:
        """Begins to write now, if there is much, or after a while."""
        if sum(self._work.changed.values()) > self.rows_max and self._settled():
            self._begin()
        elif self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(STORE_INTERVAL_MS / 1000, self._later)

    def stop(self) -> None:
        """Writes nothing by itself any more."""
        for handle in (self._timer, self._slice):
            if handle is not None:
                handle.cancel()

    def write(self) -> None:
        """Hands all committed changes to the store at once; a step under way is not committed."""
        self._lives.finish_writing()
        self._freeze().finish()

    def _later(self) -> None:
        self._timer = None
        try:
            self._begin()
        except Exception as error:
            self._fail(error)

    def _begin(self) -> None:
        if self._lives.writing is None:  # what changes meanwhile is for the next one
            self._lives.writing = self._freeze()
            self._halt.meets_damage(self._go_on)

    def _freeze(self) -> Writing:
        frozen = self._settled()
        for processor in frozen:
            del self._work.changed[processor.partition]
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
            self._lives.writing = None
            if self._work.changed:
                self.soon()
        else:
            self._slice = asyncio.get_running_loop().call_soon(self._go_on_or_fail)

    def _go_on_or_fail(self) -> None:
        try:
            self._halt.meets_damage(self._go_on)
        except Exception as error:
            self._fail(error)
