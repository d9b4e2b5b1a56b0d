"""A real browser: Debian's Chromium, without a screen, driven by Playwright.

def test_something(tab: Tab) -> None:
    tab.go("/console")
    tab.click('role=link[name="Tasks and jobs"]')  # a selector of Playwright; clicks are counted
    assert tab.text("h1") == "Tasks and jobs"
    tab.see("No task fits")  # waits until it is there
    assert tab.problems == []  # requests to elsewhere, errors of scripts, violations of the policy

Playwright's own thread runs it: its blocking API would leave a running event loop in the thread of
the tests, in which no other test could call asyncio.run.
"""

import asyncio
import fcntl
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Coroutine
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, TypeVar

import pytest
from PIL import Image
from playwright.async_api import Browser, ConsoleMessage, Page, Request, async_playwright

T = TypeVar("T")

FLAGS = (
    "--no-sandbox", "--disable-gpu", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--no-first-run",
)  # fmt: skip
WAIT_SECONDS = 20
_INSTALL_SECONDS_MAX = 300
_RULES_OF_COLORS = ["color-contrast", "link-in-text-block"]  # nothing else differs in the dark
# What the browser itself says of an answer with an error, which a test may well ask for.
_ANSWERED = "Failed to load resource: the server responded with a status of"


def chromium() -> str:
    """The path of Chromium; the test is skipped, with the reason, where it cannot be had."""
    found = _which()
    if found is None:
        with (Path(sys.prefix) / "chromium.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # tests run in several processes
            found = _which() or _install()
    return found


def _which() -> str | None:
    return shutil.which("chromium") or shutil.which("chromium", path="/usr/bin")


def _install() -> str:
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        pytest.skip("Debian's package chromium is missing, and only root can install it")
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    install = ["apt-get", "install", "-qq", "-y", "--no-install-recommends", "chromium"]
    for command in (install, ["apt-get", "update", "-qq"], install):
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=_INSTALL_SECONDS_MAX
        )
        found = _which()
        if found is not None:
            return found
    said = done.stderr.strip().splitlines() or ["it says nothing"]
    pytest.skip(f"Debian's package chromium cannot be installed: {said[-1]}")


@cache
def _axe() -> str:
    return (files("axe_playwright_python") / "axe.min.js").read_text()


class Chromium:
    """One browser for all tests of a process, in a thread of its own."""

    def __init__(self) -> None:
        path = chromium()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="browser", daemon=True)
        self._thread.start()
        self._playwright = self.call(async_playwright().start())
        launch = self._playwright.chromium.launch(executable_path=path, args=list(FLAGS))
        self.browser: Browser = self.call(launch)

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Waits for a call of Playwright."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(3 * WAIT_SECONDS)

    def close(self) -> None:
        self.call(self.browser.close())
        self.call(self._playwright.stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class Tab:
    """A window with cookies of its own, and what went wrong in it."""

    def __init__(self, chromium: Chromium, origin: str) -> None:
        self._chromium = chromium
        self.origin = origin
        self.clicks = 0
        self.requests: list[str] = []
        self.problems: list[str] = []
        self.page = self.call(self._open())

    async def _open(self) -> Page:
        """In the browser's thread: listening is telling the browser, too."""
        size: Any = {"width": 1280, "height": 800}
        context = await self._chromium.browser.new_context(
            base_url=self.origin, viewport=size, reduced_motion="reduce"
        )
        context.set_default_timeout(WAIT_SECONDS * 1_000)
        page = await context.new_page()
        page.on("request", self._note_request)
        page.on("console", self._note_console)
        page.on("pageerror", lambda error: self.problems.append(f"script: {error}"))
        return page

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        return self._chromium.call(work)

    def _note_request(self, request: Request) -> None:
        self.requests.append(request.url)
        if not request.url.startswith(self.origin + "/") and not request.url.startswith("data:"):
            self.problems.append(f"request: {request.url}")

    def _note_console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning") and not message.text.startswith(_ANSWERED):
            self.problems.append(f"console: {message.text}")

    # --- looking ------------------------------------------------------------------------------

    def go(self, path: str) -> int:
        """Opens an address of the node; its status."""
        answer = self.call(self.page.goto(path))
        assert answer is not None, "a page of the node"
        return answer.status

    @property
    def path(self) -> str:
        return self.page.url.removeprefix(self.origin)

    def text(self, selector: str) -> str:
        """What one element says, with single spaces."""
        return " ".join(self.call(self.page.locator(selector).first.inner_text()).split())

    def see(self, text: str, within: str = "body") -> None:
        """Waits until a text can be seen."""
        found = self.page.locator(within).get_by_text(text).locator("visible=true").first
        self.call(found.wait_for())

    def wait(self, selector: str) -> None:
        """Waits until an element can be seen."""
        self.call(self.page.locator(selector).first.wait_for())

    def count(self, selector: str) -> int:
        return self.call(self.page.locator(selector).count())

    def ask(self, script: str) -> Any:
        """What a piece of JavaScript gives."""
        return self.call(self.page.evaluate(script))

    @property
    def focused(self) -> str:
        """What has the focus: the text, the name or the id of the element."""
        return self.ask(
            "(e => e.textContent.trim().split(/\\s+/).join(' ') || e.name || e.id || e.tagName)"
            "(document.activeElement)"
        )

    def bring_axe(self) -> None:
        """Every page from now on has axe-core, without its half megabyte being sent each time."""
        self.call(self.page.context.add_init_script(_axe()))

    def violations(self, scheme: Literal["light", "dark"]) -> list[str]:
        """What axe-core finds on the page as it is shown now."""
        self.call(self.page.emulate_media(color_scheme=scheme))
        if not self.ask("'axe' in window"):
            self.ask(_axe())
        rules = "" if scheme == "light" else f", runOnly: {_RULES_OF_COLORS}"
        found = self.ask(f"axe.run(document, {{resultTypes: ['violations']{rules}}})")
        return [
            f"{self.path} ({scheme}): {each['id']}: {node['html'][:160]}: {node['failureSummary']}"
            for each in found["violations"]
            for node in each["nodes"]
        ]

    # --- doing --------------------------------------------------------------------------------

    def click(self, selector: str) -> None:
        """Clicks on the first that can be seen."""
        self.clicks += 1
        self.call(self.page.locator(selector).locator("visible=true").first.click())

    def choose(self, selector: str, value: str) -> None:
        """Opens a list of choices and takes one: two clicks."""
        self.clicks += 2
        self.call(self.page.locator(selector).focus())
        self.call(self.page.locator(selector).select_option(value))

    def press(self, *keys: str) -> None:
        for key in keys:
            self.call(self.page.keyboard.press(key))

    def type(self, text: str) -> None:
        self.call(self.page.keyboard.type(text))

    def picture(self, path: Path) -> None:
        """What can be seen now, in as few bytes as colours of the console need."""
        self.call(self.page.screenshot(path=path, animations="disabled"))
        with Image.open(path) as taken:
            taken.convert("RGB").quantize(64).save(path, optimize=True)

    def close(self) -> None:
        self.call(self.page.context.close())
