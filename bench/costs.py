"""What a measurement cost: processor time and instructions of a unit, by the part that took them.

How many units a second a machine does depends on who else runs on it. The processor time of a unit
depends on that much less, and the instructions of a unit hardly at all.
"""

import contextlib
import statistics
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

import psutil

from bench.instructions import Counting

_OF_PROCESS = 2  # CPUCLOCK_SCHED: all threads, also those that ended, in nanoseconds


@dataclass(frozen=True)
class Sample:
    """One measurement: its value, and what a unit cost each part."""

    value: float
    cpu_us: Mapping[str, float]
    instructions: Mapping[str, float] = field(default_factory=dict)  # none where none are counted

    @property
    def all_us(self) -> float:
        return sum(self.cpu_us.values())


class Meter:
    """The processor time that processes take while the block runs, by the names of their parts.

    A part is a process with all that it has started. It may have ended by the end of the block,
    as long as nobody has waited for it.
    """

    def __init__(self, parts: Mapping[str, Sequence[int]]) -> None:
        self._parts = {name: list(pids) for name, pids in parts.items() if pids}
        self._counting = {name: Counting(pids) for name, pids in self._parts.items()}
        self._before: dict[str, float] = {}
        self.seconds: dict[str, float] = {}
        self.instructions: dict[str, float] = {}

    def __enter__(self) -> Self:
        for each in self._counting.values():
            each.begin()
        self._before = self._now()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        after = self._now()
        self.seconds = {name: after[name] - self._before[name] for name in after}
        counts = {name: each.end() for name, each in self._counting.items()}
        self.instructions = {name: count for name, count in counts.items() if count is not None}

    def _now(self) -> dict[str, float]:
        return {name: sum(map(tree_cpu_seconds, pids)) for name, pids in self._parts.items()}

    def sample(self, value: float, units: int) -> Sample:
        """A measured value with what each of so many units cost."""
        return Sample(
            value,
            {name: seconds / units * 1e6 for name, seconds in self.seconds.items()},
            {name: count / units for name, count in self.instructions.items()},
        )


def tree_cpu_seconds(pid: int) -> float:
    """The processor time of a process and of all that it has started, also of those that ended."""
    try:
        root = psutil.Process(pid)
        tree = [root, *root.children(recursive=True)]
    except psutil.NoSuchProcess:
        return 0.0
    seconds = 0.0
    for process in tree:
        with contextlib.suppress(psutil.NoSuchProcess, OSError):
            times = process.cpu_times()  # of those that it has waited for, in ticks of 10 ms
            seconds += cpu_seconds(process) + times.children_user + times.children_system
    return seconds


def cpu_seconds(process: psutil.Process) -> float:
    """The processor time of one process."""
    if sys.platform == "linux":
        return time.clock_gettime((~process.pid << 3) | _OF_PROCESS)
    times = process.cpu_times()
    return times.user + times.system


def medians(samples: Sequence[Sample]) -> dict[str, float]:
    """Each part's processor time of a unit in microseconds, and that of all parts together."""
    parts = {
        name: statistics.median(sample.cpu_us[name] for sample in samples)
        for name in samples[0].cpu_us
    }
    return parts | {"all": statistics.median(sample.all_us for sample in samples)}


def instructions_of(samples: Sequence[Sample]) -> dict[str, float]:
    """Each part's instructions of a unit; none where the machine does not count them."""
    counted = set.intersection(*(set(sample.instructions) for sample in samples))
    return {
        name: statistics.median(sample.instructions[name] for sample in samples)
        for name in samples[0].cpu_us
        if name in counted
    }
