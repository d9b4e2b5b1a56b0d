"""What is logged of a task that raises: where, which attempt, what happens next, and why."""

import json
import logging
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from waiting import WAIT, wait_until

import holdfast.testing
from holdfast import (
    BusinessError,
    GiveUpError,
    Holdfast,
    Process,
    RetryBackoff,
    RetryLaterError,
    TaskFailed,
    error,
    path,
)
from holdfast.gateway.tasks.shapes import NewTask
from holdfast.logs import log


class Told:
    """The records of holdfast's logger that name a task."""

    def __init__(self, logged: Callable[[], list[logging.LogRecord]]) -> None:
        self._logged = logged

    @property
    def records(self) -> list[logging.LogRecord]:
        return [each for each in self._logged() if "task" in vars(each)["fields"]]

    def fields(self) -> list[dict[str, Any]]:
        return [vars(each)["fields"] for each in self.records]


@pytest.fixture
def told(logged: Callable[[], list[logging.LogRecord]]) -> Told:
    return Told(logged)


# --- in all modes -----------------------------------------------------------------------------


@pytest.mark.parametrize("is_async", [False, True], ids=["threads", "async"])
def test_every_attempt_that_raises_is_logged_with_its_exception(
    tmp_path: Path, told: Told, is_async: bool
) -> None:
    error = LookupError("no such order")
    with Holdfast.open(tmp_path / "data", workers=1) as app:

        def charge() -> None:
            raise error

        async def charge_async() -> None:
            raise error

        quick = RetryBackoff(base_ms=20, jitter_percent=0)
        task = app.task(name="charge", retries=1, backoff=quick)(
            charge_async if is_async else charge
        )
        handle = task.submit()
        with pytest.raises(TaskFailed):
            handle.result(timeout=WAIT)
    first, second = told.records
    assert [each["attempt"] for each in told.fields()] == [1, 2]
    assert {(each["task"], each["key"]) for each in told.fields()} == {("charge", handle.key)}
    assert [each["next"] for each in told.fields()] == [
        "retried in about 0.0 s (1 retry left)",
        "incident: no retries left",
    ]
    assert (first.levelname, second.levelname) == ("WARNING", "ERROR")
    assert first.exc_info is not None and first.exc_info[1] is error


def test_an_exception_in_a_child_process_is_logged_by_its_worker(
    process_tasks: Any, told: Told
) -> None:
    worker = process_tasks.app.worker(concurrency=1, mode="processes").start()
    with pytest.raises(TaskFailed):
        process_tasks.broken.submit().result(timeout=WAIT)
    worker.stop()
    (record,) = told.records
    assert record.levelname == "ERROR"
    assert "in broken" in (record.exc_text or "")
    assert (record.exc_text or "").endswith("LookupError: from the child")
    assert "task=broken" in record.getMessage() and "attempt=1" in record.getMessage()


def test_a_result_that_is_too_large_is_logged(tmp_path: Path, told: Told) -> None:
    with Holdfast.open(tmp_path / "data", workers=1) as app:
        large = app.task(name="large")(lambda: "x" * 5_000_000)
        with pytest.raises(TaskFailed):
            large.submit().result(timeout=WAIT)
    assert "Expected a result of at most" in (told.records[0].exc_text or "")


# --- what a task does on purpose ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("raised", "retries", "level", "follows"),
    [
        (RetryLaterError(5), 2, "INFO", "retried in 5 s (2 retries left)"),
        (RetryLaterError(5), 0, "WARNING", "incident: no retries left"),
        (BusinessError("DECLINED", "no cover"), 2, "WARNING", "incident: not to be retried"),
    ],
)
def test_errors_that_are_part_of_the_work_have_no_traceback(
    told: Told, raised: Exception, retries: int, level: str, follows: str
) -> None:
    with holdfast.testing.app() as app:

        @app.task(retries=retries)
        def charge() -> None:
            raise raised

        charge.submit()
        app.run_all()
    (record,) = told.records
    assert record.levelname == level
    assert record.exc_info is None and record.exc_text is None
    assert told.fields()[0]["next"] == follows
    assert str(raised) in told.fields()[0]["error"]


