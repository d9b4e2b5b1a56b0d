"""Clients come back when the node says, and not before; who cannot wait so long is told at once."""

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from tests.cli.shell import Shell
from waiting import WAIT, wait_until

from holdfast import Holdfast
from holdfast.client.handle import wait_for_outcome
from holdfast.client.patience import patient, patiently
from holdfast.client.portal import Portal
from holdfast.client.remote import RemoteApi
from holdfast.client.retry_after import span_ms_of
from holdfast.client.worker import Worker
from holdfast.clock import SystemClock
from holdfast.config import Config
from holdfast.errors import (
    HoldfastError,
    InvalidState,
    ResourceExhausted,
    Unavailable,
    Unknown,
)
from holdfast.gateway.api import Api
from holdfast.gateway.http import HttpServer
from holdfast.gateway.tasks.shapes import NewTask, TaskQuery
from holdfast.testing import MemoryNode, VirtualClock, run

FULL = ResourceExhausted("full", retry_after_ms=400)


class Refusing:
    """A part of an Api that refuses what it is asked first, and notes when it was asked."""

    def __init__(self, *errors: HoldfastError) -> None:
        self.asked_at: list[float] = []
        self._errors = list(errors)

    async def submit(self, tasks: list[NewTask]) -> int:
        self.asked_at.append(asyncio.get_running_loop().time())
        if self._errors:
            raise self._errors.pop(0)
        return len(tasks)

    async def results(self, keys: list[str], wait_ms: int) -> list[Any]:
        await self.submit([])
        raise InvalidState("it was asked again")

    def name(self) -> str:
        return "refusing"


class Parts(Api):
    """An Api of two parts."""

    def __init__(self, *errors: HoldfastError) -> None:
        self.tasks = Refusing(*errors)  # type: ignore[assignment]
        self.url = "http://there"
        self.access = None


# --- how long it waits ------------------------------------------------------------------------


@pytest.mark.parametrize(("spread", "pause_s"), [(0.0, 0.4), (0.5, 0.45), (1.0, 0.5)])
def test_it_comes_back_when_the_node_says_and_never_earlier(spread: float, pause_s: float) -> None:
    async def story() -> None:
        api = Refusing(FULL, FULL)
        assert await patient(api, 10, lambda: spread).submit([NewTask("mail")]) == 1
        assert api.asked_at == pytest.approx([0, pause_s, 2 * pause_s])

    run(story(), VirtualClock())


def test_a_pause_that_is_longer_than_the_patience_is_not_begun() -> None:
    async def story() -> None:
        api = Refusing(FULL, FULL, FULL)
        with pytest.raises(ResourceExhausted, match="full"):
            await patient(api, 1.0, lambda: 0).submit([])
        assert api.asked_at == pytest.approx([0, 0.4, 0.8]), "the next would be at 1.2 s"
        with pytest.raises(ResourceExhausted):
            await patient(Refusing(FULL), 0).submit([])
        assert asyncio.get_running_loop().time() == pytest.approx(0.8)

    run(story(), VirtualClock())


@pytest.mark.parametrize(("timeout", "asked"), [(0.3, 1), (0.5, 2), (None, 2)])
def test_the_callers_own_deadline_bounds_the_patience(timeout: float | None, asked: int) -> None:
    async def story() -> None:
        inner = Parts(FULL)
        api: Any = patient(inner, 10, lambda: 0)
        with pytest.raises(ResourceExhausted if asked == 1 else InvalidState):
            await wait_for_outcome(api, "7", timeout)
        assert len(inner.tasks.asked_at) == asked

    run(story(), VirtualClock())


class Elsewhere(Parts):
    """An Api of a node that may be away for a while."""

    patience_s = 8.0

    def is_passing(self, error: HoldfastError) -> bool:
        return isinstance(error, Unavailable)


@pytest.mark.parametrize(("timeout", "until"), [(2.5, 2.5), (20.0, 20.0), (None, 8.0)])
def test_a_result_is_waited_for_while_the_node_is_away(timeout: float | None, until: float) -> None:
    async def story() -> None:
        api = Elsewhere(*[Unavailable("away")] * 3)
        with pytest.raises(InvalidState, match="asked again"):
            await wait_for_outcome(api, "7", timeout)
        assert len(api.tasks.asked_at) == 4
        began = asyncio.get_running_loop().time()
        gone = Elsewhere(*[Unavailable("away")] * 1_000)
        with pytest.raises(Unavailable, match="away"):
            await wait_for_outcome(gone, "7", timeout)
        assert until - 1.1 <= gone.tasks.asked_at[-1] - began <= until, "within its time"

    run(story(), VirtualClock())


