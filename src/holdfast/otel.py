"""Traces by OpenTelemetry: from a submission through every attempt to the result.

`instrument(app)` in a client sends the caller's trace along with everything that is submitted; in a
worker it makes each attempt a span of that trace. The trace travels in the record of the task, as
W3C Trace Context in its headers. The only module that imports opentelemetry: `holdfast[otel]`.
"""

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

try:
    from opentelemetry import context, propagate, trace
    from opentelemetry.trace import Link, Span, SpanContext, SpanKind, Status, StatusCode, Tracer
except ImportError as missing:
    raise ImportError(
        "Expected opentelemetry to be installed, but it is not: pip install 'holdfast[otel]'"
    ) from missing

from holdfast.client.app import Holdfast
from holdfast.client.attempt import BusinessError, RetryLaterError
from holdfast.client.submitting import ChangedPart
from holdfast.client.views import JobDetails
from holdfast.gateway.api import Api
from holdfast.gateway.processes.shapes import NewProcessInstance, ProcessInstanceReceipt
from holdfast.gateway.tasks.shapes import NewTask, TaskOutcome, TaskReceipt
from holdfast.gateway.transactions.shapes import TransactionRequest, TransactionResult
from holdfast.limits import HEADERS_BYTES_MAX, HEADERS_MAX
from holdfast.version import VERSION

_SUBMITTED_MAX = 10_000  # submissions whose results may still be asked for: 200 bytes each

New = NewTask | NewProcessInstance


def instrument(app: Holdfast, *, tracer_provider: trace.TracerProvider | None = None) -> None:
    """Traces what is submitted through an app, what is run for it, and the results it waits for.

    Without a tracer provider it is the global one. Call it where the app is made, so that workers
    and their child processes import it too. An app that is traced already stays as it is.
    """
    if isinstance(app.api, _Traced):
        return
    tracer = trace.get_tracer("holdfast", VERSION, tracer_provider)
    app.middleware(_Attempts(tracer))
    traced: Any = _Traced(app.api, tracer)
    app.api = traced


# --- attempts ---------------------------------------------------------------------------------

_attempt: ContextVar[Span] = ContextVar("attempt")


class _Attempts:
    """Middleware: a span for each attempt, inside the trace that submitted the task."""

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer

    def before(self, job: JobDetails) -> None:
        sent = propagate.extract(job.headers)
        attributes: dict[str, Any] = {
            **_named(job.type, "process"),
            "messaging.message.id": job.job_key,
            "holdfast.attempt": job.attempt,
            "holdfast.retries_left": job.retries,
        }
        if job.origin is not None:
            attributes |= {
                "holdfast.process.id": job.origin.process_id,
                "holdfast.process.instance_key": job.origin.process_instance_key,
                "holdfast.process.element_id": job.origin.element_id,
            }
        span = self._tracer.start_span(
            f"process {job.type}", sent, SpanKind.CONSUMER, attributes=attributes
        )
        # The attempt has a context of its own: nothing needs to be put back afterwards.
        context.attach(trace.set_span_in_context(span, sent))
        _attempt.set(span)

    def after(self, job: JobDetails, result: Any) -> None:
        del job, result
        _attempt.get().end()

    def on_error(self, job: JobDetails, error: BaseException) -> None:
        span = _attempt.get()
        if isinstance(error, RetryLaterError | BusinessError) and _is_expected(job, error):
            span.add_event(type(error).__name__, {"message": str(error)})
        else:
            span.record_exception(error)
            span.set_status(Status(StatusCode.ERROR, f"{type(error).__name__}: {error}"))
        span.end()


def _is_expected(job: JobDetails, error: BaseException) -> bool:
    """Whether the work goes on as it is meant to: later, or elsewhere in its process."""
    return job.retries > 0 if isinstance(error, RetryLaterError) else job.origin is not None


# --- submissions and results ------------------------------------------------------------------


