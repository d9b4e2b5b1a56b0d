"""The kit for users' own tests."""

import asyncio
from datetime import timedelta

import pytest

from holdfast import DeadlineExceeded, GiveUpError, Internal, TaskFailed
from holdfast.testing import TestApp, app

pytest_plugins = ["holdfast.testing.plugin"]


def test_nothing_runs_before_run_all(holdfast_app: TestApp) -> None:
    ran: list[str] = []

    @holdfast_app.task
    def greet(name: str) -> str:
        ran.append(name)
        return f"hello {name}"

    handle = greet.submit("world")
    with pytest.raises(DeadlineExceeded, match="run_all"):
        handle.result()
    assert ran == []
    assert holdfast_app.run_all() == 1
    assert handle.result() == "hello world"
    assert holdfast_app.run_all() == 0


def test_a_retry_runs_when_its_pause_has_passed(holdfast_app: TestApp) -> None:
    attempts: list[int] = []

    @holdfast_app.task(retries=1)
    def flaky() -> str:
        attempts.append(holdfast_app.now_ms)
        if len(attempts) == 1:
            raise OSError("not yet")
        return "done"

    handle = flaky.submit()
    assert holdfast_app.run_all() == 1
    assert holdfast_app.run_all() == 0, "its pause is not over"
    holdfast_app.advance(1)
    assert holdfast_app.run_all() == 1
    assert handle.result() == "done"
    assert 800 <= attempts[1] - attempts[0] <= 1_000


def test_schedules_fire_as_time_passes(holdfast_app: TestApp) -> None:
    fired: list[int] = []

    @holdfast_app.task
    def report() -> None:
        fired.append(holdfast_app.now_ms)

    holdfast_app.schedule("hourly", report.bind(), cron="0 * * * *")
    holdfast_app.advance(timedelta(days=1))
    assert holdfast_app.run_all() == 24


def test_tasks_may_submit_tasks(holdfast_app: TestApp) -> None:
    @holdfast_app.task
    def down(number: int) -> int:
        if number:
            down.submit(number - 1)
        return number

    down.submit(5)
    assert holdfast_app.run_all() == 6


def test_a_task_that_never_ends_submitting_is_found(
    holdfast_app: TestApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.testing.kit._RUNS_MAX", 10)

    @holdfast_app.task
    def again() -> None:
        again.submit()

    again.submit()
    with pytest.raises(Internal, match="again and others went on"):
        holdfast_app.run_all()


def test_async_tasks_run_and_their_sleeps_cost_nothing(holdfast_app: TestApp) -> None:
    @holdfast_app.task
    async def slow(seconds: float) -> float:
        await asyncio.sleep(seconds)
        await other.submit_async()
        return seconds

    @holdfast_app.task
    def other() -> None: ...

    handle = slow.submit(3600)
    assert holdfast_app.run_all() == 2
    assert handle.result() == 3600


def test_the_kit_works_inside_async_tests() -> None:
    async def story() -> str:
        with app() as work:

            @work.task
            def greet(name: str) -> str:
                return f"hello {name}"

            handle = await greet.submit_async("world")
            work.run_all()
            return await handle.result_async()

    assert asyncio.run(story()) == "hello world"


def test_an_incident_is_seen_and_decided(holdfast_app: TestApp) -> None:
    @holdfast_app.task
    def hopeless() -> None:
        raise GiveUpError("no use")

    handle = hopeless.submit()
    holdfast_app.run_all()
    (incident,) = holdfast_app.incidents()
    holdfast_app.discard_incident(incident.incident_key)
    with pytest.raises(TaskFailed, match="DISCARDED"):
        handle.result()


def test_idempotency_keys_are_forgotten_after_their_window(holdfast_app: TestApp) -> None:
    @holdfast_app.task(remember_key=60)
    def pay() -> None: ...

    first = pay.submit(key="order-1")
    holdfast_app.advance(59)
    assert pay.submit(key="order-1").key == first.key
    holdfast_app.advance(60)
    assert pay.submit(key="order-1").created
