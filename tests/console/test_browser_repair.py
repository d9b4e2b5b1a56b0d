"""The stuck orders of the demo: found, understood and repaired in the browser."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from .browser import Tab
from .conftest import ConsoleSite
from .stuck_site import StuckSite

pytestmark = pytest.mark.xdist_group("browser")

ORDERS = 30
CLICKS_MAX = 8
PICTURES = Path(__file__).parents[2] / "docs" / "pictures"


@pytest.fixture
def site(tmp_path: Path) -> Iterator[StuckSite]:
    made = StuckSite(tmp_path / "data")
    yield made
    made.close()


def _picture(tab: Tab, name: str) -> None:
    """For the documents, where they are wanted: CONSOLE_PICTURES=1."""
    if os.environ.get("CONSOLE_PICTURES") == "1":
        tab.picture(PICTURES / f"console-{name}.png")


def test_stuck_orders_are_found_understood_and_repaired_in_under_ten_clicks(
    site: StuckSite, open_tab: Callable[[ConsoleSite], Tab]
) -> None:
    site.get_stuck(ORDERS)
    tab = open_tab(site)
    tab.go("/console")
    tab.wait(f'a.figure:has-text("open incidents") .value:text-is("{ORDERS}")')
    _picture(tab, "overview")
    tab.click('a.figure:has-text("open incidents")')  # found
    tab.wait('h1:has-text("Incidents by cause")')
    assert tab.count("tbody tr") == 1  # all of them have the same
    tab.see("could not convert string to float")  # understood
    _picture(tab, "incidents")
    tab.click("tbody td a.key")
    tab.see("Traceback (most recent call last)")
    tab.click('dd a[href^="/console/instances/"]')
    tab.wait("section.stuck, article.stuck")
    _picture(tab, "instance")
    tab.click('nav.side a:text-is("Incidents")')
    tab.click(f'a:text-is("Retry all {ORDERS}")')
    tab.see(f"{ORDERS} items would be chosen")
    _picture(tab, "dry-run")
    tab.click(f'button:text-is("Start with {ORDERS} items")')
    tab.click('role=dialog >> role=button[name="Start"]')
    tab.wait('.badge:text-is("completed")')  # by itself: nothing is reloaded
    tab.see(f"{ORDERS} of {ORDERS}")
    _picture(tab, "batch")
    site.charge(ORDERS)
    tab.click('nav.side a[href="/console/instances"]')
    tab.wait('h1:has-text("Process instances")')
    assert tab.count('tbody .badge:text-is("completed")') == ORDERS
    assert tab.clicks <= CLICKS_MAX, f"{tab.clicks} clicks"
    assert tab.problems == []
