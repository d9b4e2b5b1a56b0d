"""What a visitor may not do is not offered: every link and every button leads where they may go."""

import re
from collections.abc import Iterator
from html import unescape

import httpx
import pytest

from holdfast.console.page import ConsolePage
from holdfast.console.pages.table import PAGES
from holdfast.engine.identity.values import PERMISSIONS, OwnerType, Permission, ResourceType
from holdfast.gateway.identity.shapes import NewAuthorization, NewToken

from .stuck_site import StuckSite, full_site

_P, _R = Permission, ResourceType
Right = tuple[ResourceType, str, Permission]
OFFERED = re.compile(r'(?:href|hx-get|sse-connect)="(/console[^"#]*)')
FORM = re.compile(r'<form[^>]*method="post"[^>]*action="([^"]*)"|hx-post="([^"]*)"')
FOLLOWED_MAX = 2  # links of one kind from one kind of page


def _all(resource: ResourceType, *permissions: Permission) -> list[Right]:
    return [(resource, "*", each) for each in permissions]


VISITORS: dict[str, list[Right]] = {
    "nobody": [],
    **{f"reads {each}": _all(each, _P.READ) for each in _R if _P.READ in PERMISSIONS[each]},
    **{
        f"does all with {each}": _all(each, *PERMISSIONS[each])
        for each in _R
        if len(PERMISSIONS[each]) > 1
    },
    "sees instances": _all(_R.PROCESS_DEFINITION, _P.READ_PROCESS_INSTANCE),
    "sees processes": _all(_R.PROCESS_DEFINITION, _P.READ_PROCESS_DEFINITION),
    "sees orders and the process of a sale": [
        (_R.PROCESS_DEFINITION, "order", _P.READ_PROCESS_INSTANCE),
        (_R.PROCESS_DEFINITION, "sale", _P.READ_PROCESS_DEFINITION),
    ],
    "repairs sales": [
        (_R.PROCESS_DEFINITION, "sale", _P.READ_PROCESS_INSTANCE),
        (_R.PROCESS_DEFINITION, "sale", _P.UPDATE_PROCESS_INSTANCE),
        *_all(_R.BATCH, _P.READ, _P.CREATE_BATCH_OPERATION_RESOLVE_INCIDENT),
    ],
    "sees one type of tasks, and numbers": [
        (_R.TASK, "resize", _P.READ), *_all(_R.SYSTEM, _P.READ),
    ],
    "sees batch operations and tasks": [*_all(_R.BATCH, _P.READ), *_all(_R.TASK, _P.READ)],
}  # fmt: skip


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StuckSite]:
    folder = tmp_path_factory.mktemp("offered") / "data"
    with full_site(folder, authorization=True) as made:
        yield made


def _browser(site: StuckSite, name: str, rights: list[Right]) -> httpx.Client:
    """Of somebody who may do these things and nothing else."""
    token = site.call(site.api.identity.create_token(NewToken(name))).token
    for resource, id_ in {(resource, id_) for resource, id_, _ in rights}:
        granted = [each for *of, each in rights if of == [resource, id_]]
        new = NewAuthorization(OwnerType.CLIENT, name, resource, id_, granted)
        site.call(site.api.identity.create_authorization(new))
    browser = site.another_browser()
    browser.headers["authorization"] = f"Bearer {token}"
    return browser


class Crawl:
    """Follows what is offered from the overview on; notes what is refused or leads nowhere."""

    def __init__(self, browser: httpx.Client) -> None:
        self._browser = browser
        self._followed: dict[tuple[str, ...], int] = {}
        self._waiting = [("/console", "the start")]
        self._known = {"/console"}
        self.seen: set[str] = set()
        self.refused: list[str] = []

    def run(self) -> None:
        while self._waiting:
            path, source = self._waiting.pop()
            status, text = self._get(path)
            self.seen.add(path)
            if status in (401, 403, 404):
                self.refused.append(f"{source} offers {path}: {status}")
            for link in map(unescape, OFFERED.findall(text)):
                self._note(link, path)
            for form, part in FORM.findall(text):
                self._try(unescape(form or part), path)

    def _note(self, link: str, source: str) -> None:
        kind = (_kind(source), _kind(link), *sorted(re.findall(r"[?&](\w+)=", link)))
        if link in self._known or "/static/" in link or self._followed.get(kind, 0) >= FOLLOWED_MAX:
            return
        self._followed[kind] = self._followed.get(kind, 0) + 1
        self._known.add(link)
        self._waiting.append((link, source))

    def _get(self, path: str) -> tuple[int, str]:
        with self._browser.stream("GET", path, follow_redirects=True) as sent:
            is_stream = sent.headers.get("content-type", "").startswith("text/event-stream")
            return sent.status_code, "" if is_stream else sent.read().decode()

    def _try(self, action: str, source: str) -> None:
        """Without the token of a form, so that nothing is done: permissions are checked before."""
        if f"POST {action}" in self._known:
            return
        self._known.add(f"POST {action}")
        sent = self._browser.post(action, data={"sent": "nothing"})
        if "its token is missing" not in sent.text:
            self.refused.append(f"{source} offers the form {action}: {sent.status_code}")


def _kind(path: str) -> str:
    plain = path.partition("?")[0]
    found: list[ConsolePage] = [each for each in PAGES if each.pattern.fullmatch(plain)]
    return found[0].path if found else plain


@pytest.mark.parametrize("name", VISITORS)
def test_every_link_and_button_leads_where_its_visitor_may_go(site: StuckSite, name: str) -> None:
    with _browser(site, name, VISITORS[name]) as browser:
        crawl = Crawl(browser)
        crawl.run()
    assert crawl.refused == []
    assert {"/console", "/console/health"} <= crawl.seen
