"""Headers: what goes with a task or a process to the workers of its jobs."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from waiting import WAIT

import holdfast.testing
from holdfast import Holdfast, InvalidArgument, Process, current_job
from holdfast.gateway.tasks.shapes import ActivatedJob, NewTask
from holdfast.limits import HEADERS_BYTES_MAX, HEADERS_MAX, REQUEST_BYTES_MAX

TRACE = {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}


def test_a_worker_has_the_headers_of_a_submission_at_every_attempt() -> None:
    seen: list[tuple[int, dict[str, str]]] = []
    with holdfast.testing.app() as app:

        @app.task(retries=1)
        def charge(order: int) -> None:
            seen.append((order, current_job().headers))
            if len(seen) == 1:
                raise LookupError("the bank is away")

        own = dict(TRACE)
        charge.bind(1).submit(key="one", headers=own)
        own.clear()  # the submission has its own
        app.run_all()
        app.advance(timedelta(hours=1))
        app.run_all()
        app.submit_many([charge.bind(2).with_headers({"tenant": "blue"}), charge.bind(3)])
        with app.transaction() as transaction:
            transaction.submit(charge.bind(4).with_headers({"tenant": "red"}))
        app.run_all()
    assert seen == [
        (1, TRACE), (1, TRACE), (2, {"tenant": "blue"}), (3, {}), (4, {"tenant": "red"})
    ]  # fmt: skip


def test_a_schedule_gives_its_headers_to_every_firing() -> None:
    seen: list[dict[str, str]] = []
    with holdfast.testing.app() as app:

        @app.task
        def clean() -> None:
            seen.append(current_job().headers)

        app.schedule("nightly", clean.bind().with_headers(TRACE), every=3600)
        for _ in range(2):
            app.advance(3600)
            app.run_all()
    assert seen == [TRACE, TRACE]


def test_the_jobs_of_a_process_and_of_those_that_it_calls_have_its_headers() -> None:
    seen: list[tuple[str, dict[str, str]]] = []
    with holdfast.testing.app() as app:

        @app.task
        def pack() -> dict[str, Any]:
            job = current_job()
            assert job.origin is not None
            seen.append((job.origin.process_id, job.headers))
            return {}

        app.deploy(Process("packing").task("pack").end("packed"))
        order = Process("order").task("pack").call("sub", process="packing").end("done")
        app.deploy(order)
        app.start("order", headers=TRACE)
        app.run_all()
        app.start("order")
        app.run_all()
    assert seen == [("order", TRACE), ("packing", TRACE), ("order", {}), ("packing", {})]


def test_headers_outlive_a_restart(tmp_path: Path) -> None:
    def open_app() -> Any:
        app = Holdfast.open(tmp_path / "data", workers=0)

        @app.task
        def tell() -> dict[str, str]:
            return current_job().headers

        return app, tell

    app, tell = open_app()
    handle = tell.bind().submit(headers=TRACE)
    app.deploy(Process("told").task("tell").end("done"))
    instance = app.start("told", headers={"tenant": "blue"})
    app.close()
    app, _ = open_app()
    worker = app.worker(concurrency=1).start()
    assert app.handle(handle.key).result(timeout=WAIT) == TRACE
    assert app.instance(instance.key).result(timeout=WAIT) == {"tenant": "blue"}
    worker.stop()
    app.close()


# --- limits -----------------------------------------------------------------------------------

WRONG: dict[str, Any] = {
    "number of headers from 0 to": {str(n): "" for n in range(HEADERS_MAX + 1)},
    "bytes of headers from 0 to": {"baggage": "é" * (HEADERS_BYTES_MAX // 2)},
    "name of a header of 1 to": {"": "empty"},
    "a text for header 'n'": {"n": 1},
    "headers in UTF-8": {"n": "\ud800"},
    "a name of a header, but found 1": {1: "n"},
}


@pytest.mark.parametrize("why", WRONG)
def test_headers_that_cannot_be_kept_are_refused(why: str) -> None:
    with holdfast.testing.app() as app:
        task = app.task(name="t")(lambda: None)
        app.deploy(Process("p").end("e"))
        with pytest.raises(InvalidArgument, match=why):
            task.bind().submit(headers=WRONG[why])
        with pytest.raises(InvalidArgument, match=why):
            app.start("p", headers=WRONG[why])


def test_headers_count_as_bytes_of_a_request() -> None:
    with holdfast.testing.app() as app:
        task = app.task(name="t")(lambda: None)
        heavy = task.bind().with_headers({"h": "x" * 8_000})
        with pytest.raises(InvalidArgument, match="bytes of payload in one request"):
            app.submit_many([heavy] * (REQUEST_BYTES_MAX // 8_000 + 1))


def test_a_task_without_headers_looks_on_the_wire_as_before() -> None:
    assert b"headers" not in msgspec.json.encode(NewTask("t"))
    job = ActivatedJob("7", "t", msgspec.Raw(b"1"), "8", 1, 1, 3, True)
    assert b"headers" not in msgspec.json.encode(job)
