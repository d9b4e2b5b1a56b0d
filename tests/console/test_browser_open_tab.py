"""A tab that is left open: it shows what is new for hours, and grows by nothing."""

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from holdfast.console.pages import log, overview
from holdfast.console.pages.overview import OverviewHistory
from holdfast.limits import CONSOLE_HISTORY_SAMPLES

from .browser import Tab
from .conftest import ConsoleSite

pytestmark = pytest.mark.xdist_group("browser")

TICK_MS = 5  # instead of a second: an hour of ticks takes a minute
HOUR_TICKS = 3_600
SHORT_TICKS, SHORT_SAMPLES = 120, 30
WARM_TICKS = 20  # ... when the charts are full
DEADLINE_SECONDS = 1_500  # on a machine that does much else
COLLECTED_SECONDS = 60
# A part that was just replaced may not be collected yet. One that is kept with every tick is more:
# 120 ticks of 150 nodes and 15 KB.
GROWN_NODES_MAX, GROWN_LISTENERS_MAX, GROWN_BYTES_MAX = 1_000, 50, 1_000_000


class TabSize(NamedTuple):
    """What the browser keeps for a page."""

    nodes: int
    listeners: int
    heap_bytes: int


async def _measure(tab: Tab) -> TabSize:
    session = await tab.page.context.new_cdp_session(tab.page)
    await session.send("Performance.enable")
    for _ in range(2):
        await session.send("HeapProfiler.collectGarbage")
    told = (await session.send("Performance.getMetrics"))["metrics"]
    found: dict[str, Any] = {each["name"]: each["value"] for each in told}
    await session.detach()
    return TabSize(
        int(found["Nodes"]), int(found["JSEventListeners"]), int(found["JSHeapUsedSize"])
    )


def _until(tab: Tab, ticks: int, work: Callable[[], object]) -> None:
    """Works until the page has shown so many news."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while tab.ask("window.shown") < ticks:
        assert time.monotonic() < deadline, f"{tab.ask('window.shown')} of {ticks} were shown"
        work()


def _rest() -> None:
    time.sleep(0.05)


class TabGrowth(NamedTuple):
    """What a page kept, from when it was warm to so many ticks later."""

    before: TabSize
    after: TabSize

    @property
    def kept(self) -> list[str]:
        """What grew by more than the bounds."""
        limits = (GROWN_NODES_MAX, GROWN_LISTENERS_MAX, GROWN_BYTES_MAX)
        grown = zip(TabSize._fields, self.before, self.after, limits, strict=True)
        return [name for name, before, after, limit in grown if after - before > limit]


def _growth(
    tab: Tab,
    warm: int,
    ticks: int,
    work: Callable[[], object],
    collected_seconds: float = COLLECTED_SECONDS,
) -> TabGrowth:
    """Leaves the page open that is shown."""
    tab.ask("window.shown = 0")
    tab.ask("document.addEventListener('htmx:sseMessage', () => window.shown++)")
    _until(tab, warm, work)
    before = tab.call(_measure(tab))
    _until(tab, warm + ticks, work)
    # The page goes on: what came between a collection and the counting is still there. What is
    # kept for good is there each time.
    deadline = time.monotonic() + collected_seconds
    while True:
        found = TabGrowth(before, tab.call(_measure(tab)))
        if not found.kept or time.monotonic() >= deadline:
            return found


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Live pages change as often as they can."""
    monkeypatch.setattr(overview, "CONSOLE_TICK_MS", TICK_MS)
    monkeypatch.setattr(overview, "_APART_S_MIN", 0)
    monkeypatch.setattr(log, "CONSOLE_TICK_MS", TICK_MS)
    return monkeypatch


@pytest.mark.parametrize(
    ("ticks", "samples"),
    [
        (SHORT_TICKS, SHORT_SAMPLES),
        pytest.param(
            HOUR_TICKS, CONSOLE_HISTORY_SAMPLES,
            marks=[pytest.mark.soak, pytest.mark.timeout(2 * DEADLINE_SECONDS + 300)],
        ),
    ],
    ids=["two minutes", "an hour"],
)  # fmt: skip
@pytest.mark.parametrize("path", ["/console", "/console/log?follow=yes"])
def test_a_tab_that_is_left_open_grows_by_nothing(
    tab: Tab, console: ConsoleSite, path: str, ticks: int, samples: int, quick: pytest.MonkeyPatch
) -> None:
    quick.setattr(overview, "CONSOLE_HISTORY_SAMPLES", samples)
    for number in range(60):  # the page of the log is full
        console.submit("mail", number)
    work = (lambda: console.submit("mail", 1)) if "log" in path else _rest
    tab.go(path)
    found = _growth(tab, samples + WARM_TICKS, ticks, work)
    print(f"{path}, {ticks} ticks: {found}")
    assert found.kept == [], found
    assert tab.problems == []
    assert len(console.console.feeds.kept(OverviewHistory).samples) <= samples
    assert len(console.console.feeds.names) == 1


LEAK = """document.addEventListener('htmx:sseMessage', (event) => {
  window.kept = window.kept || [];
  window.kept.push(event.target.cloneNode(true), new Array(4000).fill(window.kept.length));
  window.addEventListener('resize', () => window.shown);
})"""


def test_a_page_that_keeps_something_with_each_tick_is_noticed(
    tab: Tab, quick: pytest.MonkeyPatch
) -> None:
    quick.setattr(overview, "CONSOLE_HISTORY_SAMPLES", SHORT_SAMPLES)
    tab.go("/console")
    tab.ask(LEAK)
    found = _growth(tab, WARM_TICKS, SHORT_TICKS, _rest, collected_seconds=0)
    assert found.kept == ["nodes", "listeners", "heap_bytes"], found
