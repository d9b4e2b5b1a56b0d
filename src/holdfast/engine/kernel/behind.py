"""State is written behind: after so many rows, or a while, what is durable goes to the store."""

import asyncio
from collections.abc import Callable
from typing import Any

from holdfast.engine.kernel.halt import Halt
from holdfast.engine.kernel.lives import Lives
from holdfast.engine.kernel.recovery import write_state
from holdfast.engine.kernel.work import Work
from holdfast.limits import STORE_INTERVAL_MS, STORE_ROWS_MAX


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
        self.rows_max = STORE_ROWS_MAX  # with fewer, nobody waits long behind a store write

    def soon(self) -> None:
        """Writes now, if there is much, or after a while."""
        if sum(self._work.changed.values()) > self.rows_max:
            self._halt.meets_damage(self.write)
        elif self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(STORE_INTERVAL_MS / 1000, self._later)

    def stop(self) -> None:
        """Writes nothing by itself any more."""
        if self._timer is not None:
            self._timer.cancel()

    def _later(self) -> None:
        self._timer = None
        try:
            self._halt.meets_damage(self.write)
        except Exception as error:
            self._fail(error)

    def write(self) -> None:
        """Hands all committed changes to the store at once; a step under way is not committed."""
        processors, changed = self._lives.processors, self._work.changed
        written = [processors[each] for each in changed if not processors[each].state.undo_log]
        for processor in written:
            del changed[processor.partition]
        write_state(written, self._lives.store)
