"""No web page acts on a node: foreign hosts, pages and forms are refused at every endpoint."""

import asyncio
import dataclasses
import re
from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp
import msgspec
import pytest
from litestar.exceptions import HTTPException
from tests.gateway.fake_api import FakeApi, Reply, ask_in, served

from holdfast.errors import InvalidArgument
from holdfast.gateway.endpoint import Endpoint
from holdfast.gateway.http import HttpServer, app
from holdfast.gateway.http.endpoints import ENDPOINTS
from holdfast.gateway.http.origins import Origins
from holdfast.gateway.operation import Piece
from holdfast.metrics import HttpMetrics

BROWSER = {"User-Agent": "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"}
JSON = {"Content-Type": "application/json"}
KEY = "2251799813685249"

Send = Callable[[Endpoint, dict[str, str]], Awaitable[Reply]]

FOREIGN = [
    {"Host": "evil.example"},
    {"Host": "evil.example:8080"},
    {"Host": "127.0.0.1.evil.example"},
    {"Host": "localhost@evil.example"},
    {"Host": "evil.example", "Origin": "http://evil.example"},
    {"Origin": "https://evil.example"},
    {"Origin": "null"},
    {"Origin": "http://localhost:3000"},  # another program's page on this machine
    {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"},
    {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "cors"},
]
OWN = [
    {},
    {"Host": "localhost"},
    {"Host": "LOCALHOST:8080"},
    {"Host": "localhost."},
    {"Host": "[::1]:8080"},
    {"Host": "127.0.0.2"},
    {"Host": "localhost:8080", "Origin": "http://localhost:8080", "Sec-Fetch-Site": "same-origin"},
    {"Sec-Fetch-Site": "none"},
]
FORMS = ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ""]


def walk(story: Callable[[list[str], Send], Awaitable[None]]) -> None:
    """Tells a story over all endpoints, which note that they were called and do nothing else."""
    done: list[str] = []

    def noting(end: Endpoint) -> Endpoint:
        async def call(*_: Any) -> bytes | None:
            done.append(end.name)
            if end.is_ranged:
                return Piece(b"{}", 2)
            return None if end.answer is None else b"{}"

        decoder = msgspec.json.Decoder() if end.decoder else None
        return dataclasses.replace(
            end, bind=lambda _: call, decoder=decoder, waits=False, undo=None
        )

    async def run() -> None:
        async with served(FakeApi()) as server, aiohttp.ClientSession() as session:

            async def send(end: Endpoint, headers: dict[str, str]) -> Reply:
                path = re.sub(r"{\w+}", KEY, end.path)
                is_empty = end.method == "GET" or end.decoder is None or end.may_be_empty
                return await ask_in(
                    session, server.url, end.method, path, data=None if is_empty else b"{}",
                    headers=headers, skip_auto_headers=("Content-Type",),
                )  # fmt: skip

            await story(done, send)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(app, "ENDPOINTS", tuple(map(noting, ENDPOINTS)))
        asyncio.run(run())


def test_no_endpoint_serves_a_foreign_host_or_a_foreign_page() -> None:
    async def story(done: list[str], send: Send) -> None:
        for end in ENDPOINTS:
            for headers in FOREIGN:
                reply = await send(end, JSON | headers)
                assert reply.status == (421 if "Host" in headers else 403), (end.name, headers)
                assert reply.json()["code"] == "FORBIDDEN"
                assert "access-control-allow-origin" not in reply.headers
        assert done == []

    walk(story)


def test_no_endpoint_that_acts_takes_what_a_form_can_send() -> None:
    async def story(done: list[str], send: Send) -> None:
        for end in ENDPOINTS:
            for media_type in FORMS:
                headers = BROWSER | ({"Content-Type": media_type} if media_type else {})
                reply = await send(end, headers)
                if end.method == "GET":
                    assert reply.status == end.status, (end.name, media_type)
                else:
                    assert reply.status == 415, (end.name, media_type)
                    assert "a web page can send that" in reply.json()["detail"]
        assert set(done) == {each.name for each in ENDPOINTS if each.method == "GET"}

    walk(story)


def test_every_endpoint_serves_programs_that_name_the_node() -> None:
    async def story(done: list[str], send: Send) -> None:
        for end in ENDPOINTS:
            for headers in OWN:
                assert (await send(end, JSON | headers)).status == end.status, (end.name, headers)
        assert len(done) == len(ENDPOINTS) * len(OWN)

    walk(story)


@pytest.mark.parametrize(
    "proof",
    [
        {"X-Requested-With": "fetch"} | BROWSER,
        {"Authorization": "Bearer hf_x"} | BROWSER,
        {"User-Agent": "curl/8.5.0"},
        {"User-Agent": "python-httpx/0.28.1"},
        JSON | BROWSER,
    ],
)
def test_a_request_without_a_body_proves_that_no_form_sent_it(proof: dict[str, str]) -> None:
    async def story(done: list[str], send: Send) -> None:
        for end in ENDPOINTS:
            has_no_body = end.decoder is None and end.request is not bytes
            if end.method != "GET" and (has_no_body or end.may_be_empty):
                assert (await send(end, proof)).status == end.status, end.name

    walk(story)


