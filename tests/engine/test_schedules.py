"""Schedules fire once for each due time, over restarts and stand-stills, in the right time zone."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from partition_driver import START_MS, Driver

from holdfast.engine.jobs.values import NewJob
from holdfast.engine.kernel import Command, Reply
from holdfast.engine.timers import commands
from holdfast.engine.timers.cron import last_due_ms, next_due_ms, validate
from holdfast.engine.timers.values import CatchUp, Schedule, ScheduleId, ScheduleIntent
from holdfast.errors import InvalidArgument
from holdfast.records import RecordKind, ValueType

JOB = NewJob("tick", b"null")
MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS


def put(driver: Driver, schedule: Schedule) -> Reply:
    return driver.do(Command(ValueType.SCHEDULE, ScheduleIntent.CREATE, 0, schedule))


def fired(driver: Driver) -> list[int]:
    """The due times that the log has, in milliseconds since the start."""
    return [
        record.value.due_ms - START_MS
        for record in driver.records()
        if record.kind == RecordKind.EVENT
        and record.value_type == ValueType.SCHEDULE
        and record.intent == ScheduleIntent.FIRED
    ]


def jobs(driver: Driver) -> int:
    return len(driver.view.jobs.waiting.next("tick", 100_000))


@pytest.mark.parametrize(
    "schedule",
    [
        Schedule("s", JOB, interval_ms=MINUTE_MS),
        Schedule("s", JOB, cron="* * * * *"),
        Schedule("s", JOB, cron="*/1 * * * *", timezone="Asia/Kolkata"),
    ],
    ids=["interval", "cron", "cron elsewhere"],
)
def test_each_due_time_makes_one_job(schedule: Schedule) -> None:
    driver = Driver()
    put(driver, schedule)
    driver.advance(5 * MINUTE_MS + 1)
    assert fired(driver) == [MINUTE_MS * n for n in range(1, 6)]
    assert jobs(driver) == 5


@given(st.lists(st.tuples(st.integers(0, 200_000), st.booleans(), st.booleans()), max_size=8))
@settings(deadline=None)
def test_restarts_neither_lose_nor_double_a_due_time(
    stops: list[tuple[int, bool, bool]],
) -> None:
    driver = Driver()
    put(driver, Schedule("s", JOB, interval_ms=MINUTE_MS))
    for milliseconds, standing_still, written in stops:
        if written:
            driver.write_state()
        driver.restart(with_store=written)
        if standing_still:
            driver.now_ms += milliseconds
        else:
            driver.advance(milliseconds)
    driver.advance(0)
    passed = driver.now_ms - START_MS
    assert fired(driver) == [MINUTE_MS * n for n in range(1, passed // MINUTE_MS + 1)]
    assert jobs(driver) == passed // MINUTE_MS


@pytest.mark.parametrize("rule", [{"interval_ms": MINUTE_MS}, {"cron": "* * * * *"}])
def test_without_catch_up_a_stand_still_fires_once_for_the_latest_due_time(rule: dict) -> None:
    driver = Driver()
    put(driver, Schedule("s", JOB, **rule, catch_up=False))
    driver.now_ms += 10 * MINUTE_MS + 30_000
    driver.advance(0)
    assert fired(driver) == [10 * MINUTE_MS]
    driver.advance(MINUTE_MS)
    assert fired(driver) == [10 * MINUTE_MS, 11 * MINUTE_MS]


@pytest.mark.parametrize("rule", [{"interval_ms": MINUTE_MS}, {"cron": "* * * * *"}])
def test_with_no_catch_up_what_was_missed_is_skipped(rule: dict) -> None:
    driver = Driver()
    put(driver, Schedule("s", JOB, **rule, catch_up=CatchUp.NONE))
    driver.now_ms += 10 * MINUTE_MS + 30_000
    driver.advance(0)
    assert fired(driver) == [10 * MINUTE_MS], "half a minute late is in time"
    put(driver, Schedule("s", JOB, cron="0 * * * *", catch_up=CatchUp.NONE))
    driver.now_ms += HOUR_MS + 10 * MINUTE_MS
    driver.advance(0)
    assert jobs(driver) == 1, "more than a minute late was missed"
    driver.advance(HOUR_MS)
    assert jobs(driver) == 2
    assert driver.dump() == driver.replayed().state.dump()


@pytest.mark.parametrize(
    "rule", [{"interval_ms": MINUTE_MS}, {"cron": "* * * * *"}, {"cron": "0 * * * *"}]
)
def test_catching_up_all_is_bounded(rule: dict, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "SCHEDULE_CATCH_UP_MAX", 5)
    driver = Driver()
    put(driver, Schedule("s", JOB, **rule, catch_up=CatchUp.ALL))
    step_ms = HOUR_MS if rule == {"cron": "0 * * * *"} else MINUTE_MS
    driver.now_ms += 100 * step_ms + 30_000
    driver.advance(0)
    assert fired(driver) == [step_ms * each for each in range(96, 101)]
    driver.advance(step_ms)
    assert fired(driver)[-1] == 101 * step_ms


def test_what_was_said_once_by_true_and_false_is_understood() -> None:
    assert Schedule("s", JOB, catch_up=True).policy is CatchUp.ALL
    assert Schedule("s", JOB, catch_up=False).policy is CatchUp.ONE
    decode = msgspec.msgpack.Decoder(Schedule).decode
    for each in (True, False, *CatchUp):
        schedule = Schedule("s", JOB, catch_up=each)
        assert decode(msgspec.msgpack.encode(schedule)) == schedule


def test_the_same_rule_again_changes_nothing_and_another_replaces_it() -> None:
    driver = Driver()
    first = put(driver, Schedule("s", JOB, interval_ms=MINUTE_MS))
    again = put(driver, Schedule("s", JOB, interval_ms=MINUTE_MS))
    assert again.rejection is not None and again.rejection.code == "ALREADY_EXISTS"
    assert again.key == first.key
    put(driver, Schedule("s", JOB, interval_ms=10 * MINUTE_MS))
    driver.advance(10 * MINUTE_MS)
    assert fired(driver) == [10 * MINUTE_MS]


def test_a_deleted_schedule_leaves_no_row_but_its_jobs() -> None:
    driver = Driver()
    put(driver, Schedule("s", JOB, interval_ms=MINUTE_MS))
    empty = Driver()
    delete = Command(ValueType.SCHEDULE, ScheduleIntent.DELETE, 0, ScheduleId("s"))
    assert driver.do(delete).rejection is None
    assert driver.dump() == empty.dump() == []
    again = driver.do(delete)
    assert again.rejection is not None and again.rejection.code == "NOT_FOUND"


@pytest.mark.parametrize(
    "schedule",
    [
        Schedule("s", JOB),
        Schedule("s", JOB, cron="* * * * *", interval_ms=MINUTE_MS),
        Schedule("s", JOB, cron="every day"),
        Schedule("s", JOB, cron="61 * * * *"),
        Schedule("s", JOB, interval_ms=1),
        Schedule("s", JOB, cron="* * * * *", timezone="Mars/Olympus"),
        Schedule("s", JOB, cron="* * * * *", timezone="../etc/passwd"),
        Schedule("s", JOB, cron="* * * * *", timezone=""),
    ],
)
def test_a_rule_that_cannot_be_followed_is_refused(schedule: Schedule) -> None:
    with pytest.raises(InvalidArgument, match="Expected"):
        validate(schedule)
    reply = put(Driver(), schedule)
    assert reply.rejection is not None and reply.rejection.code == "INVALID_ARGUMENT"


def test_a_rule_without_a_next_time_never_fires() -> None:
    driver = Driver()
    put(driver, Schedule("s", JOB, cron="0 0 30 2 *"))
    assert driver.processor.next_due_ms() is None
    driver.do(Command(ValueType.SCHEDULE, ScheduleIntent.DELETE, 0, ScheduleId("s")))
    assert driver.dump() == []


# --- time zones -------------------------------------------------------------------------------


def due_times(schedule: Schedule, after: datetime, count: int) -> list[str]:
    zone, at_ms, found = ZoneInfo(schedule.timezone), int(after.timestamp() * 1000), []
    for _ in range(count):
        at_ms = next_due_ms(schedule, at_ms)
        found.append(datetime.fromtimestamp(at_ms / 1000, zone).strftime("%d %H:%M %z"))
    return found


BERLIN_NIGHTLY = Schedule("s", JOB, cron="0 6 * * *", timezone="Europe/Berlin")


def test_a_daily_time_stays_at_its_hour_when_the_clocks_change() -> None:
    spring = datetime(2026, 3, 28, 0, 0, tzinfo=UTC)
    assert due_times(BERLIN_NIGHTLY, spring, 3) == [
        "28 06:00 +0100",
        "29 06:00 +0200",
        "30 06:00 +0200",
    ]
    autumn = datetime(2026, 10, 24, 0, 0, tzinfo=UTC)
    assert due_times(BERLIN_NIGHTLY, autumn, 3) == [
        "24 06:00 +0200",
        "25 06:00 +0100",
        "26 06:00 +0100",
    ]


def test_a_time_that_the_clocks_jump_over_is_made_up_for_that_day() -> None:
    schedule = Schedule("s", JOB, cron="30 2 * * *", timezone="Europe/Berlin")
    spring = datetime(2026, 3, 28, 0, 0, tzinfo=UTC)
    days = [text[:2] for text in due_times(schedule, spring, 4)]
    assert days == ["28", "29", "30", "31"]


def test_a_time_that_comes_twice_fires_once() -> None:
    schedule = Schedule("s", JOB, cron="30 2 * * *", timezone="Europe/Berlin")
    autumn = datetime(2026, 10, 24, 0, 0, tzinfo=UTC)
    days = [text[:2] for text in due_times(schedule, autumn, 4)]
    assert days == ["24", "25", "26", "27"]


def test_an_hourly_time_fires_every_hour_of_a_changing_day() -> None:
    schedule = Schedule("s", JOB, cron="0 * * * *", timezone="Europe/Berlin")
    at_ms = int(datetime(2026, 10, 24, 20, 0, tzinfo=UTC).timestamp() * 1000)
    for _ in range(12):
        next_ms = next_due_ms(schedule, at_ms)
        assert next_ms == at_ms + HOUR_MS
        at_ms = next_ms


RULES = [
    Schedule("s", JOB, interval_ms=7_777),
    Schedule("s", JOB, cron="*/7 * * * *", timezone="America/New_York"),
    Schedule("s", JOB, cron="0 0 1 * *"),
    Schedule("s", JOB, cron="30 2 * * *", timezone="Europe/Berlin"),
    Schedule("s", JOB, cron="@hourly", timezone="Europe/Berlin"),
]


@pytest.mark.parametrize(
    "schedule", RULES, ids=["interval", "minutes", "months", "nights", "hours"]
)
@given(moment_ms=st.integers(START_MS, START_MS + 400 * 24 * HOUR_MS))
@settings(max_examples=30, deadline=None)
def test_the_latest_due_time_is_the_one_whose_next_is_ahead(
    schedule: Schedule, moment_ms: int
) -> None:
    latest = last_due_ms(schedule, moment_ms)
    assert latest <= moment_ms < next_due_ms(schedule, latest)
    assert last_due_ms(schedule, latest) == latest
    assert next_due_ms(schedule, latest - 1) == latest
