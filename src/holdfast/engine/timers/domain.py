"""The tables of the timers room, and the commands that time itself gives."""

import sys
from collections.abc import Sequence

from holdfast.engine.distribution.values import DistributionIntent, Resending
from holdfast.engine.identity.needs import with_named
from holdfast.engine.identity.values import Permission, ResourceType
from holdfast.engine.jobs.values import JobBatchIntent, JobList, Purge
from holdfast.engine.kernel import Domain, DueCommand
from holdfast.engine.messages.values import MessageIntent, MessageRef
from holdfast.engine.parcels.values import ParcelIntent, ParcelsUpTo
from holdfast.engine.processes.values import (
    InstanceIntent,
    InstanceRef,
    ProcessIntent,
    StartFiring,
)
from holdfast.engine.requests.values import PurgeRequests, RequestIntent
from holdfast.engine.timers import commands, events, needs
from holdfast.engine.timers.due import Due, DueDates, DueKind
from holdfast.engine.timers.setbacks import Setbacks
from holdfast.engine.timers.values import VALUES, Firing, ScheduleIntent
from holdfast.records import ValueType
from holdfast.records.keys import NO_KEY

SCHEDULE: Domain = Domain(
    value_type=ValueType.SCHEDULE,
    intents=ScheduleIntent,
    values=VALUES,
    commands={
        ScheduleIntent.CREATE: commands.create,
        ScheduleIntent.FIRE: commands.fire,
        ScheduleIntent.DELETE: commands.delete,
    },
    appliers={
        ScheduleIntent.CREATED: events.created,
        ScheduleIntent.FIRED: events.fired,
        ScheduleIntent.SKIPPED: events.skipped,
        ScheduleIntent.DELETED: events.deleted,
    },
    needs={
        ScheduleIntent.CREATE: needs.create,
        ScheduleIntent.DELETE: with_named(
            ResourceType.SCHEDULE, Permission.DELETE, lambda gone: gone.id
        ),
    },
)


_INSTANCE = ValueType.PROCESS_INSTANCE


class DueCommands:
    """Turns what is due into commands; all jobs that wake up together share one."""

    def __init__(self, dates: DueDates) -> None:
        self._dates = dates
        self._setbacks = Setbacks(dates)

    def next_due_ms(self) -> int | None:
        """When there is next something to do."""
        return self._setbacks.next_due_ms() if self._setbacks else self._dates.next_due_ms()

    def put_off(self, command: DueCommand, now_ms: int) -> None:
        """The command was refused: what it stands for rests for a while."""
        self._setbacks.put_off(command.rows, now_ms)

    def clock_jumped(self, before_ms: int, after_ms: int) -> None:
        """Leases that would have ended in between end after the span that they had left."""
        for row in self._dates.due(after_ms, sys.maxsize):
            if row[1] == DueKind.LEASE and row[0] > before_ms:
                self._setbacks.rest(row, row[0] + after_ms - before_ms, after_ms)

    def due(self, now_ms: int, limit: int) -> list[DueCommand]:
        """The commands of all that is due, at most so many."""
        found: list[DueCommand] = []
        awake: list[Due] = []
        setbacks = self._setbacks
        for row in self._dates.due(now_ms, limit + len(setbacks)):
            if setbacks and setbacks.is_resting(row, now_ms):
                continue
            if row[1] == DueKind.JOB and row not in setbacks:
                awake.append(row)
            else:  # a job that could not be woken with others is woken alone
                found.append(_command(row))
        if awake:
            found.insert(0, _wake(awake))  # should the step be full soon, they are up and about
        return found


def _wake(rows: Sequence[Due]) -> DueCommand:
    value = JobList(tuple([key for _, _, key in rows]))
    return DueCommand(ValueType.JOB_BATCH, JobBatchIntent.WAKE, NO_KEY, value, tuple(rows))


def _command(row: Due) -> DueCommand:
    """What is to be done when one thing is due."""
    due_ms, kind, key = row
    rows = (row,)
    match kind:
        case DueKind.JOB:
            return _wake(rows)
        case DueKind.LEASE:
            return DueCommand(ValueType.JOB_BATCH, JobBatchIntent.EXPIRE, key, JobList(), rows)
        case DueKind.BUCKET:
            value = Purge(key)
            return DueCommand(ValueType.JOB_BATCH, JobBatchIntent.PURGE, NO_KEY, value, rows)
        case DueKind.REQUESTS:
            value = PurgeRequests()
            return DueCommand(ValueType.REQUEST, RequestIntent.PURGE, NO_KEY, value, rows)
        case DueKind.SCHEDULE:
            value = Firing(due_ms)
            return DueCommand(ValueType.SCHEDULE, ScheduleIntent.FIRE, key, value, rows)
        case DueKind.TIMER:
            return DueCommand(_INSTANCE, InstanceIntent.TRIGGER, key, InstanceRef(), rows)
        case DueKind.CONTINUE:
            return DueCommand(_INSTANCE, InstanceIntent.CONTINUE, key, InstanceRef(), rows)
        case DueKind.TREE:
            return DueCommand(_INSTANCE, InstanceIntent.PROCEED, key, InstanceRef(), rows)
        case DueKind.START_TIMER:
            value = StartFiring(-1, due_ms)
            return DueCommand(ValueType.PROCESS, ProcessIntent.FIRE, key, value, rows)
        case DueKind.MESSAGE:
            value = MessageRef()
            return DueCommand(ValueType.MESSAGE, MessageIntent.EXPIRE, key, value, rows)
        case DueKind.PARCEL:
            value = ParcelsUpTo(key, 0)
            return DueCommand(ValueType.PARCEL, ParcelIntent.RESEND, NO_KEY, value, rows)
        case DueKind.DISTRIBUTION:
            value, intent = Resending(key), DistributionIntent.REDISTRIBUTE
            return DueCommand(ValueType.DISTRIBUTION, intent, NO_KEY, value, rows)
        case _:
            raise AssertionError(f"nobody knows what is due: kind {kind} of key {key}")
