"""Instructions that processes execute, counted by `perf stat` where the machine counts them.

Most virtual machines do not: the hypervisor keeps the counters to itself. Then there are none, and
`missing` says why.
"""

import shutil
import signal
import subprocess
from collections.abc import Sequence
from functools import cache

EVENT = "instructions:u"
_END_SECONDS_MAX = 10


class Counting:
    """Counts an event in processes that run, and in what they start, from `begin` to `end`.

    The first milliseconds, until perf has attached itself, are not in it.
    """

    def __init__(self, pids: Sequence[int], event: str = EVENT) -> None:
        self._pids = pids
        self._event = event
        self._perf: subprocess.Popen[str] | None = None

    def begin(self) -> None:
        if missing(self._event) is not None:
            return
        pids = ",".join(map(str, self._pids))
        self._perf = subprocess.Popen(
            ["perf", "stat", "-x", ",", "-e", self._event, "--pid", pids],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )

    def end(self) -> float | None:
        """How often it happened; None if nobody counted."""
        if self._perf is None:
            return None
        self._perf.send_signal(signal.SIGINT)
        _, told = self._perf.communicate(timeout=_END_SECONDS_MAX)
        return count_of(told, self._event)


@cache
def missing(event: str = EVENT) -> str | None:
    """Why an event is not counted here; None if it is."""
    if shutil.which("perf") is None:
        return "there is no program perf"
    tried = subprocess.run(
        ["perf", "stat", "-x", ",", "-e", event, "true"], capture_output=True, text=True
    )
    if count_of(tried.stderr, event) is not None:
        return None
    if "<not supported>" in tried.stderr:
        return "the machine does not count them (perf: not supported)"
    return f"perf does not count them: {tried.stderr.strip().splitlines()[-1:] or tried.returncode}"


def count_of(told: str, event: str) -> float | None:
    """The number in what `perf stat -x ,` says of an event; None if it has none."""
    for line in told.splitlines():
        fields = line.split(",")
        if len(fields) > 2 and fields[2] == event:
            try:
                return float(fields[0])
            except ValueError:  # <not supported>, <not counted>
                return None
    return None
