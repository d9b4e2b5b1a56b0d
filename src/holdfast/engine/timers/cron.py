"""When a schedule is due next. The only module that imports croniter."""

from collections.abc import Callable
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from croniter import CroniterError, croniter

from holdfast.engine.timers.values import Schedule
from holdfast.errors import InvalidArgument
from holdfast.limits import SCHEDULE_INTERVAL_MS_MIN

_SHOWN_CHARS = 100  # of what is refused


def validate(schedule: Schedule) -> None:
    """InvalidArgument for a rule that can never be followed."""
    if bool(schedule.cron) == bool(schedule.interval_ms):
        found = "both" if schedule.cron else "neither"
        raise InvalidArgument(f"Expected a cron expression or an interval, but found {found}")
    if schedule.cron and not croniter.is_valid(schedule.cron):
        raise InvalidArgument(f"Expected a cron expression, but found {_shown(schedule.cron)}")
    if schedule.interval_ms and schedule.interval_ms < SCHEDULE_INTERVAL_MS_MIN:
        raise InvalidArgument(
            f"Expected an interval of {SCHEDULE_INTERVAL_MS_MIN} ms or more,"
            f" but found {schedule.interval_ms}"
        )
    try:
        ZoneInfo(schedule.timezone)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:  # OSError: a folder, a long name
        shown = _shown(schedule.timezone)
        raise InvalidArgument(f"Expected a time zone, but found {shown}") from error


def _shown(text: str) -> str:
    return repr(text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}…")


def next_due_ms(schedule: Schedule, after_ms: int) -> int:
    """The first due time after a moment; 0 if there is none any more.

    Intervals are counted from the epoch, so that the due times do not depend on when the node was
    started.
    """
    if schedule.interval_ms:
        return (after_ms // schedule.interval_ms + 1) * schedule.interval_ms
    try:
        return _walk(schedule, after_ms, croniter.get_next)
    except CroniterError:  # February 30th and the like
        return 0


def next_cron_ms(rule: str, after_ms: int) -> int:
    """The first due time of a cron rule after a moment, in UTC; InvalidArgument for no rule.

    With six fields the seconds come first, as people who draw processes write them.
    """
    seconds_first = len(rule.split()) == 6
    if not croniter.is_valid(rule, second_at_beginning=seconds_first):
        raise InvalidArgument(f"Expected a cron expression, but found {_shown(rule)}")
    after = datetime.fromtimestamp(after_ms / 1000, UTC)
    try:
        due = croniter(rule, after, second_at_beginning=seconds_first).get_next(float)
    except CroniterError as error:
        shown = _shown(rule)
        raise InvalidArgument(f"Expected a rule that is ever due, but found {shown}") from error
    return int(due * 1000)


def last_due_ms(schedule: Schedule, until_ms: int) -> int:
    """The latest due time that is not after a moment."""
    if schedule.interval_ms:
        return until_ms // schedule.interval_ms * schedule.interval_ms
    return _walk(schedule, until_ms + 1, croniter.get_prev)


def earlier_due_ms(schedule: Schedule, due_ms: int, times: int) -> int:
    """The due time that is so many before another."""
    if schedule.interval_ms:
        return due_ms - times * schedule.interval_ms
    earlier_ms = _earlier(schedule.cron, schedule.timezone, due_ms, times)
    return next_due_ms(schedule, earlier_ms - 1)


@lru_cache(maxsize=64)  # asked for again with each due time that is made up for
def _earlier(cron: str, timezone: str, due_ms: int, times: int) -> int:
    zone = ZoneInfo(timezone)
    walked = croniter(cron, datetime.fromtimestamp(due_ms / 1000, zone))
    due = due_ms / 1000
    for _ in range(times):
        due = walked.get_prev(float)
    return int(due * 1000)


def _walk(schedule: Schedule, from_ms: int, turn: Callable[..., Any]) -> int:
    """The due time before or after a moment.

    The day on which the clocks go back has an hour twice. A rule for given hours follows the first
    of the two only; a rule for any hour follows both.
    """
    zone = ZoneInfo(schedule.timezone)
    times = croniter(schedule.cron, datetime.fromtimestamp(from_ms / 1000, zone))
    any_hour = times.expanded[1] == ["*"]
    while True:
        due = turn(times, float)
        if any_hour or not datetime.fromtimestamp(due, zone).fold:
            return int(due * 1000)
