"""Traces: one from the submission through every attempt to the result, over HTTP and processes."""

import importlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import baggage, context, trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

import holdfast.testing
from holdfast import BusinessError, Holdfast, Process, RetryLaterError, current_job, error, path
from holdfast.otel import instrument

from .shell import Shell

WORKER = """
import atexit
import os
from multiprocessing import parent_process
from pathlib import Path

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from holdfast import Holdfast, RetryBackoff, current_job
from holdfast.otel import instrument

exporter, provider = InMemorySpanExporter(), TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(exporter))
trace.set_tracer_provider(provider)
atexit.register(lambda: Path(f"spans-{os.getpid()}.json").write_text(
    "[" + ",".join(span.to_json() for span in exporter.get_finished_spans()) + "]"
))

app = Holdfast.connect()
instrument(app)

@app.task(backoff=RetryBackoff(base_ms=10))
def charge(order: int) -> int:
    with trace.get_tracer("shop").start_as_current_span("ask the bank"):
        if current_job().attempt == 1:
            raise LookupError("the bank is away")
        if parent_process() is None:  # a child process cannot submit through its app
            pack.submit(order)
    return order * 2

@app.task
def pack(order: int) -> None: ...
"""


class Spans:
    """A tracer provider, and the spans that it has finished."""

    def __init__(self) -> None:
        self._exporter = InMemorySpanExporter()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self._exporter))

    @property
    def all(self) -> tuple[ReadableSpan, ...]:
        return self._exporter.get_finished_spans()

    def one(self, name: str) -> ReadableSpan:
        (found,) = [each for each in self.all if each.name == name]
        return found


@pytest.fixture
def spans() -> Iterator[Spans]:
    yield Spans()


def own_id(span: ReadableSpan) -> str:
    assert span.context is not None
    return trace.format_span_id(span.context.span_id)


def parent_id(span: ReadableSpan) -> str | None:
    return None if span.parent is None else trace.format_span_id(span.parent.span_id)


def attribute(span: ReadableSpan, name: str) -> Any:
    return (span.attributes or {})[name]


@pytest.mark.parametrize("mode", ["threads", "processes"])
def test_one_trace_from_submit_through_a_retry_to_the_result(
    shell: Shell, spans: Spans, mode: str
) -> None:
    (shell.folder / "traced.py").write_text(WORKER)
    shell.serve_node(partitions=1)
    worker = shell.begin("worker", "traced:app", "--concurrency", "1", "--mode", mode)
    with Holdfast.connect(shell.url) as app:
        instrument(app, tracer_provider=spans.provider)

        @app.task
        def charge(order: int) -> int: ...

        with spans.provider.get_tracer("web").start_as_current_span("request"):
            handle = charge.bind(21).submit(key="order-21")
            assert handle.result(timeout=30) == 42
    assert worker.end().code == 0
    request, send, result = (spans.one(n) for n in ("request", "send charge", "result charge"))
    assert parent_id(request) is None
    assert parent_id(send) == parent_id(result) == own_id(request)
    assert send.kind is SpanKind.PRODUCER
    assert attribute(send, "messaging.message.id") == handle.key
    assert [link.context.span_id for link in result.links] == [send.get_span_context().span_id]
    assert attribute(result, "holdfast.state") == "COMPLETED"

    theirs = _read(shell.folder)
    assert {each["context"]["trace_id"] for each in theirs} == {
        "0x" + trace.format_trace_id(request.get_span_context().trace_id)
    }
    first, second = sorted(
        (each for each in theirs if each["name"] == "process charge"),
        key=lambda each: each["attributes"]["holdfast.attempt"],
    )
    for attempt in (first, second):
        assert attempt["parent_id"] == "0x" + own_id(send)
        assert attempt["kind"] == "SpanKind.CONSUMER"
        assert attempt["attributes"]["messaging.message.id"] == handle.key
    assert first["status"]["status_code"] == "ERROR"
    assert first["events"][0]["attributes"]["exception.message"] == "the bank is away"
    assert second["status"]["status_code"] == "UNSET"
    asked = [each["parent_id"] for each in theirs if each["name"] == "ask the bank"]
    assert asked == [first["context"]["span_id"], second["context"]["span_id"]]
    if mode == "threads":
        (again,) = [each for each in theirs if each["name"] == "send pack"]
        (packed,) = [each for each in theirs if each["name"] == "process pack"]
        assert packed["parent_id"] == again["context"]["span_id"]


