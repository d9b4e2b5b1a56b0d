"""Middleware: hooks around every task and before every submission."""

import asyncio
import importlib
import logging
import sys
from collections.abc import Callable
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import pytest
from waiting import WAIT

import holdfast.testing
from holdfast import (
    BusinessError,
    GiveUpError,
    Holdfast,
    InvalidArgument,
    Process,
    RetryLaterError,
    current_job,
)
from holdfast.gateway.tasks.shapes import ActivatedJob, NewTask

tenant: ContextVar[str] = ContextVar("tenant", default="nobody")


class Noting:
    """Notes what it is told, and sets a context variable before."""

    def __init__(self, name: str, notes: list[Any]) -> None:
        self.name = name
        self.notes = notes

    def before(self, job: ActivatedJob) -> None:
        tenant.set(f"{tenant.get()}/{self.name}")
        self.notes.append((self.name, "before", current_job().job_key == job.job_key))

    def after(self, job: ActivatedJob, result: Any) -> None:
        self.notes.append((self.name, "after", result))

    def on_error(self, job: ActivatedJob, error: BaseException) -> None:
        self.notes.append((self.name, "on_error", repr(error)))


class NotingAsync(Noting):
    """The same with coroutine functions that really wait."""

    async def before(self, job: ActivatedJob) -> None:
        await asyncio.sleep(0)
        super().before(job)

    async def after(self, job: ActivatedJob, result: Any) -> None:
        await asyncio.sleep(0)
        super().after(job, result)

    async def on_error(self, job: ActivatedJob, error: BaseException) -> None:
        await asyncio.sleep(0)
        super().on_error(job, error)


AROUND = [
    ("outer", "before", True), ("inner", "before", True),
    ("inner", "after", "nobody/outer/inner"), ("outer", "after", "nobody/outer/inner"),
]  # fmt: skip


@pytest.mark.parametrize("kind", [Noting, NotingAsync])
@pytest.mark.parametrize("is_async", [False, True], ids=["plain task", "async task"])
@pytest.mark.parametrize("is_real", [False, True], ids=["kit", "worker"])
def test_hooks_are_called_around_every_task_in_its_context(
    tmp_path: Path, kind: type[Noting], is_async: bool, is_real: bool
) -> None:
    notes: list[Any] = []

    def plain() -> str:
        asyncio.run(asyncio.sleep(0))  # hooks that wait leave no loop behind
        return tenant.get()

    async def waiting() -> str:
        await asyncio.sleep(0)
        return tenant.get()

    def story(app: Holdfast, run: Callable[[], Any]) -> None:
        app.middleware(kind("outer", notes))
        app.middleware(kind("inner", notes))
        task = app.task(name="tell")(waiting if is_async else plain)
        handles = [task.submit() for _ in range(2)]
        run()
        assert [each.result(timeout=WAIT) for each in handles] == ["nobody/outer/inner"] * 2
        assert tenant.get() == "nobody"

    if is_real:
        with Holdfast.open(tmp_path / "data", workers=1) as app:
            story(app, lambda: None)
    else:
        with holdfast.testing.app() as app:
            story(app, app.run_all)
    assert notes == AROUND * 2


MODULE = """
import os
from contextvars import ContextVar
from holdfast import Holdfast, current_job

app = Holdfast.open(os.environ["HOOKED_FOLDER"], workers=0)
tenant = ContextVar("tenant", default="nobody")

class Tenants:
    def on_submit(self, new):
        new.headers["tenant"] = "blue"

    async def before(self, job):
        tenant.set(job.headers["tenant"])

    def on_error(self, job, error):
        with open(os.environ["HOOKED_FOLDER"] + ".errors", "w") as file:
            file.write(f"{os.getpid()} {error!r} {tenant.get()}")

app.middleware(Tenants())

@app.task
def tell() -> str:
    return f"{os.getpid()} {tenant.get()}"

@app.task(retries=0)
def broken() -> str:
    raise LookupError("in the child")
"""


def test_child_processes_call_the_hooks_that_their_module_adds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "hooked_tasks.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("HOOKED_FOLDER", str(tmp_path / "data"))
    sys.modules.pop("hooked_tasks", None)
    module = importlib.import_module("hooked_tasks")
    worker = module.app.worker(concurrency=1, mode="processes").start()
    process, found = module.tell.submit().result(timeout=WAIT).split()
    assert found == "blue"
    with pytest.raises(holdfast.TaskFailed, match="LookupError"):
        module.broken.submit().result(timeout=WAIT)
    worker.stop()
    module.app.close()
    assert (tmp_path / "data.errors").read_text() == f"{process} LookupError('in the child') blue"


# --- errors -----------------------------------------------------------------------------------


class Faulty(Noting):
    """Raises in every hook."""

    def before(self, job: ActivatedJob) -> None:
        raise ZeroDivisionError("before")

    async def after(self, job: ActivatedJob, result: Any) -> None:
        raise ZeroDivisionError("after")

    def on_error(self, job: ActivatedJob, error: BaseException) -> None:
        raise ZeroDivisionError("on_error")


