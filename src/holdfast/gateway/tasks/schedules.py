"""Schedules: rules that submit tasks at their due times."""

from holdfast.clock import Clock
from holdfast.config import Config
from holdfast.engine.kernel import Command
from holdfast.engine.timers.queries import FindSchedule, FoundSchedule, ListSchedules
from holdfast.engine.timers.values import CatchUp, Schedule, ScheduleId, ScheduleIntent
from holdfast.errors import Code, InvalidArgument, NotFound
from holdfast.gateway import checks
from holdfast.gateway.access.asking import Asked
from holdfast.gateway.tasks.api import ScheduleApi
from holdfast.gateway.tasks.defaults import DefaultsOfTasks
from holdfast.gateway.tasks.new_jobs import new_job
from holdfast.gateway.tasks.shapes import NewSchedule, ScheduleView
from holdfast.limits import SCHEDULE_INTERVAL_MS_MIN, SPAN_MS_MAX
from holdfast.logs import log
from holdfast.records import ValueType, partition_for
from holdfast.records.keys import NO_KEY


class ScheduleService(ScheduleApi):
    """What can be asked about schedules."""

    def __init__(
        self, asked: Asked, config: Config, clock: Clock, defaults: DefaultsOfTasks
    ) -> None:
        self._asked = asked
        self._defaults = defaults
        self._config = config
        self._clock = clock

    async def put(self, schedule_id: str, new: NewSchedule) -> ScheduleView:
        """Creates the schedule or gives it another rule; the same rule again changes nothing."""
        checks.name(schedule_id, "schedule id")
        if new.task.key is not None or new.task.delay_ms or new.task.due:
            raise InvalidArgument(
                "Expected a task without key, delay and due time, for the schedule sets them"
            )
        if new.interval_ms is not None:
            checks.within(new.interval_ms, SCHEDULE_INTERVAL_MS_MIN, SPAN_MS_MAX, "intervalMs")
        await self._defaults.learn({new.task.type})
        job = new_job(new.task, self._clock.now_ms(), self._config, self._defaults.of)
        catch_up = new.catch_up
        if not isinstance(catch_up, bool):
            catch_up = checks.kind(catch_up, CatchUp, "catchUp")
        schedule = Schedule(
            schedule_id,
            job,
            checks.optional_name(new.cron, "cron expression"),
            new.interval_ms or 0,
            checks.text(new.timezone, "timezone"),
            catch_up,
        )
        command = Command(ValueType.SCHEDULE, ScheduleIntent.CREATE, NO_KEY, schedule)
        partition = self._partition(schedule_id)
        (reply,) = await self._asked.submit(partition, [command])
        error = reply.error()
        if error is not None and error.code != Code.ALREADY_EXISTS:
            raise error
        stored = await self._asked.ask(partition, FindSchedule(reply.key))
        if stored is None:
            raise NotFound(f"Expected schedule {schedule_id!r}, but it was deleted at once")
        return _view(stored)

    async def delete(self, schedule_id: str) -> None:
        checks.name(schedule_id, "schedule id")
        command = Command(
            ValueType.SCHEDULE, ScheduleIntent.DELETE, NO_KEY, ScheduleId(schedule_id)
        )
        (reply,) = await self._asked.submit(self._partition(schedule_id), [command])
        if error := reply.error():
            raise error

    async def all(self) -> list[ScheduleView]:
        found = [each for rows in await self._asked.ask_all(ListSchedules()) for each in rows]
        return sorted(map(_view, found), key=lambda view: view.schedule_id)

    def _partition(self, schedule_id: str) -> int:
        return partition_for(schedule_id, self._asked.count)


def _view(stored: FoundSchedule) -> ScheduleView:
    rule, next_due, error = stored.schedule, checks.moment(stored.next_due_ms), None
    if stored.next_due_ms and next_due is None:
        error = (
            f"Expected a next due time that a date can have, but found {stored.next_due_ms} ms;"
            " put the schedule again with another rule"
        )
        log.warning("schedule cannot be shown", schedule=rule.id, error=error)
    return ScheduleView(
        rule.id, rule.job.type, rule.cron or None, rule.interval_ms or None, rule.timezone,
        rule.policy, next_due, stored.fired, error,
    )  # fmt: skip
