"""Answering requests for selections, beside the stream: one after the other, in its own thread.

Requests whose tables are not as far yet are left for the next look, so that none holds up another.
The first micro-batch of a Spark that has just started takes much longer than others: until it is
done, or something could be answered without it, nobody is refused because the tables stand still.
"""

import threading
from collections.abc import Callable
from pathlib import Path

from holdfast.clock import Clock
from holdfast.errors import DeadlineExceeded, HoldfastError, Internal
from holdfast.limits import SELECTION_ATTEMPTS_MAX, SELECTION_LOOK_MS, SELECTION_TABLES_WAIT_MS
from holdfast.logs import log
from holdfast.pipeline.select.requests import Request, close, is_open, open_requests, refuse
from holdfast.pipeline.select.snapshot import drop_snapshot
from holdfast.pipeline.tables.progress import load_progress

Select = Callable[[Request], object]  # makes the snapshot of a request, or raises


class SelectionServing:
    """Looks for requests and has them answered."""

    def __init__(
        self,
        root: Path,
        select: Select,
        clock: Clock,
        on_warm: Callable[[], None] = lambda: None,
    ) -> None:
        self._root = root
        self._select = select
        self._clock = clock
        self._on_warm = on_warm  # called once, when the tables are seen to get on
        self._first_batch = load_progress(root).batch
        self._is_warm = False
        self._seen: dict[str, tuple[int, float]] = {}  # how far its tables are, and since when
        self._failures: dict[str, int] = {}  # of requests that threw
        self._stopping = threading.Event()
        # Nobody waits for it when the process ends: the request stays, and is done again.
        self._thread = threading.Thread(target=self._run, name="selections", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """No more is begun. What is under way ends by itself, or with the process."""
        self._stopping.set()

    def _run(self) -> None:
        while not self._stopping.wait(SELECTION_LOOK_MS / 1_000):
            try:
                self.look()
            except OSError as error:  # of the folder, such as a full disk: the next look may do
                log.warning("selections failed", error=str(error))

    def look(self) -> None:
        """Answers what can be answered now."""
        requests = list(open_requests(self._root))
        names = {each.name for each in requests}
        for known in (self._seen, self._failures):
            for gone in known.keys() - names:
                del known[gone]
        progress = load_progress(self._root)
        if progress.batch != self._first_batch:
            self._warm_up()
        positions = progress.positions
        for each in requests:
            if self._stopping.is_set():
                return
            if not is_open(self._root, each.name):  # withdrawn while another was answered
                continue
            behind = [
                partition
                for partition, wanted in each.as_of.items()
                if positions.get(partition, 0) < wanted
            ]
            if behind:
                self._wait(each, behind[0], positions.get(behind[0], 0))
            else:
                self._warm_up()
                self._answer(each)

    def _warm_up(self) -> None:
        if not self._is_warm:
            self._is_warm = True
            self._on_warm()

    def _wait(self, wanted: Request, partition: int, position: int) -> None:
        """Tables that catch up are waited for; those that stand still only for a while."""
        now = self._clock.monotonic()
        reached, since = self._seen.setdefault(wanted.name, (position, now))
        if position != reached or not self._is_warm:
            self._seen[wanted.name] = (position, now)
            return
        if now - since < SELECTION_TABLES_WAIT_MS / 1_000:
            return
        error = DeadlineExceeded(
            f"Expected the tables to reach {wanted.as_of[partition]} of partition {partition}"
            f" within {SELECTION_TABLES_WAIT_MS // 1_000} s, but they stay at {position}"
        )
        refuse(self._root, wanted.name, error)

    def _answer(self, wanted: Request) -> None:
        try:
            self._select(wanted)
        except HoldfastError as error:
            refuse(self._root, wanted.name, error)
        except Exception as error:  # Spark died, or a bug: it is tried again, but not for ever
            self._failed(wanted, error)
        else:
            close(self._root, wanted.name)

    def _failed(self, wanted: Request, error: Exception) -> None:
        if self._stopping.is_set():
            return
        if not is_open(self._root, wanted.name):  # withdrawn, and its folder with it: no failure
            drop_snapshot(self._root, wanted.name)
            return
        failures = self._failures[wanted.name] = self._failures.get(wanted.name, 0) + 1
        log.warning("selection failed", name=wanted.name, failures=failures, error=str(error))
        if failures >= SELECTION_ATTEMPTS_MAX:
            reason = str(error).partition("\n")[0]
            message = f"The selection failed {failures} times: {type(error).__name__}: {reason}"
            refuse(self._root, wanted.name, Internal(message))
