"""The tables of the timers room, and the commands that time itself gives."""

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
from holdfast.engine.timers import commands, events, needs
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
        self.next_due_ms = dates.next_due_ms

    def due(self, now_ms: int, limit: int) -> list[DueCommand]:
        """The commands of all that is due, at most so many."""
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
                case DueKind.TIMER:
                    found.append(DueCommand(_INSTANCE, InstanceIntent.TRIGGER, key, InstanceRef()))
                case DueKind.CONTINUE:
                    found.append(DueCommand(_INSTANCE, InstanceIntent.CONTINUE, key, InstanceRef()))
                case DueKind.START_TIMER:
                    value = StartFiring(-1, due_ms)
                    found.append(DueCommand(ValueType.PROCESS, ProcessIntent.FIRE, key, value))
                case DueKind.MESSAGE:
                    value = MessageRef()
                    found.append(DueCommand(ValueType.MESSAGE, MessageIntent.EXPIRE, key, value))
                case DueKind.PARCEL:
                    value = ParcelsUpTo(key, 0)
                    found.append(DueCommand(ValueType.PARCEL, ParcelIntent.RESEND, NO_KEY, value))
                case DueKind.DISTRIBUTION:
                    value, intent = Resending(key), DistributionIntent.REDISTRIBUTE
                    found.append(DueCommand(ValueType.DISTRIBUTION, intent, NO_KEY, value))
        if awake:
            value = JobList(tuple(awake))
            found.append(DueCommand(ValueType.JOB_BATCH, JobBatchIntent.WAKE, NO_KEY, value))
        return found
