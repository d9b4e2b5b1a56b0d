"""Notices an event loop that is blocked, and where."""

import asyncio
import sys
import threading
import traceback
from types import TracebackType

_TICK_S = 0.01
BLOCKED_TICKS = 5  # 50 ms


class Watchdog:
    """Asks a loop for a sign of life every 10 ms; five without an answer are a blocked loop.

    It counts its own ticks instead of time: a machine that is busy delays both alike. A loop that
    waits for something to happen is not blocked, however late its turn comes.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, thread_id: int | None = None) -> None:
        self.blocked: list[str] = []  # where the loop stood each time
        self._loop = loop
        self._thread_id = threading.get_ident() if thread_id is None else thread_id
        self._alive = threading.Event()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="watchdog", daemon=True)

    def __enter__(self) -> "Watchdog":
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._ended.is_set():
            self._alive.clear()
            try:
                self._loop.call_soon_threadsafe(self._alive.set)
            except RuntimeError:  # the loop is closed
                return
            for tick in range(1_000):
                if self._alive.wait(_TICK_S) or self._ended.is_set():
                    break
                if tick == BLOCKED_TICKS:
                    self._note()
            self._ended.wait(_TICK_S)

    def _note(self) -> None:
        frame = sys._current_frames().get(self._thread_id)
        if frame is not None and frame.f_code.co_name not in ("select", "_run_once"):
            self.blocked.append("".join(traceback.format_stack(frame, limit=12)))