class _Traced:
    """Stands before an Api: submissions are spans that go along, and waiting for results is one."""

    def __init__(self, inner: Api, tracer: Tracer) -> None:
        self._inner = inner
        self._tracer = tracer
        self._submitted: OrderedDict[str, tuple[str, SpanContext]] = OrderedDict()
        self.tasks = ChangedPart(inner.tasks, submit=self._submit, results=self._results)
        self.instances = ChangedPart(inner.instances, start=self._start)
        self.transactions = ChangedPart(inner.transactions, commit=self._commit)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def _submit(self, tasks: Sequence[NewTask]) -> list[TaskReceipt]:
        with self._sending(tasks, "tasks") as span:
            receipts = await self._inner.tasks.submit(tasks)
            self._keep(span, tasks, [each.task_key for each in receipts])
            return receipts

    async def _start(self, instances: Sequence[NewProcessInstance]) -> list[ProcessInstanceReceipt]:
        with self._sending(instances, "processes") as span:
            receipts = await self._inner.instances.start(instances)
            self._keep(span, instances, [each.process_instance_key for each in receipts])
            return receipts

    async def _commit(self, request: TransactionRequest) -> TransactionResult:
        made = [each.submit or each.start for each in request.operations]
        new = [each for each in made if each is not None]
        with self._sending(new, "transaction") as span:
            result = await self._inner.transactions.commit(request)
            # an aborted transaction has no keys
            pairs = zip(result.keys, made, strict=False)
            kept = {key: each for key, each in pairs if each is not None}
            self._keep(span, list(kept.values()), list(kept))
            return result

    @contextmanager
    def _sending(self, new: Sequence[New], many: str) -> Iterator[Span]:
        """A span around a submission, whose context is in the headers of all that it submits."""
        names = {_name(each) for each in new}
        name = names.pop() if len(names) == 1 else many
        attributes = {**_named(name, "send"), "messaging.batch.message_count": len(new)}
        with self._tracer.start_as_current_span(
            f"send {name}", kind=SpanKind.PRODUCER, attributes=attributes
        ) as span:
            carrier: dict[str, str] = {}
            propagate.inject(carrier)
            for each in new:
                _add(each.headers, carrier)
            yield span

    def _keep(self, span: Span, new: Sequence[New], keys: Sequence[str]) -> None:
        if len(keys) == 1:
            span.set_attribute("messaging.message.id", keys[0])
        submitted = self._submitted
        for each, key in zip(new[-_SUBMITTED_MAX:], keys[-_SUBMITTED_MAX:], strict=True):
            submitted[key] = (_name(each), span.get_span_context())
        while len(submitted) > _SUBMITTED_MAX:
            submitted.popitem(last=False)

    async def _results(self, task_keys: Sequence[str], wait_ms: int) -> list[TaskOutcome]:
        """Inside the caller's span; without one, inside that of the submission."""
        known = [self._submitted[key] for key in task_keys if key in self._submitted]
        links = [Link(sent) for _, sent in known]
        parent = None
        if known and not trace.get_current_span().get_span_context().is_valid:
            parent = trace.set_span_in_context(trace.NonRecordingSpan(known[0][1]))
            links = links[1:]
        name = known[0][0] if known else "task"
        attributes = _named(name, "receive")
        if len(task_keys) == 1:
            attributes["messaging.message.id"] = task_keys[0]
        with self._tracer.start_as_current_span(
            f"result {name}", parent, SpanKind.CLIENT, attributes, links
        ) as span:
            outcomes = await self._inner.tasks.results(task_keys, wait_ms)
            if len(outcomes) == 1:
                span.set_attribute("holdfast.state", str(outcomes[0].state))
            return outcomes


def _name(new: New) -> str:
    return new.type if isinstance(new, NewTask) else new.process_id


def _named(name: str, operation: str) -> dict[str, Any]:
    """What OpenTelemetry's conventions want to know of a message."""
    return {
        "messaging.system": "holdfast",
        "messaging.destination.name": name,
        "messaging.operation.type": operation,
    }


def _add(headers: dict[str, str], carrier: dict[str, str]) -> None:
    """The trace, if the submission has none of its own; without what there is no room for."""
    if carrier.keys() & headers.keys():
        return
    room = HEADERS_BYTES_MAX - sum(len(k.encode()) + len(v.encode()) for k, v in headers.items())
    for name, value in sorted(carrier.items(), key=lambda item: len(item[1])):
        room -= len(name.encode()) + len(value.encode())
        if room < 0 or len(headers) == HEADERS_MAX:
            return
        headers[name] = value