def test_a_result_is_not_asked_for_before_the_node_says() -> None:
    async def story() -> None:
        api = Elsewhere(Unavailable("away", retry_after_ms=3_000), Unavailable("away"))
        with pytest.raises(InvalidState, match="asked again"):
            await wait_for_outcome(patient(api, 10, lambda: 0), "7", 20)
        first, second, _ = api.tasks.asked_at
        assert second - first >= 3

    run(story(), VirtualClock())


def test_without_a_word_of_the_node_the_pauses_grow() -> None:
    async def story() -> None:
        api = Refusing(*[Unavailable("away") for _ in range(8)])
        given = await patiently(lambda: api.submit([]), (Unavailable,), 60, lambda: 1.0)
        assert given == 0
        pauses = [later - at for at, later in pairwise(api.asked_at)]
        assert pauses == pytest.approx([0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.0, 1.0])

    run(story(), VirtualClock())


# --- what is asked again ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "error",
    [
        ResourceExhausted("at most 1,000 users"),
        ResourceExhausted("at most 1,000 users", retry_after_ms=0),
        Unavailable("the connection broke"),
        InvalidState("no"),
    ],
)
def test_what_does_not_say_when_to_come_back_is_the_callers(error: HoldfastError) -> None:
    async def story() -> None:
        api = Refusing(error)
        with pytest.raises(type(error)):
            await patient(api, 10).submit([])
        assert len(api.asked_at) == 1

    run(story(), VirtualClock())


@pytest.mark.parametrize(
    ("keys", "asked"), [((None, None), 2), (("a", "b"), 2), (("a", None), 1)], ids=str
)
def test_tasks_with_keys_and_without_are_not_sent_twice_together(
    keys: tuple[str | None, ...], asked: int
) -> None:
    async def story() -> None:
        api = Refusing(FULL)
        submitting = patient(api, 10).submit([NewTask("mail", key=key) for key in keys])
        if asked == 1:
            with pytest.raises(ResourceExhausted):
                await submitting
        else:
            assert await submitting == 2
        assert len(api.asked_at) == asked

    run(story(), VirtualClock())


def test_the_parts_of_an_api_are_patient_and_its_values_are_what_they_are() -> None:
    async def story() -> None:
        api = patient(Parts(FULL), 10)
        assert await api.tasks.submit([NewTask("mail")]) == 1
        assert api.tasks.name() == "refusing"
        assert (api.url, api.access) == ("http://there", None)
        assert api.tasks is api.tasks

    run(story(), VirtualClock())


# --- over HTTP --------------------------------------------------------------------------------


Answer = tuple[int, dict[str, str], Any]


@contextmanager
def serving(*answers: Answer) -> Iterator[tuple[str, list[float]]]:
    """A server that gives these answers, the last one for ever; its URL, and when it was asked."""
    asked_at: list[float] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked_at.append(datetime.now(UTC).timestamp())
            self.rfile.read(int(self.headers["Content-Length"]))
            status, headers, body = answers[min(len(asked_at), len(answers)) - 1]
            content = body.encode() if isinstance(body, str) else json.dumps(body).encode()
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", asked_at
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def problem(code: str, retry_after_ms: int | None, **fields: Any) -> dict[str, Any]:
    return {
        "type": "x", "title": "x", "status": 503, "detail": "full", "code": code,
        "instance": "/", "retryAfterMs": retry_after_ms, "fields": fields,
    }  # fmt: skip


RECEIPTS = {"tasks": [{"taskKey": "7", "created": True}]}
DONE: Answer = (200, {}, RECEIPTS)


def submit_to(url: str, patience_s: float = 10) -> list[Any]:
    async def story() -> list[Any]:
        api = RemoteApi(url)
        try:
            return await patient(api, patience_s, lambda: 0).tasks.submit([NewTask("mail")])
        finally:
            await api.close()

    return asyncio.run(story())


@pytest.mark.parametrize("code", ["RESOURCE_EXHAUSTED", "UNAVAILABLE"])
def test_over_http_it_comes_back_when_the_node_says(code: str) -> None:
    with serving((503, {"Retry-After": "1"}, problem(code, 60)), DONE) as (url, asked_at):
        assert [receipt.task_key for receipt in submit_to(url)] == ["7"]
        first, second = asked_at
        assert second - first >= 0.06