def test_a_password_that_a_browser_adds_by_itself_is_no_proof() -> None:
    async def story(done: list[str], send: Send) -> None:
        [cancel] = [each for each in ENDPOINTS if each.name == "cancel_task"]
        reply = await send(cancel, BROWSER | {"Authorization": "Basic YTpi"})
        assert reply.status == 415
        assert done == []

    walk(story)


def test_a_followed_link_is_served_and_an_embedded_one_is_not() -> None:
    def outcome(method: str, mode: str) -> int:
        headers = [
            (b"host", b"localhost"),
            (b"sec-fetch-site", b"cross-site"),
            (b"sec-fetch-mode", mode.encode()),
        ]
        try:
            Origins("127.0.0.1").check(method, "1.1", headers)
        except HTTPException as error:
            return error.status_code
        return 200

    assert outcome("GET", "navigate") == 200
    assert outcome("POST", "navigate") == 403
    assert outcome("GET", "no-cors") == 403


# --- which hosts are the node's ---------------------------------------------------------------


def status_of(origins: Origins, *headers: tuple[str, str], version: str = "1.1") -> int:
    try:
        origins.check("GET", version, [(n.encode(), v.encode("latin-1")) for n, v in headers])
    except HTTPException as error:
        return error.status_code
    return 200


@pytest.mark.parametrize(
    "host",
    [
        "", " ", "evil.example", "localhost.evil.example", "localhost:80:80", "localhost:x", "::1",
        "[::1", "::1]", "[::2]", "[evil.example]", "10.0.0.1", "0.0.0.0", "0x7f.1", "localhost,a",
        "localhost/", "a@localhost", "localhost:", "é", "\x00", "localhost\t", "x" * 100_000,
    ],
)  # fmt: skip
def test_odd_hosts_are_not_the_node(host: str) -> None:
    assert status_of(Origins("127.0.0.1"), ("host", host)) == 421


def test_a_request_names_one_host() -> None:
    origins = Origins("127.0.0.1")
    assert status_of(origins) == 400
    assert status_of(origins, version="1.0") == 200
    two = (("host", "localhost"), ("host", "evil.example"))
    assert status_of(origins, *two) == 400
    assert status_of(origins, *reversed(two)) in (400, 421)


def test_a_node_that_listens_everywhere_is_called_by_any_address_but_not_by_any_name() -> None:
    for host in ("0.0.0.0", "::"):
        origins = Origins(host)
        for address in ("10.1.2.3:8080", "[fe80::1]", "localhost"):
            assert status_of(origins, ("host", address)) == 200
        assert status_of(origins, ("host", "evil.example")) == 421


def test_a_host_that_is_set_is_a_name_of_the_node() -> None:
    assert status_of(Origins("holdfast.internal"), ("host", "Holdfast.Internal:8080")) == 200
    listed = Origins("127.0.0.1", "db-1, holdfast.example.org.,[2001:db8::1]")
    for host in (
        "db-1",
        "DB-1:80",
        "holdfast.example.org",
        "holdfast.example.org.",
        "[2001:db8::1]",
    ):
        assert status_of(listed, ("host", host)) == 200, host
    assert status_of(listed, ("host", "evil.example")) == 421
    assert status_of(Origins("127.0.0.1", "*"), ("host", "any.example")) == 200


@pytest.mark.parametrize(
    ("hosts", "origins"),
    [
        ("http://a", ""),
        ("a:80", ""),
        ("", "a.example"),
        ("", "*"),
        ("", "https://"),
        ("", "ftp://a"),
    ],
)
def test_a_list_that_cannot_be_meant_is_refused(hosts: str, origins: str) -> None:
    with pytest.raises(InvalidArgument, match="write them as in"):
        Origins("127.0.0.1", hosts, origins)


def test_hosts_that_were_accepted_are_not_kept_without_end() -> None:
    origins = Origins("127.0.0.1")
    for port in range(1, 1_000):
        assert status_of(origins, ("host", f"localhost:{port}")) == 200
    assert len(origins._accepted) <= 64


# --- pages that are allowed -------------------------------------------------------------------


def test_an_allowed_page_may_ask_and_read_the_answer() -> None:
    async def run() -> None:
        api, metrics, page = FakeApi(), HttpMetrics(), "https://ui.example.org"
        server = HttpServer(api, allowed_origins=page, metrics=metrics)
        await server.start()
        async with aiohttp.ClientSession() as session:

            async def send(method: str, path: str, **headers: str) -> Reply:
                sent: dict[str, Any] = {"headers": BROWSER | headers}
                return await ask_in(session, server.url, method, path, **sent)

            asked = {"Access-Control-Request-Headers": "content-type"}
            leave = await send("OPTIONS", "/v2/tasks", Origin=page, **asked)
            assert leave.status == 204
            assert leave.headers["access-control-allow-origin"] == page
            assert leave.headers["access-control-allow-headers"] == "content-type"
            reply = await send("GET", "/v2/topology", Origin=page)
            assert reply.status == 200 and reply.headers["access-control-allow-origin"] == page
            other = await send("OPTIONS", "/v2/tasks", Origin="https://ui.example.org:444", **asked)
            assert other.status == 403 and "allowed_origins" in other.json()["detail"]
        await server.close()
        refused, _ = metrics.collect()
        assert [(each.labels, each.value) for each in refused.samples if each.value] == [
            ({"reason": "origin"}, 1)
        ]

    asyncio.run(run())
