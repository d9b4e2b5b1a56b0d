"""What is asked of schedules."""

from holdfast.engine.jobs.commands import add_job
from holdfast.engine.kernel import Turn
from holdfast.engine.state import EngineState
from holdfast.engine.timers.cron import earlier_due_ms, last_due_ms, next_due_ms, validate
from holdfast.engine.timers.values import (
    CatchUp,
    Firing,
    Schedule,
    ScheduleCreated,
    ScheduleId,
    ScheduleIntent,
)
from holdfast.errors import Code, InvalidArgument
from holdfast.limits import SCHEDULE_CATCH_UP_MAX, SCHEDULE_LATE_MS_MAX
from holdfast.records import Record, ValueType

SCHEDULE = ValueType.SCHEDULE


def create(turn: Turn[EngineState], command: Record) -> None:
    """A new schedule, or another rule for a known id. The same rule again changes nothing."""
    schedule: Schedule = command.value
    try:
        validate(schedule)
    except InvalidArgument as error:
        return turn.reject(command, error.code, error.message)
    key = turn.state.schedules.key_of(schedule.id)
    stored = turn.state.schedules.schedules.get(key) if key else None
    if key and stored and stored.schedule == schedule:
        reason = f"Expected a change, but schedule {schedule.id!r} has this rule already"
        return turn.reject(command, Code.ALREADY_EXISTS, reason, key=key)
    first = next_due_ms(schedule, turn.now_ms)
    turn.event(SCHEDULE, ScheduleIntent.CREATED, turn.new_key(), ScheduleCreated(schedule, first))


def fire(turn: Turn[EngineState], command: Record) -> None:
    """A due time has come: one job for it, and the next due time is set in the same event.

    If several have passed, the schedule says what is done about those that were missed.
    """
    stored = turn.state.schedules.schedules.get(command.key)
    if stored is None or stored.next_due_ms != command.value.due_ms:
        reason = f"Expected schedule {command.key} to be due, but it is not"
        return turn.reject(command, Code.INVALID_STATE, reason)
    schedule, due = stored.schedule, stored.next_due_ms
    next_due = next_due_ms(schedule, due)
    if 0 < next_due <= turn.now_ms:
        due = max(due, _first_wanted_ms(schedule, turn.now_ms))
        next_due = next_due_ms(schedule, due)
    firing = Firing(due, next_due)
    is_late = turn.now_ms - due > SCHEDULE_LATE_MS_MAX
    if is_late and schedule.policy is CatchUp.NONE:
        turn.event(SCHEDULE, ScheduleIntent.SKIPPED, command.key, firing)
        return None
    turn.event(SCHEDULE, ScheduleIntent.FIRED, command.key, firing)
    add_job(turn, schedule.job)


def _first_wanted_ms(schedule: Schedule, now_ms: int) -> int:
    """The first of the due times up to now that the schedule fires for."""
    latest = last_due_ms(schedule, now_ms)
    if schedule.policy is CatchUp.ALL:
        return earlier_due_ms(schedule, latest, SCHEDULE_CATCH_UP_MAX - 1)
    return latest


def delete(turn: Turn[EngineState], command: Record) -> None:
    """The schedule fires no more; jobs that it made stay."""
    id_ = command.value.id
    key = turn.state.schedules.key_of(id_)
    if key is None:
        reason = f"There is no schedule {id_!r}"
        return turn.reject(command, Code.NOT_FOUND, reason)
    turn.event(SCHEDULE, ScheduleIntent.DELETED, key, ScheduleId(id_))
