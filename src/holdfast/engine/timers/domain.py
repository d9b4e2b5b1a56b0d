"""The tables of the timers room, and the commands that time itself gives."""

from holdfast.engine.jobs.values import JobBatchIntent, JobList, Purge
from holdfast.engine.kernel import Domain, DueCommand
from holdfast.engine.timers import commands, events
from holdfast.engine.timers.due import DueDates, DueKind
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
        ScheduleIntent.DELETED: events.deleted,
    },
)


class DueCommands:
    """Turns what is due into commands; all jobs that wake up together share one."""

    def __init__(self, dates: DueDates) -> None:
        self._dates = dates
        self.next_due_ms = dates.next_due_ms

    def due(self, now_ms: int, limit: int) -> list[DueCommand]:
        found: list[DueCommand] = []
        awake: list[int] = []
        for due_ms, kind, key in self._dates.due(now_ms, limit):
            match kind:
                case DueKind.JOB:
                    awake.append(key)
                case DueKind.LEASE:
                    found.append(
                        DueCommand(ValueType.JOB_BATCH, JobBatchIntent.EXPIRE, key, JobList())
                    )
                case DueKind.BUCKET:
                    found.append(
                        DueCommand(ValueType.JOB_BATCH, JobBatchIntent.PURGE, NO_KEY, Purge(key))
                    )
                case DueKind.SCHEDULE:
                    found.append(
                        DueCommand(ValueType.SCHEDULE, ScheduleIntent.FIRE, key, Firing(due_ms))
                    )
        if awake:
            value = JobList(tuple(awake))
            found.append(DueCommand(ValueType.JOB_BATCH, JobBatchIntent.WAKE, NO_KEY, value))
        return found