@pytest.mark.parametrize(
    "refusal",
    [
        (503, {"Retry-After": "7"}, problem("RESOURCE_EXHAUSTED", None)),
        (429, {"Retry-After": "7"}, "slow down"),
        (503, {"Retry-After": "7"}, "<html>a proxy</html>"),
    ],
    ids=["before it was read", "a proxy's limit", "a proxy"],
)
def test_the_header_says_when_to_come_back_where_the_answer_does_not(refusal: Answer) -> None:
    with serving(refusal, DONE) as (url, asked_at):
        with pytest.raises(HoldfastError) as refused:
            submit_to(url, patience_s=6.9)
        assert refused.value.retry_after_ms == 7_000
        assert len(asked_at) == 1, "it does not begin to wait for what it cannot wait for"


@pytest.mark.parametrize(
    "refusal",
    [
        (503, {"Retry-After": "1"}, problem("UNAVAILABLE", None)),
        (502, {"Retry-After": "1"}, "a proxy that lost the node"),
        (504, {"Retry-After": "1"}, "a proxy that waited in vain"),
        (503, {}, "a proxy"),
        (503, {"Retry-After": "soon"}, "a proxy"),
    ],
    ids=["no tables", "lost", "too late", "no word", "no time"],
)
def test_over_http_it_does_not_come_back_when_nobody_says_that_nothing_was_done(
    refusal: Answer,
) -> None:
    with serving(refusal, DONE) as (url, asked_at):
        with pytest.raises(Unknown if refusal[0] in (502, 504) else Unavailable):
            submit_to(url)
        assert len(asked_at) == 1


@pytest.mark.parametrize(
    ("header", "span_ms"),
    [
        ("0", 0), ("7", 7_000), ("9" * 50, 10 * 365 * 86_400_000), ("-1", 0), ("1.5", 0), ("", 0),
        ("٧", 0), ("soon", 0),  # noqa: RUF001 - a digit that is none here
    ],
)  # fmt: skip
def test_a_span_is_read_from_the_header(header: str, span_ms: int) -> None:
    assert span_ms_of(header, VirtualClock()) == span_ms


def test_a_moment_is_read_from_the_header() -> None:
    clock = VirtualClock()
    now = datetime.fromtimestamp(clock.now_ms() / 1000, UTC)
    later = format_datetime(now + timedelta(seconds=90), usegmt=True)
    assert span_ms_of(later, clock) == 90_000
    assert span_ms_of(format_datetime(now - timedelta(days=1), usegmt=True), clock) == 0


