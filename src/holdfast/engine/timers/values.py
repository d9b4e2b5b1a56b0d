"""The words of schedules."""

from enum import IntEnum

import msgspec

from holdfast.engine.jobs.values import NewJob
from holdfast.records import Value


class ScheduleIntent(IntEnum):
    """What is asked of a schedule and what happened to it. The numbers are on disk."""

    CREATE = 0
    CREATED = 1
    FIRE = 2
    FIRED = 3
    DELETE = 4
    DELETED = 5


class Schedule(Value, frozen=True, tag=40):
    """A rule that creates a job at each of its due times: by cron, or at an interval."""

    id: str
    job: NewJob
    cron: str = ""
    interval_ms: int = 0
    timezone: str = "UTC"
    catch_up: bool = True  # after a stand-still: fire for every missed due time, or once for all


class ScheduleCreated(Value, frozen=True, tag=41):
    """The schedule and when it first fires; written again, it replaces the one with its id."""

    schedule: Schedule
    next_due_ms: int


class Firing(Value, frozen=True, tag=42):
    """One due time: the value of FIRE and FIRED. Each is fired once, over restarts too."""

    due_ms: int
    next_due_ms: int = 0


class ScheduleId(Value, frozen=True, tag=43):
    """Which schedule: the value of DELETE and DELETED."""

    id: str


VALUES: dict[ScheduleIntent, type[msgspec.Struct]] = {
    ScheduleIntent.CREATE: Schedule,
    ScheduleIntent.CREATED: ScheduleCreated,
    ScheduleIntent.FIRE: Firing,
    ScheduleIntent.FIRED: Firing,
    ScheduleIntent.DELETE: ScheduleId,
    ScheduleIntent.DELETED: ScheduleId,
}
