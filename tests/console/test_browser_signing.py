"""Signing in, in a real browser: let in, refused, and out again."""

from collections.abc import Callable

import pytest

from holdfast.gateway.identity.shapes import NewUser

from .browser import Tab
from .conftest import ConsoleSite

pytestmark = pytest.mark.xdist_group("browser")


def test_who_signs_in_comes_back_to_the_page_and_the_others_are_refused(
    guarded: ConsoleSite, open_tab: Callable[[ConsoleSite], Tab]
) -> None:
    tab = open_tab(guarded)
    tab.go("/console/tasks?state=WAITING")
    tab.wait('h1:text-is("Sign in")')
    assert tab.violations("light") + tab.violations("dark") == []
    tab.click("input[name=token]")
    tab.type("hf_00_wrong")
    tab.press("Enter")
    tab.wait("role=alert")
    tab.click("input[name=token]")
    tab.type(guarded.admin_token)
    tab.press("Enter")
    tab.wait('h1:has-text("Tasks")')
    assert tab.path == "/console/tasks?state=WAITING"
    assert "session" not in tab.ask("document.cookie")
    tab.click('button:text-is("Sign out")')
    tab.wait('h1:text-is("Sign in")')
    tab.go("/console")
    tab.wait('h1:text-is("Sign in")')
    assert tab.problems == []


def test_who_may_nothing_is_offered_nothing_and_refused(
    guarded: ConsoleSite, open_tab: Callable[[ConsoleSite], Tab]
) -> None:
    guarded.call(guarded.api.identity.create_user(NewUser("ann", "right")))
    tab = open_tab(guarded)
    tab.go("/console/sign-in")
    tab.click("input[name=username]")
    tab.type("ann")
    tab.press("Tab")
    tab.type("right")
    tab.press("Enter")
    tab.wait('button:text-is("Sign out")')
    assert tab.count('nav.side a[href="/console/batches"]') == 0
    assert tab.go("/console/batches") == 403
    tab.see("may not use the page")
    assert tab.violations("light") + tab.violations("dark") == []
    assert tab.problems == []
