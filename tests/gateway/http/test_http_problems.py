"""Every error over HTTP is problem JSON that says what was expected and what was found."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.gateway.fake_api import FakeApi, Reply, ask, served

from holdfast import errors
from holdfast.errors import ERRORS, Code, HoldfastError
from holdfast.gateway.http import HttpServer, problems
from holdfast.gateway.http.app import BODY_BYTES_MAX

JSON = {"content-type": "application/json"}


def reply_of(api: FakeApi, method: str, path: str, **options: Any) -> Reply:
    async def run() -> Reply:
        async with served(api) as server:
            return await ask(server.url, method, path, **options)

    return asyncio.run(run())


def problem_of(reply: Reply, status: int, code: Code) -> dict[str, Any]:
    """Checks what all problems have in common."""
    assert reply.status == status
    assert reply.headers["content-type"] == "application/problem+json"
    problem = reply.json()
    assert problem["status"] == status
    assert problem["code"] == code
    assert problem["type"].startswith("urn:holdfast:")
    assert problem["title"] and problem["detail"]
    return problem


STATUS_OF_KIND = {
    errors.InvalidArgument: 400,
    errors.NotFound: 404,
    errors.AlreadyExists: 409,
    errors.InvalidState: 409,
    errors.Unauthorized: 401,
    errors.Forbidden: 403,
    errors.ResourceExhausted: 503,
    errors.DeadlineExceeded: 504,
    errors.Unavailable: 503,
    errors.Moved: 503,
    errors.Unknown: 503,
    errors.DataLoss: 500,
    errors.TaskFailed: 500,
    errors.TransactionAborted: 409,
    errors.Internal: 500,
}


def test_every_error_of_the_tree_is_tried_here() -> None:
    assert set(STATUS_OF_KIND) == set(ERRORS.values())


@pytest.mark.parametrize(("kind", "status"), STATUS_OF_KIND.items())
def test_an_error_of_the_api_becomes_the_problem_of_its_code(
    kind: type[HoldfastError], status: int
) -> None:
    api = FakeApi()
    api.error = kind("Expected tea, but found coffee", key="12")
    problem = problem_of(reply_of(api, "GET", "/v2/tasks/12"), status, kind.code)
    assert problem["detail"] == "Expected tea, but found coffee"
    assert problem["instance"] == "/v2/tasks/12"
    assert problem["fields"] == {"key": "12"}


def test_an_exhausted_resource_says_when_to_come_back() -> None:
    api = FakeApi()
    api.error = errors.ResourceExhausted("full", retry_after_ms=1_200)
    reply = reply_of(api, "POST", "/v2/tasks", json={"type": "mail"})
    problem = problem_of(reply, 503, Code.RESOURCE_EXHAUSTED)
    assert problem["retryAfterMs"] == 1_200
    assert reply.headers["retry-after"] == "2"


@pytest.mark.parametrize("kind", [errors.Unavailable, errors.Moved, errors.Unknown])
def test_what_may_succeed_soon_says_when_to_come_back(kind: type[HoldfastError]) -> None:
    api = FakeApi()
    api.error = kind("The partition is elsewhere")
    assert reply_of(api, "GET", "/v2/tasks/12").headers["retry-after"] == "1"


def test_a_bug_is_logged_and_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    logged: list[dict[str, Any]] = []

    class Log:
        def error(self, event: str, **fields: Any) -> None:
            logged.append(fields)

    monkeypatch.setattr(problems, "log", Log())
    api = FakeApi()
    api.error = ZeroDivisionError("secret")
    reply = reply_of(api, "GET", "/v2/topology")
    problem_of(reply, 500, Code.INTERNAL)
    assert b"secret" not in reply.content
    assert b"Traceback" not in reply.content
    assert logged == [{"method": "GET", "path": "/v2/topology", "exc_info": api.error}]


def test_what_is_of_use_only_inside_the_node_is_not_told() -> None:
    api = FakeApi()
    api.error = errors.DataLoss("damaged", data=b"bytes", offset=7)
    problem = problem_of(reply_of(api, "GET", "/v2/topology"), 500, Code.DATA_LOSS)
    assert problem["fields"] == {"offset": 7}


@pytest.mark.parametrize(
    ("body", "found"),
    [
        (b'{"type": "mail", "colour": "red"}', "Expected no field colour: it is unknown"),
        (b'{"type": 7}', "in type"),
        (b'{"type": "mail", "retries": "many"}', "in retries"),
        (b'{"type": "mail", "backoff": {"kind": "odd"}}', "in backoff.kind"),
        (b"{}", "Expected a field type, but there is none"),
        (b'{"type": "mail"', "ends too early"),
        (b"", "ends too early"),
        (b"[1]", "Expected an object, but found a list"),
        (b'{"type": "mail", "payload": "\xff"}', "Expected UTF-8, but byte 29 is not"),
        (b'{"type": "mail", "payload": ' + b"[" * 100_000, "nested too deeply"),
    ],
)
def test_a_body_that_is_not_the_shape_is_refused_with_the_place(body: bytes, found: str) -> None:
    api = FakeApi()
    reply = reply_of(api, "POST", "/v2/tasks", data=body, headers=JSON)
    assert found in problem_of(reply, 400, Code.INVALID_ARGUMENT)["detail"]
    assert api.calls == []


def test_a_wrong_item_of_many_is_named() -> None:
    body = {"tasks": [{"type": "mail"}, {"type": "mail", "priority": "high"}]}
    reply = reply_of(FakeApi(), "POST", "/v2/tasks/batch", json=body)
    assert "tasks[1].priority" in problem_of(reply, 400, Code.INVALID_ARGUMENT)["detail"]


@pytest.mark.parametrize("media_type", ["text/plain", "application/x-www-form-urlencoded"])
def test_a_body_that_is_not_called_json_is_refused(media_type: str) -> None:
    headers = {"content-type": media_type}
    reply = reply_of(FakeApi(), "POST", "/v2/tasks", data=b'{"type": "mail"}', headers=headers)
    assert media_type in problem_of(reply, 415, Code.INVALID_ARGUMENT)["detail"]


def test_a_charset_beside_json_is_accepted() -> None:
    headers = {"content-type": "application/json; charset=utf-8"}
    reply = reply_of(FakeApi(), "POST", "/v2/tasks", data=b'{"type": "mail"}', headers=headers)
    assert reply.status == 200


@pytest.mark.parametrize("path", ["/v2/tasks/", "//v2/tasks", "/v2//tasks//"])
def test_more_slashes_than_are_needed_lead_to_the_same(path: str) -> None:
    reply = reply_of(FakeApi(), "POST", path, data=b'{"type": "mail"}', headers=JSON)
    assert reply.status == 200


@pytest.mark.parametrize("path", ["/", "/v2", "/v2/nothing", "/v2/tasks/1/nothing", "/v1/tasks"])
def test_an_unknown_path_is_not_found(path: str) -> None:
    problem = problem_of(reply_of(FakeApi(), "GET", path), 404, Code.NOT_FOUND)
    assert path in problem["detail"]


def test_a_wrong_method_says_which_are_allowed() -> None:
    reply = reply_of(FakeApi(), "GET", "/v2/schedules/nightly")
    problem_of(reply, 405, Code.INVALID_ARGUMENT)
    assert {"PUT", "DELETE"} <= set(reply.headers["allow"].split(", "))


def test_a_body_that_says_it_is_too_large_is_refused_before_it_is_read() -> None:
    async def run() -> bytes:
        async with served(FakeApi()) as server:
            host, port = server.url.removeprefix("http://").split(":")
            reader, writer = await asyncio.open_connection(host, int(port))
            length = BODY_BYTES_MAX + 1
            writer.write(
                b"POST /v2/tasks HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                b"Content-Length: %d\r\n\r\n" % length
            )
            head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 5)
            writer.close()
            return head

    head = asyncio.run(run())
    assert head.startswith(b"HTTP/1.1 413")
    assert b"application/problem+json" in head


def test_a_body_in_chunks_is_refused_when_it_grows_too_large() -> None:
    async def chunks() -> AsyncIterator[bytes]:
        for _ in range(20):
            yield b"x" * 10_000

    async def run() -> Reply:
        server = HttpServer(FakeApi(), body_bytes_max=100_000)
        await server.start()
        reply = await ask(server.url, "POST", "/v2/tasks", data=chunks(), headers=JSON)
        await server.close()
        return reply

    reply = asyncio.run(run())
    assert "100000 bytes" in problem_of(reply, 413, Code.INVALID_ARGUMENT)["detail"]


def test_a_wrong_method_on_a_plain_path_says_which_are_allowed() -> None:
    reply = reply_of(FakeApi(), "DELETE", "/v2/tasks")
    problem_of(reply, 405, Code.INVALID_ARGUMENT)
    assert reply.headers["allow"] == "POST"
