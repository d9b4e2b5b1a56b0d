"""A node with a console in this process, and a browser without a screen.

def test_something(console: ConsoleSite) -> None:
    key = console.submit("add", {"a": 1, "b": 2})  # services of the node, by `console.call`
    page = console.get(f"/console/tasks/{key}")
    assert page.has("add")  # its text, with tags left out and spaces made one
    done = console.post(f"/console/tasks/{key}/cancel")  # with the token that forms carry
    assert "canceled" in done.text  # it follows to the page that the form leads to
"""

import html
import json
import re
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any, TypeVar

import httpx
import msgspec
import pytest

from holdfast.client.portal import Portal
from holdfast.config import Config
from holdfast.console import Console
from holdfast.gateway.http import HttpServer
from holdfast.gateway.processes.shapes import NewProcessInstance, Resource
from holdfast.gateway.tasks.shapes import NewTask
from holdfast.model.bpmn import write_bpmn
from holdfast.model.dsl import Process
from holdfast.node import LocalNode

from .browser import Chromium, Tab

T = TypeVar("T")


class SeenPage:
    """A page as somebody sees it."""

    def __init__(self, response: httpx.Response) -> None:
        self.response = response
        self.status = response.status_code
        self.source = response.text

    @property
    def text(self) -> str:
        """Without tags, with single spaces."""
        body = re.sub(r"<(script|style|title)\b.*?</\1>", " ", self.source, flags=re.DOTALL)
        return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", body)).split())

    def has(self, text: str) -> bool:
        return text in self.text

    @property
    def links(self) -> list[str]:
        return [html.unescape(each) for each in re.findall(r'href="([^"]*)"', self.source)]

    @property
    def actions(self) -> list[str]:
        """Where the forms of the page lead that change something."""
        found = re.findall(r'<form[^>]*method="post"[^>]*action="([^"]*)"', self.source)
        return [html.unescape(each) for each in found]

    @property
    def csrf(self) -> str:
        found = re.search(r'"X-CSRF-Token": "([^"]+)"', self.source)
        assert found is not None, "the page has no token"
        return found[1]


class ConsoleSite:
    """The node, its services, and a browser's session."""

    def __init__(self, folder: Path, config: Config, kind: type[LocalNode] = LocalNode) -> None:
        self.portal = Portal("console")
        self.node = self.portal.call(kind.open(folder, config))
        self.console = Console(self.node.gateway)
        self.server = HttpServer(self.node.gateway, console=self.console)
        self.portal.call(self.server.start())
        self.api = self.node.gateway
        self.browser = httpx.Client(base_url=self.server.url, timeout=30)
        self.admin_token = ""
        if config.authorization:
            kept: list[str] = []
            self.portal.call(self.node.gateway.let_first_in(kept.append))
            self.admin_token = kept[0]

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Waits for a call of a service."""
        return self.portal.call(work)

    # --- looking ------------------------------------------------------------------------------

    def get(self, path: str, **headers: str) -> SeenPage:
        return SeenPage(self.browser.get(path, headers=headers, follow_redirects=True))

    def post(self, path: str, **fields: str) -> SeenPage:
        """Sends a form as the pages do, and goes where it leads."""
        token = self.get("/console").csrf
        sent = self.browser.post(path, data={"csrf": token, **fields}, follow_redirects=True)
        return SeenPage(sent)

    def page_of(self, browser: httpx.Client, path: str) -> SeenPage:
        """What another browser sees."""
        return SeenPage(browser.get(path, follow_redirects=True))

    def another_browser(self) -> httpx.Client:
        return httpx.Client(base_url=self.server.url, timeout=30)

    def sign_in(self, browser: httpx.Client | None = None, **fields: str) -> SeenPage:
        """Signs a browser in, with the administrator's token where nothing else is given."""
        browser = browser or self.browser
        token = self.page_of(browser, "/console/sign-in").csrf
        sent = {"csrf": token, **(fields or {"token": self.admin_token})}
        return SeenPage(browser.post("/console/sign-in", data=sent, follow_redirects=True))

    # --- work ---------------------------------------------------------------------------------

    def submit(self, type_: str, payload: Any = None, **options: Any) -> str:
        new = NewTask(type_, msgspec.Raw(json.dumps(payload).encode()), **options)
        [receipt] = self.call(self.api.tasks.submit([new]))
        return receipt.task_key

    def deploy(self, process: Process) -> str:
        """The key of the version."""
        source = write_bpmn(process.definition()).decode()
        [found] = self.call(self.api.processes.deploy([Resource("p.bpmn", source)]))
        return found.process_definition_key

    def start(self, process_id: str, variables: Any = None) -> str:
        raw = msgspec.Raw(json.dumps(variables or {}).encode())
        [receipt] = self.call(self.api.instances.start([NewProcessInstance(process_id, 0, raw)]))
        return receipt.process_instance_key

    def close(self) -> None:
        self.browser.close()
        self.portal.call(self.server.close())
        self.portal.call(self.node.close())
        self.portal.close()


@pytest.fixture
def console(tmp_path: Path) -> Iterator[ConsoleSite]:
    site = ConsoleSite(tmp_path / "data", Config(partitions=2, log_level="critical"))
    yield site
    site.close()


@pytest.fixture(scope="session")
def chromium() -> Iterator[Chromium]:
    """The browser of all tests of the group `browser`."""
    made = Chromium()
    yield made
    made.close()


@pytest.fixture
def open_tab(chromium: Chromium) -> Iterator[Callable[[ConsoleSite], Tab]]:
    """Opens windows on a node; they are closed at the end of the test."""
    tabs: list[Tab] = []

    def open_one(site: ConsoleSite) -> Tab:
        tabs.append(Tab(chromium, site.server.url))
        return tabs[-1]

    yield open_one
    for each in tabs:
        each.close()


@pytest.fixture
def tab(open_tab: Callable[[ConsoleSite], Tab], console: ConsoleSite) -> Tab:
    """A window on the node."""
    return open_tab(console)


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[ConsoleSite]:
    """A node that wants to know who asks."""
    config = Config(
        partitions=2, log_level="critical", authorization=True, basic_authentication=True
    )
    site = ConsoleSite(tmp_path / "data", config)
    yield site
    site.close()
