"""A command that runs beside this one, in a process of its own, and is started again if it ends."""

import subprocess
import sys
import threading
from collections.abc import Sequence
from types import TracebackType

from tenacity import RetryCallState, Retrying, retry_if_exception_type, wait_exponential

from holdfast.cli.exit_codes import ExitCode
from holdfast.logs import log

_RESTART_SECONDS_MAX = 60
_HOPELESS = (ExitCode.USAGE, ExitCode.NOT_FOUND, ExitCode.DATA_LOSS)  # it would end so again


class _EndedError(Exception):
    """The command ended, though nobody asked it to."""


class Beside:
    """`holdfast` with some arguments, as long as this context is open.

    One that says that it cannot do it, whenever it is asked, is not started again.
    """

    def __init__(self, arguments: Sequence[str]) -> None:
        self._name = arguments[0]
        self._command = [sys.executable, "-m", "holdfast.cli", *arguments]
        self._stopping = threading.Event()
        self._starting = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._thread = threading.Thread(target=self._keep, name=self._name)

    @property
    def pid(self) -> int | None:
        """Of the process that runs now."""
        return None if self._process is None else self._process.pid

    def __enter__(self) -> "Beside":
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stopping.set()
        with self._starting:
            if self._process is not None:
                self._process.terminate()
        self._thread.join()

    def _keep(self) -> None:
        attempts = Retrying(
            retry=retry_if_exception_type(_EndedError),
            wait=wait_exponential(max=_RESTART_SECONDS_MAX),
            stop=lambda _: self._stopping.is_set(),
            sleep=self._wait,
            before_sleep=self._say,
            retry_error_callback=lambda _: None,
        )
        attempts(self._run)

    def _run(self) -> None:
        with self._starting:
            if self._stopping.is_set():
                return
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL
            )
        status = self._process.wait()
        if not self._stopping.is_set() and status not in _HOPELESS:
            raise _EndedError(f"it ended with status {status}")

    def _wait(self, seconds: float) -> None:
        self._stopping.wait(seconds)

    def _say(self, state: RetryCallState) -> None:
        error = state.outcome.exception() if state.outcome is not None else None
        seconds = state.next_action.sleep if state.next_action is not None else 0
        log.error(f"{self._name} is started again", reason=str(error), in_seconds=seconds)
