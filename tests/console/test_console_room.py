"""What every page of the console has: headers, files, proof of forms, permissions, problems."""

import gzip
import re

import httpx
import pytest

from holdfast.console.pages.table import PAGES
from holdfast.gateway.http import HttpServer

from .conftest import ConsoleSite

POLICY = (
    "default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self' data:;"
    " object-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'"
)
INLINE = re.compile(r"<style|\sstyle=|\son[a-z]+=|<script(?![^>]*\ssrc=)")
FIRST_PAGE_BYTES_MAX = 100_000


def test_the_address_of_the_node_leads_to_the_console(console: ConsoleSite) -> None:
    sent = console.browser.get("/")
    assert (sent.status_code, sent.headers["location"]) == (303, "/console")
    assert console.get("/").has("Overview")


def test_a_page_loads_nothing_from_elsewhere_and_has_nothing_inline(
    console: ConsoleSite,
) -> None:
    page = console.get("/console")
    headers = page.response.headers
    assert headers["content-security-policy"] == POLICY
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "same-origin"
    assert headers["cache-control"] == "no-store"
    assert not INLINE.search(page.source)
    outside = re.findall(r'(?:src|href|action)="(?!/|#)([^"]*)"', page.source)
    assert outside == []
    assert '"includeIndicatorStyles":false' in page.source and '"allowEval":false' in page.source


def test_files_are_kept_for_ever_by_their_content_and_come_compressed(console: ConsoleSite) -> None:
    page = console.get("/console")
    paths = re.findall(r'(?:src|href)="(/console/static/[^"]*)"', page.source)
    assert len(set(paths)) == 5
    for path in paths:
        with console.browser.stream("GET", path, headers={"accept-encoding": "gzip"}) as sent:
            packed = b"".join(sent.iter_raw())
        assert sent.headers["cache-control"] == "public, max-age=31536000, immutable"
        assert sent.headers["content-encoding"] == "gzip"
        plain = console.browser.get(path, headers={"accept-encoding": "identity"})
        assert plain.content == gzip.decompress(packed)
    assert console.get(paths[0].replace("/static/", "/static/0")).status == 404


def test_the_first_page_is_small(console: ConsoleSite) -> None:
    page = console.get("/console")
    paths = {"/console", *re.findall(r'(?:src|href)="(/console/static/[^"]*)"', page.source)}
    total = 0
    for path in paths:
        with console.browser.stream("GET", path, headers={"accept-encoding": "gzip"}) as sent:
            total += sum(len(each) for each in sent.iter_raw())
    assert 10_000 < total < FIRST_PAGE_BYTES_MAX


def test_a_form_without_the_token_of_its_visitor_is_refused(console: ConsoleSite) -> None:
    token = console.get("/console").csrf
    other = httpx.Client(base_url=console.server.url)
    for browser, fields in (
        (console.browser, {"csrf": ""}),
        (console.browser, {"csrf": "x"}),
        (console.browser, {"csrf": "A" * len(token)}),
        (other, {"csrf": token}),  # without the cookie that goes with it
    ):
        for page in [each for each in PAGES if each.method == "POST"]:
            path = re.sub(r"{\w+}", "2251799813685249", page.path)
            sent = browser.post(path, data=fields)
            assert sent.status_code == 403, path
            assert "its token is missing or out of date" in sent.text
    other.close()


def test_a_page_of_another_site_can_send_nothing(console: ConsoleSite) -> None:
    token = console.get("/console").csrf
    for headers in ({"origin": "http://evil.example"}, {"sec-fetch-site": "cross-site"}):
        sent = console.browser.post("/console/find", data={"csrf": token}, headers=headers)
        assert sent.status_code == 403 and "add its origin to allowed_origins" in sent.text
    sent = console.browser.get("/console", headers={"host": "evil.example"})
    assert sent.status_code == 421


def test_tokens_differ_in_every_page_and_all_count(console: ConsoleSite) -> None:
    assert console.get("/console").csrf != console.get("/console").csrf


def test_the_cookie_of_forms_is_for_no_script(console: ConsoleSite) -> None:
    told = httpx.get(f"{console.server.url}/console").headers["set-cookie"]
    assert "HttpOnly" in told and "SameSite=Lax" in told and "Path=/console" in told


def test_what_is_not_there_is_a_page_that_says_so(console: ConsoleSite) -> None:
    page = console.get("/console/nothing/here")
    assert page.status == 404 and page.has("There is no page /console/nothing/here")
    assert page.has("Overview")  # the navigation is there


def test_texts_of_others_are_no_markup(console: ConsoleSite) -> None:
    page = console.get("/console/%3Cscript%3Ealert(1)%3C/script%3E")
    assert "<script>alert" not in page.source


def test_live_numbers_come_by_themselves_and_stop_when_nobody_looks(console: ConsoleSite) -> None:
    with console.browser.stream("GET", "/console/live") as stream:
        lines = stream.iter_lines()
        assert next(lines) == "event: numbers"
        assert next(each for each in lines if "open incidents" in each)
        [name] = console.console.feeds.names
        feed = console.console.feeds.known(name)
        assert feed is not None and feed.is_working and feed.listeners == 1
    for _ in range(200):
        if not feed.is_working:
            break
        console.get("/console/static/none")
    assert not feed.is_working and feed.listeners == 0


def test_a_server_that_closes_ends_the_streams(console: ConsoleSite) -> None:
    with console.browser.stream("GET", "/console/live") as stream:
        lines = stream.iter_lines()
        assert next(lines) == "event: numbers"
        console.call(console.server.close())
        assert list(lines)[-1] == ""


@pytest.mark.parametrize("path", ["/", "/console", "/console/live"])
def test_a_node_without_a_console_has_no_pages(console: ConsoleSite, path: str) -> None:
    bare = HttpServer(console.node.gateway)
    console.call(bare.start())
    sent = httpx.get(bare.url + path)
    console.call(bare.close())
    assert sent.status_code == 404 and sent.headers["content-type"] == "application/problem+json"
