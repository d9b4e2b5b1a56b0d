"""What can be asked of the schedules of a partition."""

import msgspec

from holdfast.engine.identity.values import Permission, ResourceType
from holdfast.engine.kernel.query import Query, questions
from holdfast.engine.reader import Reader
from holdfast.engine.timers.state import StoredSchedule
from holdfast.engine.timers.values import Schedule


class FoundSchedule(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A schedule, when it is due next, and how often it has fired."""

    schedule: Schedule
    next_due_ms: int
    fired: int


class ListSchedules(Query[list[FoundSchedule]], frozen=True):
    """All schedules that the asker may see."""


def list_schedules(reader: Reader, query: ListSchedules) -> list[FoundSchedule]:
    return [
        _found(stored)
        for _, stored in reader.state.schedules.schedules.scan()
        if reader.may(ResourceType.SCHEDULE, Permission.READ, stored.schedule.id)
    ]


class FindSchedule(Query[FoundSchedule | None], frozen=True):
    """A schedule by its key."""

    key: int


def find_schedule(reader: Reader, query: FindSchedule) -> FoundSchedule | None:
    stored = reader.state.schedules.schedules.get(query.key)
    return None if stored is None else _found(stored)


def _found(stored: StoredSchedule) -> FoundSchedule:
    return FoundSchedule(stored.schedule, stored.next_due_ms, stored.fired)


QUERIES = questions(list_schedules, find_schedule)
