"""Every page of the console in a real browser: accessible, self-contained, without an error."""

import re
from collections.abc import Callable, Iterator

import pytest

from holdfast.console.page import ConsolePage
from holdfast.console.pages.table import PAGES

from .browser import Chromium, Tab
from .conftest import ConsoleSite
from .stuck_site import StuckSite, full_site
from .test_console_room import POLICY

pytestmark = pytest.mark.xdist_group("browser")

HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
# axe-core looks at every cell. Rows with the same elements, classes and attributes are the same to
# it, but for ids: of fifty, two are enough.
KEEP_TWO_ROWS_OF_A_KIND = """for (const body of document.querySelectorAll('tbody')) {
  const kinds = {};
  for (const row of [...body.rows]) {
    const kind = [...row.querySelectorAll('*')].map((each) => [each.tagName,
      each.getAttribute('class'), ...each.getAttributeNames()].join(' ')).join();
    kinds[kind] = (kinds[kind] || 0) + 1;
    if (kinds[kind] > 2) row.remove();
  }
}"""
SHOWN = [each for each in PAGES if each.method == "GET"]
NO_KEY = "2251799813685249"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StuckSite]:
    with full_site(tmp_path_factory.mktemp("browsed") / "data") as made:
        yield made


class Walk:
    """Goes to every kind of page that links lead to, once."""

    def __init__(self, tab: Tab, site: ConsoleSite) -> None:
        self._tab = tab
        self._site = site
        self._waiting = [each.path for each in SHOWN if "{" not in each.path]
        self._waiting += ["/console/instances?state=INCIDENT", "/console/nothing/here"]
        self._waiting.append("/console/permissions?resource=PROCESS_DEFINITION")  # with its form
        self.seen: set[ConsolePage] = set()

    def run(self) -> Iterator[str]:
        """The paths, while each is shown."""
        known = set(self._waiting)
        while self._waiting:
            path = self._waiting.pop(0)
            if self._is_whole(path):
                self._tab.go(path)
                yield path
            self.seen |= set(kinds(path))
            links = self._tab.ask(
                "[...document.querySelectorAll('[href^=\"/console\"], [sse-connect], [hx-get]')]"
                ".map(e => e.getAttribute('href') || e.getAttribute('sse-connect')"
                " || e.getAttribute('hx-get'))"
            )
            for link in links:
                if link not in known and set(kinds(link)) - self.seen - self._coming():
                    known.add(link)
                    self._waiting.append(link)

    def _coming(self) -> set[ConsolePage]:
        return {kind for path in self._waiting for kind in kinds(path)}

    def _is_whole(self, path: str) -> bool:
        """A page; not a part of one, nor a stream."""
        with self._site.browser.stream("GET", path, follow_redirects=True) as sent:
            if not sent.headers["content-type"].startswith("text/html"):
                return False
            return "<html" in "".join(sent.iter_text())


def kinds(path: str) -> list[ConsolePage]:
    return [each for each in SHOWN if each.pattern.fullmatch(path.partition("?")[0])][:1]


def test_every_page_is_accessible_and_loads_nothing_from_elsewhere(
    chromium: Chromium, site: StuckSite
) -> None:
    tab = Tab(chromium, site.server.url)
    tab.bring_axe()
    walk = Walk(tab, site)
    found: list[str] = []
    for path in walk.run():
        tab.ask("window.scrollTo(0, document.body.scrollHeight)")  # the time line reads the log
        tab.ask(KEEP_TWO_ROWS_OF_A_KIND)
        found += tab.violations("light") + tab.violations("dark")
        assert tab.text("h1"), path
    tab.close()
    assert found == []
    assert tab.problems == []
    assert len(tab.requests) > 2 * len(SHOWN)
    loaded = {kind for url in tab.requests for kind in kinds(url.removeprefix(tab.origin))}
    assert set(SHOWN) - walk.seen - loaded == set(), "pages that no link leads to"


