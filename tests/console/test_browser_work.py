"""What people do in the console, in a real browser."""

import pytest

from holdfast.model.dsl import Process

from .browser import Tab
from .conftest import ConsoleSite

pytestmark = pytest.mark.xdist_group("browser")


def test_a_token_is_moved_by_clicking_on_the_drawing(tab: Tab, console: ConsoleSite) -> None:
    console.deploy(Process("order").task("charge").task("ship"))
    key = console.start("order", {"order": 1})
    tab.go(f"/console/instances/{key}")
    tab.click('.drawing [data-element="charge"]')
    tab.wait('.drawing [data-element="charge"].is-source')
    tab.click('.drawing [data-element="ship"]')
    tab.wait('.drawing [data-element="ship"].is-target')
    tab.click('role=button[name="Move"]')
    tab.click('role=dialog >> role=button[name="Change them"]')
    tab.wait('section:has(#tree) th:has-text("ship")')
    assert tab.count('section:has(#tree) th:has-text("charge")') == 0
    assert tab.clicks == 4 and tab.problems == []


def test_the_log_is_followed_live(tab: Tab, console: ConsoleSite) -> None:
    console.submit("mail", {"to": "ann"})
    tab.go("/console/log")
    tab.click('role=link[name="Follow"]')
    tab.see("live.")
    key = console.submit("mail", {"to": "bob"})
    tab.wait(f'tbody tr:has(td.key:has-text("{key}"))')
    tab.click(f'tbody tr:has(td.key:has-text("{key}")):has-text("CREATED") th a')
    tab.wait('h1:has-text("CREATED")')
    assert tab.problems == []
