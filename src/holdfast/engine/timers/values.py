"""The words of schedules."""

from enum import IntEnum, StrEnum

import msgspec

from holdfast.engine.jobs.values import HeadedJob, NewJob
from holdfast.errors import InvalidArgument
from holdfast.records import Value


class ScheduleIntent(IntEnum):
    """Commands and events of a schedule. The numbers are on disk."""

    CREATE = 0
    CREATED = 1
    FIRE = 2
    FIRED = 3
    DELETE = 4
    DELETED = 5
    SKIPPED = 6


class CatchUp(StrEnum):
    """What is done about due times that were missed. The words are on disk."""

    ALL = "all"  # fire for each of them, as far back as the limit
    ONE = "one"  # fire once, for the latest
    NONE = "none"  # fire for none of them


def catch_up_of(word: str) -> CatchUp:
    """The policy of a name; InvalidArgument for any other word."""
    try:
        return CatchUp(word)
    except ValueError:
        raise InvalidArgument(
            f"Expected all, one or none for catch-up, but found {word!r}"
        ) from None


class Schedule(Value, frozen=True, tag=40):
    """A rule that creates a job at each of its due times: by cron, or at an interval."""

    id: str
    job: NewJob | HeadedJob
    cron: str = ""
    interval_ms: int = 0
    timezone: str = "UTC"
    catch_up: bool | CatchUp = True  # in older records, True means all and False means one

    @property
    def policy(self) -> CatchUp:
        """What is done about due times that were missed."""
        if isinstance(self.catch_up, CatchUp):
            return self.catch_up
        return CatchUp.ALL if self.catch_up else CatchUp.ONE


class ScheduleCreated(Value, frozen=True, tag=41):
    """The schedule and when it first fires; written again, it replaces the one with its id."""

    schedule: Schedule
    next_due_ms: int


class Firing(Value, frozen=True, tag=42):
    """One due time: FIRE, FIRED and SKIPPED. Each is fired once at most, over restarts too."""

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
    ScheduleIntent.SKIPPED: Firing,
    ScheduleIntent.DELETE: ScheduleId,
    ScheduleIntent.DELETED: ScheduleId,
}
