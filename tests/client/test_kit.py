"""The kit for users' own tests."""

import asyncio
from datetime import timedelta
from unittest.mock import patch

import pytest

from holdfast import (
    BusinessError,
    DeadlineExceeded,
    GiveUpError,
    Internal,
    Process,
    ResourceExhausted,
    TaskFailed,
    error,
    over,
    path,
)
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
    with pytest.raises(TaskFailed, match="was discarded"):
        handle.result()


def test_idempotency_keys_are_forgotten_after_their_window(holdfast_app: TestApp) -> None:
    @holdfast_app.task(remember_key=60)
    def pay() -> None: ...

    first = pay.submit(key="order-1")
    holdfast_app.advance(59)
    assert pay.submit(key="order-1").key == first.key
    holdfast_app.advance(60)
    assert pay.submit(key="order-1").created


# --- processes --------------------------------------------------------------------------------


def test_a_process_that_takes_three_days_is_over_at_once(holdfast_app: TestApp) -> None:
    reminded: list[int] = []

    @holdfast_app.task
    def remind(customer: str) -> None:
        reminded.append(holdfast_app.now_ms)

    holdfast_app.deploy(
        Process("patience").pause("sleep", timedelta(days=3)).task("remind").end("done")
    )
    handle = holdfast_app.start("patience", {"customer": "Ada"})
    began = holdfast_app.now_ms
    assert holdfast_app.run_all() == 0
    assert "time" in handle.view().elements[0].waits_for[0]
    holdfast_app.advance(timedelta(days=2, hours=23))
    assert holdfast_app.run_all() == 0
    holdfast_app.advance(timedelta(hours=1))
    assert holdfast_app.run_all() == 1
    assert handle.result() == {"customer": "Ada"}
    assert reminded[0] - began == 3 * 86_400_000


def test_a_message_that_comes_too_late_finds_the_late_path_taken(holdfast_app: TestApp) -> None:
    holdfast_app.deploy(
        Process("order").wait(
            "paid", message="payment", key="order", within="P3D",
            late=path().compute("note", "true", result="late").end("gone"),
        )
    )  # fmt: skip
    late, paid = (holdfast_app.start("order", {"order": name}) for name in ("late", "paid"))
    holdfast_app.publish("payment", "paid", {"amount": 5})
    assert paid.result() == {"order": "paid", "amount": 5}
    holdfast_app.advance(timedelta(days=3))
    holdfast_app.publish("payment", "late", {"amount": 5})
    assert late.result() == {"order": "late", "late": True}


def test_errors_retries_and_incidents_of_processes_go_by_virtual_time(
    holdfast_app: TestApp,
) -> None:
    @holdfast_app.task
    def charge(card: str) -> dict[str, str]:
        if card == "stolen":
            raise BusinessError("DECLINED", by="bank")
        if card == "broken":
            raise OSError("no line")
        return {"by": card}

    holdfast_app.deploy(
        Process("payment").task("charge", retries=1, on=[error("DECLINED", path().end("no"))])
    )
    good, stolen, broken = (
        holdfast_app.start("payment", {"card": card}) for card in ("good", "stolen", "broken")
    )
    holdfast_app.run_all()
    assert good.result()["by"] == "good"
    assert stolen.result()["by"] == "bank"
    assert holdfast_app.incidents() == [], "its retry is not due yet"
    holdfast_app.advance(timedelta(minutes=1))
    holdfast_app.run_all()
    (incident,) = holdfast_app.incidents(process="payment")
    broken.set_variables({"card": "new"})
    holdfast_app.retry_incident(incident.incident_key)
    holdfast_app.run_all()
    assert broken.result()["by"] == "new"


def test_a_process_runs_across_partitions() -> None:
    with app(partitions=3) as work:
        work.deploy(
            Process("parent").call("each", process="child", each=over("names", item="name")),
            Process("child").wait("go", message="go", key="name"),
        )
        handle = work.start("parent", {"names": ["a", "b", "c"]})
        work.advance(1)
        for name in ("a", "b", "c"):
            work.publish("go", name)
        work.advance(1)
        assert handle.result()["names"] == ["a", "b", "c"]


def test_a_loop_without_a_wait_comes_back_with_an_error_that_names_it() -> None:
    process = Process("p").compute("count", "1 + 1", result="n").go_to("count")
    with app() as work:
        work.deploy(process)
        bounds = "holdfast.engine.processes.bounds.LOOP_MOVES_MAX"
        with patch(bounds, 5_000), pytest.raises(ResourceExhausted, match="by the loop count"):
            work.start("p")
        assert work.run_all() == 0  # the test was told, and may look at what is there
