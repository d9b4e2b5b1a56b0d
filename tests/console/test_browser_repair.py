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
CLICKS_MAX = 9
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
    tab.wait('h1:has-text("Process instances")')
    tab.click("tbody th a")
    tab.see("could not convert string to float")  # understood
    tab.see("Traceback (most recent call last)")
    _picture(tab, "instance")
    tab.click('nav.side a:text-is("Batch operations")')
    tab.click('a:text-is("New batch operation")')
    tab.choose("select[name=do]", "RESOLVE_INCIDENT")
    tab.press("Tab")
    tab.type('{"processId": "sale"}')
    tab.press("Tab", "Tab", "Enter")  # past the plan to the button that counts
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
