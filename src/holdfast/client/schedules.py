"""Schedules from a user's program: tasks that are submitted at due times."""

from typing import Any, Literal

from holdfast.client.expecting import Span, expect, span_ms
from holdfast.client.portal import Portal
from holdfast.client.task import BoundTask, new_task_of
from holdfast.engine.timers.values import CatchUp, catch_up_of
from holdfast.errors import InvalidArgument
from holdfast.gateway.api import Api
from holdfast.gateway.tasks.shapes import NewSchedule, ScheduleView
from holdfast.limits import SCHEDULE_INTERVAL_MS_MIN

CatchUpWord = CatchUp | Literal["all", "one", "none"] | bool


class ScheduleCalls:
    """The part of `Holdfast` that is about schedules."""

    portal: Portal
    api: Api

    def begin(self) -> None:
        """Starts to run waiting tasks of this app."""

    def schedule(
        self,
        schedule_id: str,
        bound: BoundTask[Any],
        *,
        cron: str | None = None,
        every: Span | None = None,
        timezone: str = "UTC",
        catch_up: CatchUpWord = "one",
    ) -> ScheduleView:
        """Submits the task at each due time of a cron expression, or at an interval.

        Each due time fires once. `catch_up` decides about missed due times: `"all"` fires for each
        of the last 1,000, `"one"` once for the latest, `"none"` for none. `True` means all, and
        `False` means one.
        """
        expect("schedule_id", schedule_id, str)
        new = _new_schedule(bound, cron, every, timezone, catch_up)
        self.begin()
        return self.portal.call(self.api.schedules.put(schedule_id, new))

    async def schedule_async(
        self,
        schedule_id: str,
        bound: BoundTask[Any],
        *,
        cron: str | None = None,
        every: Span | None = None,
        timezone: str = "UTC",
        catch_up: CatchUpWord = "one",
    ) -> ScheduleView:
        """Like `schedule`, for an event loop."""
        expect("schedule_id", schedule_id, str)
        new = _new_schedule(bound, cron, every, timezone, catch_up)
        self.begin()
        return await self.portal.reach(self.api.schedules.put(schedule_id, new))

    def unschedule(self, schedule_id: str) -> None:
        """Deletes a schedule. Tasks that it has submitted stay."""
        self.portal.call(self.api.schedules.delete(schedule_id))

    async def unschedule_async(self, schedule_id: str) -> None:
        """Like `unschedule`, for an event loop."""
        await self.portal.reach(self.api.schedules.delete(schedule_id))


def _new_schedule(
    bound: BoundTask[Any],
    cron: str | None,
    every: Span | None,
    timezone: str,
    catch_up: CatchUpWord,
) -> NewSchedule:
    task = new_task_of(bound)
    if (cron is None) == (every is None):
        found = "neither" if cron is None else "both"
        raise InvalidArgument(f"Expected a schedule with cron or with every, but found {found}")
    if cron is not None:
        expect("cron", cron, str)
    interval_ms = None if every is None else span_ms(every, "every")
    if interval_ms is not None and interval_ms < SCHEDULE_INTERVAL_MS_MIN:
        least = SCHEDULE_INTERVAL_MS_MIN / 1000
        raise InvalidArgument(
            f"Expected every to be at least {least:g} s, but found {every}", field="every"
        )
    policy = catch_up if isinstance(catch_up, bool) else catch_up_of(catch_up)
    return NewSchedule(task, cron, interval_ms, timezone, policy)