def test_every_answer_has_the_headers_that_keep_it_safe(site: StuckSite) -> None:
    paths = {re.sub(r"{\w+}", NO_KEY, each.path) for each in SHOWN}
    icon = re.search(r"/console/static/[^\"]*icon.svg", site.get("/console").source)
    assert icon is not None
    for path in sorted({*paths, icon[0], "/console/nothing", "/console/static/none", "/"}):
        with site.browser.stream("GET", path) as sent:
            for name, value in HEADERS.items():
                assert sent.headers.get(name) == value, (path, name)
    for page in PAGES:
        if page.method == "POST":
            path = re.sub(r"{\w+}", NO_KEY, page.path)
            sent = site.browser.post(path, data={"csrf": site.get("/console").csrf})
            for name, value in HEADERS.items():
                assert sent.headers.get(name) == value, (path, name)


def test_numbers_change_while_one_looks(
    open_tab: Callable[[ConsoleSite], Tab], console: ConsoleSite
) -> None:
    tab = open_tab(console)
    tab.go("/console")
    tab.wait('a.figure:has-text("jobs waiting") .value:text-is("0")')
    for number in range(3):
        console.submit("mail", number)
    tab.wait('a.figure:has-text("jobs waiting") .value:text-is("3")')
    tab.click('a.figure:has-text("jobs waiting")')
    assert tab.count("tbody tr") == 3
    assert tab.problems == []


# --- the keyboard alone -----------------------------------------------------------------------


def test_the_keyboard_reaches_everything_in_the_order_of_the_page(tab: Tab) -> None:
    tab.go("/console/tasks")
    tab.press("Tab")
    assert tab.focused == "Skip to the content"
    assert tab.ask("document.activeElement.getBoundingClientRect().top >= 0"), "it can be seen"
    tab.press("Enter", "Tab")
    assert tab.ask("document.activeElement.closest('main') !== null"), "the navigation is skipped"
    tab.go("/console/tasks")
    wanted = tab.ask(
        "[...document.querySelectorAll('a[href], button, input:not([type=hidden]), select,"
        ' textarea, summary, [tabindex="0"]\')].filter(e => e.checkVisibility()).length'
    )
    seen: list[int] = []
    for _ in range(wanted):
        tab.press("Tab")
        found = tab.ask(
            "(e => [[...document.querySelectorAll('*')].indexOf(e),"
            " getComputedStyle(e).outlineStyle])(document.activeElement)"
        )
        assert found[1] != "none", f"the focus on {tab.focused} can be seen"
        seen.append(found[0])
    assert len(set(seen)) == wanted and seen == sorted(seen)


def test_a_key_is_found_by_the_keyboard(tab: Tab, console: ConsoleSite) -> None:
    key = console.submit("mail", {"to": "ann"})
    tab.go("/console")
    tab.press("/")
    tab.type(key)
    tab.press("Enter")
    tab.wait('h1:has-text("mail")')
    assert tab.path == f"/console/tasks/{key}"


def test_a_dialog_has_the_focus_gives_it_back_and_is_answered_by_the_keyboard(
    tab: Tab, console: ConsoleSite
) -> None:
    key = console.submit("mail", {"to": "ann"})
    tab.go(f"/console/tasks/{key}")
    tab.call(tab.page.locator('main button:text-is("Cancel")').focus())
    tab.press("Enter")
    tab.wait("role=dialog")
    assert tab.focused == "Keep it as it is"
    assert tab.violations("light") + tab.violations("dark") == []
    tab.press("Escape")
    assert tab.ask("!document.getElementById('confirm').open")
    assert tab.focused == "Cancel"
    tab.press("Enter", "Tab")
    assert tab.focused == "Cancel" and tab.ask("document.activeElement.id") == "confirm-yes"
    tab.press("Enter")
    tab.wait('h1:has-text("canceled")')
    assert tab.problems == []
