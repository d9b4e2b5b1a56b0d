"""What a member runs, beside what the log says that it owns, and what it has to say about that.

A partition is started only when the log says that it is this member's, and stopped as soon as the
log says otherwise.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from holdfast.groups.api import MemberId, NewPartition, Offset
from holdfast.groups.effects import Effect, StartRun, StopRun
from holdfast.groups.messages import (
    Change,
    Committed,
    Finished,
    Parked,
    Picked,
    Released,
    RunStarted,
)
from holdfast.groups.state import GroupPartition, GroupState, PartitionStatus
from holdfast.limits import GROUP_ERROR_CHARS_MAX, GROUP_RETRY_MS_MAX, GROUP_RETRY_MS_MIN

HELD = "parked by hand"
_MAY_RUN = (PartitionStatus.READY, PartitionStatus.SCHEDULED, PartitionStatus.RUNNING)


class RunPhase(Enum):
    """Where the work of this member on a partition is."""

    STARTING = 1
    RUNNING = 2
    STOPPING = 3  # asked to let go
    STOPPED = 4  # let go; the log may not know yet how far it came
    FINISHED = 5  # done; the log does not know yet
    FAILED = 6  # the log does not know yet


_RUNS = (RunPhase.STARTING, RunPhase.RUNNING)
ACTIVE = (*_RUNS, RunPhase.STOPPING)


@dataclass(slots=True)
class LocalRun:
    """The work of this member on one partition."""

    phase: RunPhase
    offset: Offset
    started_ms: int
    watermark: int | None = None
    children: tuple[NewPartition, ...] = ()
    error: str = ""
    attempts: int = 0


class LocalRuns:
    """All work of this member."""

    def __init__(self, member: MemberId) -> None:
        self._member = member
        self.runs: dict[str, LocalRun] = {}  # of some the log may say that they are another's
        self.retries: dict[str, int] = {}  # parked ones: when they are tried again
        self.now_ms = 0
        self.is_leaving = False  # nothing is started any more

    # --- what the work reports ----------------------------------------------------------------

    def fail(self, token: str, error: str, attempts_before: int) -> None:
        """The work ended with an error."""
        run = self.runs[token]
        has_run_well = self.now_ms - run.started_ms >= GROUP_RETRY_MS_MAX
        run.phase = RunPhase.FAILED
        run.error = error[:GROUP_ERROR_CHARS_MAX]
        run.attempts = 1 if has_run_well else attempts_before + 1

    # --- beside the log -----------------------------------------------------------------------

    def settle(self, state: GroupState, token: str, is_in: bool) -> Iterable[Effect]:
        """Makes the work on a partition what the log says; `is_in`: this member counts."""
        partition = state.partitions.get(token)
        is_mine = is_in and partition is not None and partition.owner == self._member
        run = self.runs.get(token)
        if partition is None or not is_mine:
            self.retries.pop(token, None)
            return self._let_go(token, run, "it is another member's now")
        if not partition.is_live:  # the log has its end
            self.runs.pop(token, None)
            self.retries.pop(token, None)
            return ()
        if run is None:
            return self._start(state, partition, partition.offset, partition.watermark)
        if run.phase in _RUNS and (why := self._why_to_stop(partition)):
            return self._let_go(token, run, why)
        if run.phase is RunPhase.STOPPED:
            return self._stopped(state, partition, run)
        if run.phase is RunPhase.FAILED and self._is_parked(partition, run):
            del self.runs[token]
            self.retries[token] = self.now_ms + _pause_ms(run.attempts)
        return ()

    def _why_to_stop(self, partition: GroupPartition) -> str:
        if partition.target:
            return f"it moves to {partition.target}"
        if partition.is_held:
            return HELD
        return "its member leaves" if self.is_leaving else ""

    def due(self, state: GroupState) -> Iterable[Effect]:
        """Parked partitions whose time has come."""
        for token in [each for each, at_ms in self.retries.items() if at_ms <= self.now_ms]:
            yield from self.settle(state, token, is_in=True)

    def _let_go(self, token: str, run: LocalRun | None, why: str) -> Iterable[Effect]:
        if run is None or run.phase is RunPhase.STOPPING:
            return ()
        if run.phase not in _RUNS:
            del self.runs[token]
            return ()
        run.phase = RunPhase.STOPPING
        return (StopRun(token, why),)

    def _stopped(
        self, state: GroupState, partition: GroupPartition, run: LocalRun
    ) -> Iterable[Effect]:
        """What was let go is handed over or held once the log says so, else it runs again."""
        if partition.is_released or (partition.is_held and self._is_held(partition)):
            del self.runs[partition.token]
            return ()
        if partition.target or partition.is_held:
            return ()
        return self._start(state, partition, run.offset, run.watermark)

    def _start(
        self, state: GroupState, partition: GroupPartition, offset: Offset, watermark: int | None
    ) -> Iterable[Effect]:
        token = partition.token
        if partition.target or partition.is_held or self.is_leaving:
            return ()
        if partition.status is PartitionStatus.PARKED:
            if self.retries.setdefault(token, self.now_ms) > self.now_ms:
                return ()
        elif partition.status not in _MAY_RUN:
            return ()
        self.retries.pop(token, None)
        self.runs[token] = LocalRun(RunPhase.STARTING, offset, self.now_ms, watermark)
        return (StartRun(token, state.epoch, offset),)

    @staticmethod
    def _is_parked(partition: GroupPartition, run: LocalRun) -> bool:
        return partition.status is PartitionStatus.PARKED and partition.attempts == run.attempts

    @staticmethod
    def _is_held(partition: GroupPartition) -> bool:
        return partition.status is PartitionStatus.PARKED

    # --- what the log does not know -----------------------------------------------------------

    def changes(self, state: GroupState, token: str) -> list[Change]:
        """What this member has to say about a partition, beside what the log has."""
        partition = state.partitions.get(token)
        if partition is None or not partition.is_live:
            return []
        if partition.owner != self._member:
            is_offered = partition.target == self._member and partition.is_released
            return [Picked(token)] if is_offered and not self.is_leaving else []
        run = self.runs.get(token)
        if run is None:
            return self._of_idle(partition, partition.offset, None)
        match run.phase:
            case RunPhase.FINISHED:
                return [Finished(token, run.offset, run.watermark, run.children)]
            case RunPhase.FAILED:
                mark = run.watermark
                return [Parked(token, run.offset, mark, run.error, run.attempts)]
            case RunPhase.STOPPED:
                of_idle = self._of_idle(partition, run.offset, run.watermark)
                return of_idle or _progress(partition, run)
            case RunPhase.RUNNING if partition.status is not PartitionStatus.RUNNING:
                return [RunStarted(token), *_progress(partition, run)]
            case _:
                return _progress(partition, run)

    def _of_idle(
        self, partition: GroupPartition, offset: Offset, watermark: int | None
    ) -> list[Change]:
        if partition.is_released:
            return []  # the rest is up to its target
        if partition.is_held and not self._is_held(partition):
            return [Parked(partition.token, offset, watermark, HELD, partition.attempts)]
        if partition.target:
            return [Released(partition.token, offset, watermark)]
        return []


def _progress(partition: GroupPartition, run: LocalRun) -> list[Change]:
    """What was committed here and is not in the log."""
    known = (partition.offset, partition.watermark)
    if (run.offset, run.watermark) == known:
        return []
    return [Committed(partition.token, run.offset, run.watermark)]


def _pause_ms(attempts: int) -> int:
    return min(GROUP_RETRY_MS_MAX, GROUP_RETRY_MS_MIN << min(attempts - 1, 16))