def _read(folder: Path) -> list[dict[str, Any]]:
    files = [json.loads(file.read_text()) for file in folder.glob("spans-*.json")]
    return [span for file in files for span in file]


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "holdfast.otel")
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    with pytest.raises(ImportError, match=r"pip install 'holdfast\[otel\]'"):
        importlib.import_module("holdfast.otel")


# --- in the test kit --------------------------------------------------------------------------


def test_the_trace_of_a_process_goes_through_its_jobs_and_expected_errors_are_none(
    spans: Spans,
) -> None:
    with holdfast.testing.app() as app:
        instrument(app, tracer_provider=spans.provider)

        @app.task
        def check() -> None:
            if current_job().attempt == 1:
                raise RetryLaterError(5)

        @app.task
        def charge() -> None:
            raise BusinessError("DECLINED")

        refused = error("DECLINED", path().end("refused"))
        app.deploy(Process("order").task("check").task("charge", on=[refused]).end("done"))
        handle = app.start("order")
        app.run_all()
        app.advance(5)
        app.run_all()
        assert handle.result() == {}
    send = spans.one("send order")
    attempts = [each for each in spans.all if each.kind is SpanKind.CONSUMER]
    assert [each.name for each in attempts] == ["process check"] * 2 + ["process charge"]
    assert {parent_id(each) for each in attempts} == {own_id(send)}
    assert {each.status.status_code for each in attempts} == {StatusCode.UNSET}
    assert [event.name for each in attempts for event in each.events] == [
        "RetryLaterError", "BusinessError",
    ]  # fmt: skip
    assert attribute(attempts[0], "holdfast.process.instance_key") == handle.key
    assert parent_id(spans.one("result order")) == own_id(send), "nobody else waits for it"


def test_tasks_submitted_together_share_a_span_and_a_refused_submission_is_an_error(
    spans: Spans,
) -> None:
    with holdfast.testing.app() as app:
        instrument(app, tracer_provider=spans.provider)
        instrument(app, tracer_provider=spans.provider)  # once more changes nothing
        task = app.task(name="t")(lambda: None)
        app.submit_many([task.bind(), task.bind()])
        with app.transaction() as transaction:
            transaction.submit(task)
        app.run_all()
        with pytest.raises(holdfast.InvalidArgument):
            task.bind().submit(key="k" * 10_000)  # by the node: it is longer than keys may be
    together, alone, refused = [each for each in spans.all if each.kind is SpanKind.PRODUCER]
    assert attribute(together, "messaging.batch.message_count") == 2
    parents = [parent_id(each) for each in spans.all if each.kind is SpanKind.CONSUMER]
    assert sorted(parents, key=str) == sorted([own_id(together)] * 2 + [own_id(alone)])
    assert refused.status.status_code is StatusCode.ERROR


def test_a_trace_of_ones_own_is_kept_and_baggage_that_does_not_fit_is_left_out(
    spans: Spans,
) -> None:
    own = {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}
    seen: list[dict[str, str]] = []
    with holdfast.testing.app() as app:
        instrument(app, tracer_provider=spans.provider)
        task = app.task(name="t")(lambda: seen.append(current_job().headers))
        task.bind().submit(headers=own)
        token = context.attach(baggage.set_baggage("large", "x" * 8_100))
        try:
            task.submit()
        finally:
            context.detach(token)
        app.run_all()
    assert seen[0] == own
    assert list(seen[1]) == ["traceparent"]
    assert parent_id(next(each for each in spans.all if each.kind is SpanKind.CONSUMER)) == (
        "b7ad6b7169203331"
    )