def test_the_command_line_waits_as_the_node_asks(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    refusal = (503, {"Retry-After": "1"}, problem("RESOURCE_EXHAUSTED", 120))
    with serving(refusal, refusal, DONE) as (shell.url, asked_at):
        done = shell.run("tasks", "submit", "mail", "1")
        assert done.code == 0, done.err
        assert [b - a >= 0.12 for a, b in pairwise(asked_at)] == [True] * 2
    hopeless = (503, {"Retry-After": "9999"}, problem("RESOURCE_EXHAUSTED", 9_999_000))
    with serving(hopeless) as (shell.url, asked_at):
        done = shell.run("tasks", "submit", "mail", "1")
        assert (done.code, len(asked_at)) == (9, 1) and "full" in done.err


def test_the_command_line_waits_while_a_process_of_the_node_restarts(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    away = (503, {"Retry-After": "1"}, problem("UNAVAILABLE", None, partition=2))
    listed: Answer = (200, {}, {"items": [], "after": None})
    with serving(away, away, listed) as (shell.url, asked_at):
        done = shell.run("tasks", "list")
        assert (done.code, len(asked_at)) == (0, 3), done.err
    lasting = (503, {"Retry-After": "1"}, problem("UNAVAILABLE", None, lasting=1))
    with serving(lasting) as (shell.url, asked_at):
        done = shell.run("tasks", "list")
        assert (done.code, len(asked_at)) == (4, 1), "waiting does not help"


def test_a_wait_goes_on_after_the_node_was_killed_in_the_middle_of_it() -> None:
    """The command line waits for no node that it never reached; one that died it did reach."""
    done = json.dumps({"tasks": [{"taskKey": "7", "state": "COMPLETED", "result": 1}]})

    async def story() -> str:
        async def die(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readline()
            server.close()
            writer.close()

        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readline()
            writer.write(
                f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                f"Content-Length: {len(done)}\r\n\r\n{done}".encode()
            )
            await writer.drain()

        server = await asyncio.start_server(die, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        api = RemoteApi(f"http://127.0.0.1:{port}", patience_s=30, waits_for_start=False)
        waiting = asyncio.create_task(wait_for_outcome(api, "7", 30))
        await server.wait_closed()
        await asyncio.sleep(0.1)  # the port is free: a connection is refused meanwhile
        async with await asyncio.start_server(answer, "127.0.0.1", port):
            outcome = await waiting
        await api.close()
        return str(outcome.state)

    assert asyncio.run(story()) == "COMPLETED"


# --- a worker ---------------------------------------------------------------------------------


def test_a_worker_comes_back_when_the_node_says() -> None:
    times: list[float] = []

    class Busy:
        @property
        def jobs(self) -> "Busy":
            return self

        async def activate(self, _request: Any) -> list[Any]:
            loop = asyncio.get_running_loop()
            times.append(loop.time())
            if len(times) < 3:
                raise ResourceExhausted("full", retry_after_ms=150)
            await asyncio.sleep(WAIT)
            return []

    app = Holdfast(Portal("test"), Busy(), lambda: None, 0)  # type: ignore[arg-type]

    @app.task
    def mail() -> None: ...

    worker = Worker(app.portal, app.api, app.tasks).start()
    wait_until(lambda: len(times) == 3)
    worker.stop()
    app.portal.close()
    assert all(later - at >= 0.15 for at, later in pairwise(times))


def test_a_worker_that_is_stopped_while_the_node_is_away_stops_without_an_error() -> None:
    asked = threading.Event()

    class Away:
        def __init__(self) -> None:
            self.jobs = self

        async def activate(self, _request: Any) -> list[Any]:
            worker._stopping.set()  # told between the question and its answer
            asked.set()
            raise Unavailable("away")

    app = Holdfast(Portal("test"), Away(), lambda: None, 0)  # type: ignore[arg-type]

    @app.task
    def mail() -> None: ...

    worker = Worker(app.portal, app.api, app.tasks).start()
    assert asked.wait(WAIT)
    worker.stop()
    app.portal.close()


# --- a node that is overloaded ----------------------------------------------------------------

CLIENTS = 60


def overload(submit: Callable[[int], Any], count: int = CLIENTS) -> list[BaseException | None]:
    """Threads that submit all at once; what went wrong for each."""
    begin = threading.Barrier(count)
    errors: list[BaseException | None] = [None] * count

    def work(number: int) -> None:
        begin.wait(WAIT)
        try:
            submit(number)
        except HoldfastError as error:
            errors[number] = error

    threads = [threading.Thread(target=work, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT)
    return errors


@pytest.mark.parametrize("patience", [10.0, 0.0])
def test_an_embedded_node_that_is_overloaded_gets_everything_once(
    tmp_path: Path, patience: float
) -> None:
    config = Config(partitions=1, commands_in_flight_max=3)
    with Holdfast.open(tmp_path, workers=0, config=config, patience=patience) as app:

        @app.task
        def mail(number: int) -> None: ...

        errors = overload(lambda number: app.submit(mail.bind(number), key=str(number)))
        refused = [each for each in errors if each is not None]
        stored = app.portal.call(app.api.tasks.page(TaskQuery(limit=1000))).items
        assert b"holdfast_refused_commands_total 0.0" not in app.portal.call(app.api.node.metrics())
        assert len(stored) == CLIENTS - len(refused)
        assert bool(refused) is (patience == 0)
        assert {type(each) for each in refused} <= {ResourceExhausted}


def test_a_node_elsewhere_that_is_overloaded_gets_everything_once() -> None:
    async def story() -> None:
        config = Config(commands_in_flight_max=3)
        node = await MemoryNode(clock=SystemClock(), config=config).start()
        server = HttpServer(node.gateway)
        await server.start()
        raw = RemoteApi(server.url)
        try:
            api = patient(raw, 20)
            receipts = await asyncio.gather(
                *(api.tasks.submit([NewTask("mail")] * 2) for _ in range(CLIENTS))
            )
            assert all(each.created for receipt in receipts for each in receipt)
            stored = (await api.tasks.page(TaskQuery(limit=1000))).items
            assert len(stored) == 2 * CLIENTS
            assert b"holdfast_refused_commands_total 0.0" not in await api.node.metrics()
        finally:
            await raw.close()
            await server.close()
            await node.close()

    asyncio.run(story())