def test_a_business_error_is_news_and_names_its_process(told: Told) -> None:
    with holdfast.testing.app() as app:

        @app.task
        def charge() -> None:
            raise BusinessError("DECLINED", "no cover")

        refused = error("DECLINED", path().end("refused"))
        app.deploy(Process("order").task("charge", on=[refused]).end("done"))
        handle = app.start("order")
        app.run_all()
    (record,), (fields,) = told.records, told.fields()
    assert (record.levelname, record.exc_text) == ("INFO", None)
    assert fields["next"] == "the process gets error 'DECLINED'"
    assert (fields["process"], fields["instance"]) == ("order", handle.key)


def test_giving_up_is_an_error_with_its_traceback(told: Told) -> None:
    with holdfast.testing.app() as app:

        @app.task
        def charge() -> None:
            raise GiveUpError("the account is closed")

        charge.submit()
        app.run_all()
    (record,) = told.records
    assert record.levelname == "ERROR" and record.exc_info is not None
    assert told.fields()[0]["next"] == "incident: not to be retried"


def test_arguments_that_do_not_fit_are_not_retried_but_a_wrong_answer_that_a_task_reads_is(
    told: Told,
) -> None:
    with holdfast.testing.app() as app:

        @app.task(retries=1)
        def charge(order: int) -> None:
            msgspec.json.decode(b'"no number"', type=int)

        app.portal.call(app.api.tasks.submit([NewTask("charge", msgspec.Raw(b'{"order": "A-1"}'))]))
        charge.submit(7)
        app.run_all()
    by_next = {each["next"].split(":")[0].split(" in ")[0] for each in told.fields()}
    assert by_next == {"incident", "retried"}
    (unfit,) = [each for each in told.fields() if each["next"] == "incident: not to be retried"]
    assert unfit["attempt"] == 1
    assert "expected int, but found str" in (told.records[0].exc_text or "")


def test_what_is_raised_after_the_job_was_completed_is_logged_and_changes_nothing(
    tmp_path: Path, told: Told
) -> None:
    with Holdfast.open(tmp_path / "data", workers=1) as app:

        @app.task
        def charge() -> str:
            with app.transaction() as transaction:
                transaction.complete(result="paid")
            raise LookupError("too late")

        assert charge.submit().result(timeout=WAIT) == "paid"
        wait_until(lambda: bool(told.records))
    assert told.fields()[0]["next"] == "nothing: a transaction completed the job"


# --- in programs ------------------------------------------------------------------------------

PROGRAM = """
import logging, sys
from holdfast import Holdfast
{setup}
with Holdfast.open("data", workers=1) as app:
    @app.task(retries=0)
    def charge() -> None:
        raise LookupError("no such order")
    try:
        charge.submit().result(timeout=30)
    except Exception:
        pass
"""


@pytest.mark.parametrize(
    ("setup", "sign", "absent"),
    [
        ("", "[error", "OWN"),
        ('logging.basicConfig(level="INFO", format="OWN %(levelname)s %(message)s")',
         "OWN ERROR task failed task=charge", "[error"),
    ],
    ids=["nothing set up", "logging set up"],
)  # fmt: skip
def test_a_program_sees_the_exceptions_of_its_tasks_once_and_nothing_else(
    tmp_path: Path, setup: str, sign: str, absent: str
) -> None:
    program = PROGRAM.format(setup=setup)
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout == ""
    assert sign in done.stderr and absent not in done.stderr
    assert done.stderr.count("LookupError: no such order") == 1
    assert done.stderr.count("task failed") == 1
    assert done.stderr.count("Traceback") == 1
    assert "info" not in done.stderr.lower()


# --- records ----------------------------------------------------------------------------------


def test_a_record_knows_who_wrote_it_and_a_message_is_one_line(told: Told) -> None:
    log.warning("hello", task="a b", lines="one\ntwo", empty="", number=3)
    (record,) = told.records
    assert record.filename == Path(__file__).name
    assert record.getMessage() == r"hello task='a b' lines='one\ntwo' empty='' number=3"
    assert json.dumps(told.fields()[0])
