"""The tables of the timers room."""

from holdfast.engine.due.dates import DueKind
from holdfast.engine.identity.values import Permission, ResourceType
from holdfast.engine.kernel import Domain, WhenDue
from holdfast.engine.needs import with_named
from holdfast.engine.timers import commands, events, needs
from holdfast.engine.timers.values import VALUES, Firing, ScheduleIntent
from holdfast.records import ValueType

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
    due={DueKind.SCHEDULE: WhenDue(ScheduleIntent.FIRE, lambda rows: Firing(rows[0][0]))},
)