def test_what_a_hook_raises_is_logged_and_changes_nothing(
    logged: Callable[[], list[logging.LogRecord]],
) -> None:
    notes: list[Any] = []
    with holdfast.testing.app() as app:
        app.middleware(Noting("outer", notes))
        app.middleware(Faulty("faulty", notes))

        @app.task(retries=0)
        def divide(by: int) -> float:
            return 1 / by

        good, bad = divide.submit(4), divide.submit(0)
        app.run_all()
        assert good.result() == 0.25
        assert bad.view().state == "INCIDENT"
    failed = [vars(each)["fields"] for each in logged() if "middleware" in each.getMessage()]
    assert [each["hook"] for each in failed] == ["before", "after", "before", "on_error"]
    assert {(each["middleware"], each["task"]) for each in failed} == {("Faulty", "divide")}
    assert [note[:2] for note in notes] == [
        ("outer", "before"), ("outer", "after"), ("outer", "before"), ("outer", "on_error"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("refusal", "state"),
    [(RetryLaterError(60), "SCHEDULED"), (GiveUpError("closed"), "INCIDENT"),
     (BusinessError("CLOSED"), "INCIDENT")],
    ids=["later", "never", "business"],
)  # fmt: skip
def test_before_refuses_an_attempt_with_the_errors_of_tasks(refusal: Exception, state: str) -> None:
    notes: list[Any] = []

    class Refusing:
        def before(self, job: ActivatedJob) -> None:
            raise refusal

        def on_error(self, job: ActivatedJob, error: BaseException) -> None:
            notes.append("the one that refuses is not told")

    with holdfast.testing.app() as app:
        app.middleware(Noting("outer", notes))
        app.middleware(Refusing())
        app.middleware(Noting("inner", notes))
        task = app.task(name="t")(lambda: notes.append("never called"))
        handle = task.submit()
        app.run_all()
        assert handle.view().state == state
    assert notes == [("outer", "before", True), ("outer", "on_error", repr(refusal))]


def test_a_result_that_cannot_be_stored_is_an_error_for_the_hooks_too() -> None:
    notes: list[Any] = []
    with holdfast.testing.app() as app:
        app.middleware(Noting("only", notes))
        app.task(name="t", retries=0)(lambda: object()).submit()
        app.run_all()
    assert [note[:2] for note in notes] == [("only", "before"), ("only", "on_error")]


def test_an_object_without_hooks_is_no_middleware() -> None:
    class Mistyped:
        def befor(self, job: ActivatedJob) -> None: ...

    with (
        holdfast.testing.app() as app,
        pytest.raises(InvalidArgument, match=r"on_error, on_submit, but .*Mistyped"),
    ):
        app.middleware(Mistyped())


# --- submissions ------------------------------------------------------------------------------


class Tenants:
    """Sends the caller's tenant along."""

    async def on_submit(self, new: Any) -> None:
        new.headers["tenant"] = tenant.get()


@pytest.mark.parametrize("is_real", [False, True], ids=["kit", "worker"])
def test_every_submission_goes_through_the_hooks_in_the_context_of_its_caller(
    tmp_path: Path, is_real: bool
) -> None:
    seen: list[str] = []

    def story(app: Holdfast, run: Callable[[], Any]) -> None:
        app.middleware(Tenants())

        @app.task
        def tell(number: int = 0) -> dict[str, str]:
            seen.append(f"{number} {current_job().headers['tenant']}")
            return {}

        app.deploy(Process("told").task("tell").end("done"))
        handles: list[Any] = [tell.submit(1)]
        handles += app.submit_many([tell.bind(2), tell.bind(3)])
        handles += [asyncio.run(tell.submit_async(4)), app.start("told", {"number": 5})]
        with app.transaction() as transaction:
            handles += [
                transaction.submit(tell.bind(6)), transaction.start("told", {"number": 7})
            ]  # fmt: skip
        run()
        for handle in handles:
            handle.result(timeout=WAIT)

    token = tenant.set("red")
    try:
        if is_real:
            with Holdfast.open(tmp_path / "data", workers=1) as app:
                story(app, lambda: None)
        else:
            with holdfast.testing.app() as app:
                story(app, app.run_all)
    finally:
        tenant.reset(token)
    assert sorted(seen) == [f"{number} red" for number in range(1, 8)]


def test_on_submit_refuses_with_an_error_of_holdfast_and_fails_quietly_with_any_other(
    logged: Callable[[], list[logging.LogRecord]],
) -> None:
    class Strict:
        def on_submit(self, new: NewTask) -> None:
            if not new.headers:
                raise InvalidArgument("Expected a tenant")
            raise LookupError("a bug in the hook")

    with holdfast.testing.app() as app:
        app.middleware(Strict())
        task = app.task(name="t")(lambda: 1)
        with pytest.raises(InvalidArgument, match="Expected a tenant"):
            task.submit()
        handle = task.bind().submit(headers={"tenant": "red"})
        assert app.run_all() == 1
        assert handle.result() == 1
    (record,) = [each for each in logged() if "middleware" in each.getMessage()]
    assert (vars(record)["fields"]["hook"], record.exc_info is not None) == ("on_submit", True)
