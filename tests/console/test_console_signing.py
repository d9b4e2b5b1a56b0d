"""Signing in by token and password, and what a session is worth."""

import re

import httpx
import pytest

from holdfast.engine.identity.values import OwnerType, Permission, ResourceType
from holdfast.gateway.http import HttpServer
from holdfast.gateway.identity.shapes import (
    Member,
    NewAuthorization,
    NewToken,
    NewUser,
    UserChange,
)
from holdfast.limits import GUESSES_OF_USER_FREE, SESSIONS_PER_OWNER_MAX

from .conftest import ConsoleSite
from .test_console_room import POLICY

SESSION = "holdfast-session"
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


def _user(site: ConsoleSite, name: str, password: str, role: str | None = "admin") -> None:
    site.call(site.api.identity.create_user(NewUser(name, password)))
    if role is not None:
        member = Member(OwnerType.USER, name)
        site.call(site.api.identity.add_member(OwnerType.ROLE, role, member))


def _is_in(site: ConsoleSite, browser: httpx.Client | None = None) -> bool:
    sent = (browser or site.browser).get("/console")
    return sent.status_code == 200 and "Sign out" in sent.text


def test_who_is_not_known_is_asked_to_sign_in_and_comes_back(guarded: ConsoleSite) -> None:
    sent = guarded.browser.get("/console/live-not?state=OPEN&x=1")
    assert sent.status_code == 404  # no such page: nothing to sign in for
    sent = guarded.browser.get("/console?a=1&b=%22")
    assert sent.status_code == 303
    assert sent.headers["location"] == "/console/sign-in?next=%2Fconsole%3Fa%3D1%26b%3D%2522"
    page = guarded.get("/console?a=1")
    assert page.has("Sign in") and not page.has("Find by key") and 'class="side"' in page.source
    assert [each for each in page.links if each.startswith("/console/")][5:] == []
    there = guarded.sign_in(token=guarded.admin_token, next="/console?a=1")
    assert there.status == 200 and str(there.response.url).endswith("/console?a=1")
    assert there.has("admin") and there.has("Sign out")


def test_a_session_is_a_cookie_that_no_script_reads(guarded: ConsoleSite) -> None:
    token = guarded.get("/console/sign-in").csrf
    fields = {"csrf": token, "token": guarded.admin_token}
    sent = guarded.browser.post("/console/sign-in", data=fields)
    [told] = [each for each in sent.headers.get_list("set-cookie") if each.startswith(SESSION)]
    assert re.fullmatch(
        SESSION + r"=hf_\w+_[\w-]+; Path=/console; HttpOnly; SameSite=Lax; Max-Age=(\d+)", told
    )
    assert 28_700 < int(told.rpartition("=")[2]) <= 28_800
    assert guarded.admin_token not in told


def test_beyond_loopback_the_cookie_is_for_https_alone(guarded: ConsoleSite) -> None:
    """The name of a proxy: the node sees HTTP, the browser HTTPS."""
    host = {"host": "localhost"}
    assert guarded.browser.get("/console/sign-in", headers=host).status_code == 200
    proxied = HttpServer(
        guarded.node.gateway, allowed_hosts="holdfast.example.org", console=guarded.console
    )
    guarded.call(proxied.start())
    host = {"host": "holdfast.example.org"}
    with httpx.Client(base_url=proxied.url, headers=host) as browser:
        first = browser.get("/console/sign-in")
        found = re.search(r'"X-CSRF-Token": "([^"]+)"', first.text)
        assert found is not None
        cookie = first.headers["set-cookie"].partition(";")[0]
        fields = {"csrf": found[1], "token": guarded.admin_token}
        plain = {"cookie": cookie, "origin": "http://holdfast.example.org"}
        refused = browser.post("/console/sign-in", data=fields, headers=plain)
        assert refused.status_code == 403 and "https://" in refused.text
        safe = {"cookie": cookie, "origin": "https://holdfast.example.org"}
        sent = browser.post("/console/sign-in", data=fields, headers=safe)
        [told] = [each for each in sent.headers.get_list("set-cookie") if SESSION in each]
        assert told.startswith(f"__Host-{SESSION}=hf_") and told.endswith("; Secure")
        assert "; Path=/;" in told and "HttpOnly" in told and "SameSite=Lax" in told
        pair = told.partition(";")[0]
        assert browser.get("/console", headers={"cookie": pair}).status_code == 200
        unsafe = pair.removeprefix("__Host-")  # any page of the host could have set that
        assert browser.get("/console", headers={"cookie": unsafe}).status_code == 303
    guarded.call(proxied.close())


def test_a_wrong_token_or_password_says_so_and_lets_nobody_in(guarded: ConsoleSite) -> None:
    _user(guarded, "ann", "right")
    for fields in (
        {"token": "hf_00_x"},
        {"token": "a.b.c"},
        {"token": ""},
        {"username": "ann", "password": "wrong"},
        {"username": "nobody", "password": "right"},
        {"username": "ann:x", "password": "right"},
    ):
        page = guarded.sign_in(**fields)
        assert page.status in (400, 401) and 'role="alert"' in page.source
        assert "www-authenticate" not in page.response.headers
        assert not _is_in(guarded)
    assert 'value="ann"' in guarded.sign_in(username="ann", password="wrong").source
    assert guarded.sign_in(username="ann", password="right").has("ann")
    assert _is_in(guarded)


def test_wrong_passwords_are_slowed_down_as_they_are_by_the_api(guarded: ConsoleSite) -> None:
    _user(guarded, "ann", "right")
    for _ in range(GUESSES_OF_USER_FREE + 1):
        assert guarded.sign_in(username="ann", password="wrong").status == 401
    page = guarded.sign_in(username="ann", password="right")
    assert page.status == 429 and int(page.response.headers["retry-after"]) >= 1
    assert page.has("wait") and not _is_in(guarded)


def test_signing_out_ends_the_session_for_whoever_has_the_cookie(guarded: ConsoleSite) -> None:
    guarded.sign_in()
    with guarded.another_browser() as thief:
        thief.cookies.update(dict(guarded.browser.cookies))
        assert _is_in(guarded, thief)
        page = guarded.post("/console/sign-out")
        assert page.has("You are signed out.") and SESSION not in guarded.browser.cookies
        assert not _is_in(guarded, thief)


def test_a_deleted_user_a_new_password_and_a_deleted_token_end_sessions_at_once(
    guarded: ConsoleSite,
) -> None:
    identity = guarded.api.identity
    _user(guarded, "ann", "one")
    _user(guarded, "bob", "two")
    robot = guarded.call(identity.create_token(NewToken("robot")))
    browsers = [guarded.another_browser() for _ in range(3)]
    guarded.sign_in(browsers[0], username="ann", password="one")
    guarded.sign_in(browsers[1], username="bob", password="two")
    guarded.sign_in(browsers[2], token=robot.token)
    assert all(_is_in(guarded, each) for each in browsers)
    guarded.call(identity.update_user("ann", UserChange(password="three")))
    guarded.call(identity.delete_user("bob"))
    guarded.call(identity.delete_token(robot.token_id))
    assert not any(_is_in(guarded, each) for each in browsers)
    page = guarded.page_of(browsers[0], "/console")
    assert page.has("sign in again")
    for each in browsers:
        each.close()


def test_what_is_permitted_is_asked_with_every_request(guarded: ConsoleSite) -> None:
    _user(guarded, "ann", "one", role=None)
    guarded.sign_in(username="ann", password="one")
    assert guarded.get("/console").has("You may not see the numbers of the node")
    assert guarded.get("/console/live").status == 403
    new = NewAuthorization(OwnerType.USER, "ann", ResourceType.SYSTEM, "*", [Permission.READ])
    receipt = guarded.call(guarded.api.identity.create_authorization(new))
    assert guarded.get("/console").has("open incidents")
    guarded.call(guarded.api.identity.delete_authorization(receipt.authorization_key))
    assert guarded.get("/console").has("You may not see the numbers of the node")


def test_a_stream_ends_when_its_visitor_is_signed_out(guarded: ConsoleSite) -> None:
    guarded.sign_in()
    with guarded.browser.stream("GET", "/console/live") as stream:
        lines = stream.iter_lines()
        assert next(lines) == "event: numbers"
        with guarded.another_browser() as other:
            other.cookies.update(dict(guarded.browser.cookies))
            token = guarded.page_of(other, "/console").csrf
            other.post("/console/sign-out", data={"csrf": token})
        assert len(list(lines)) < 1_000  # it ends


def test_nobody_is_signed_in_by_a_form_of_another_page(guarded: ConsoleSite) -> None:
    """Login CSRF: the form to sign in carries a token, too."""
    good = guarded.get("/console/sign-in").csrf
    for fields in ({}, {"csrf": "x"}, {"csrf": good[:-4] + "AAAA"}):
        sent = guarded.browser.post(
            "/console/sign-in", data={**fields, "token": guarded.admin_token}
        )
        assert sent.status_code == 403 and SESSION not in sent.cookies
    with guarded.another_browser() as other:  # whose cookie goes with another token
        sent = other.post("/console/sign-in", data={"csrf": good, "token": guarded.admin_token})
        assert sent.status_code == 403 and SESSION not in sent.cookies
    crossing = {"origin": "http://evil.example"}
    fields = {"csrf": good, "token": guarded.admin_token}
    assert (
        guarded.browser.post("/console/sign-in", data=fields, headers=crossing).status_code == 403
    )


def test_signing_in_makes_everything_new(guarded: ConsoleSite) -> None:
    """Session fixation: what was in the browser before is of no use after."""
    guarded.sign_in()
    first = dict(guarded.browser.cookies)
    token = guarded.get("/console").csrf
    with guarded.another_browser() as other:
        other.cookies.update(first)
        sent = other.post("/console/sign-out", data={"csrf": "x"})
        assert sent.status_code == 403
        form = guarded.browser.get("/console/sign-in")
        assert form.status_code == 303  # signed in already
        guarded.browser.post("/console/sign-in", data={"csrf": token, "token": guarded.admin_token})
        # a form for one who is signed in is none for signing in
        assert dict(guarded.browser.cookies) == first
    guarded.post("/console/sign-out")
    before = guarded.browser.cookies["holdfast-csrf"]
    guarded.sign_in()
    assert guarded.browser.cookies["holdfast-csrf"] != before
    second = dict(guarded.browser.cookies)
    assert first[SESSION] != second[SESSION] and first["holdfast-csrf"] != second["holdfast-csrf"]
    with guarded.another_browser() as other:
        other.cookies.update(first)
        assert not _is_in(guarded, other)
    page = guarded.browser.post("/console/sign-out", data={"csrf": token})
    assert page.status_code == 403 and _is_in(guarded)  # its token is of the session before


@pytest.mark.parametrize(
    "there",
    [
        "https://evil.example/",
        "//evil.example",
        "/\\evil.example",
        "/console\\..\\..\\evil",
        "/consoles",
        "/console\r\nset-cookie: x=1",
        "javascript:alert(1)",
        "/v2/tasks",
        "/console/sign-out",
        "/console/" + "x" * 5_000,
    ],
)
def test_signing_in_leads_to_no_other_place(guarded: ConsoleSite, there: str) -> None:
    token = guarded.get("/console/sign-in").csrf
    fields = {"csrf": token, "token": guarded.admin_token, "next": there}
    sent = guarded.browser.post("/console/sign-in", data=fields)
    assert (sent.status_code, sent.headers["location"]) == (303, "/console")
    again = guarded.browser.get("/console/sign-in", params={"next": there})
    assert (again.status_code, again.headers["location"]) == (303, "/console")


def test_every_answer_has_the_headers_that_keep_it_safe(guarded: ConsoleSite) -> None:
    def check(sent: httpx.Response, status: int) -> None:
        assert sent.status_code == status
        assert {name: sent.headers.get(name) for name in HEADERS} == HEADERS

    browser = guarded.browser
    check(browser.get("/"), 303)
    check(browser.get("/console"), 303)
    check(browser.get("/console/sign-in"), 200)
    check(browser.get("/console/nothing"), 404)
    check(browser.post("/console/sign-in", data={"token": "x"}), 403)
    check(browser.post("/console/sign-in", json={}), 400)
    check(browser.get("/console/live", headers={"accept": "text/event-stream"}), 401)
    check(browser.get("/console", headers={"hx-request": "true"}), 401)
    guarded.sign_in()
    check(browser.get("/console"), 200)
    for refused in (
        browser.get("/console", headers={"host": "evil.example"}),
        browser.post("/console/sign-out", headers={"origin": "http://evil.example"}),
    ):
        assert refused.status_code in (421, 403)
        policy = refused.headers["content-security-policy"]
        assert policy == "default-src 'none'; frame-ancestors 'none'"
        assert refused.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    "headers",
    [
        {"host": "evil.example"},
        {"host": "evil.example:8080"},
        {"origin": "http://evil.example"},
        {"origin": "http://127.0.0.1:1"},  # a page at another port of this machine
        {"origin": "null"},
        {"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors"},
        {"sec-fetch-site": "same-site", "sec-fetch-mode": "cors"},
    ],
)
def test_no_other_page_of_the_browser_can_talk_to_the_node(
    guarded: ConsoleSite, headers: dict[str, str]
) -> None:
    guarded.sign_in()
    token = guarded.get("/console").csrf
    for sent in (
        guarded.browser.get("/console", headers=headers),
        guarded.browser.get("/console/live", headers=headers),
        guarded.browser.post("/console/sign-out", data={"csrf": token}, headers=headers),
    ):
        assert sent.status_code in (403, 421)
        assert "access-control-allow-origin" not in sent.headers
    assert _is_in(guarded)


def test_a_link_from_elsewhere_may_be_followed(guarded: ConsoleSite) -> None:
    guarded.sign_in()
    followed = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}
    assert guarded.browser.get("/console", headers=followed).status_code == 200


def test_a_session_is_no_token_of_the_api_and_a_token_no_session(guarded: ConsoleSite) -> None:
    guarded.sign_in()
    session = guarded.browser.cookies[SESSION]
    for headers in ({"authorization": f"Bearer {session}"}, {"cookie": f"{SESSION}={session}"}):
        sent = httpx.get(f"{guarded.server.url}/v2/authentication/me", headers=headers)
        assert sent.status_code == 401
    with guarded.another_browser() as other:
        other.cookies.set(SESSION, guarded.admin_token)
        assert not _is_in(guarded, other)
        other.cookies.set(SESSION, session[:-2] + "AA")
        assert not _is_in(guarded, other)


def test_sessions_are_listed_apart_from_tokens_and_can_be_ended(guarded: ConsoleSite) -> None:
    guarded.sign_in()
    identity = guarded.api.identity
    assert [each.client_id for each in guarded.call(identity.tokens()).items] == ["admin"]
    [session] = guarded.call(identity.sessions()).items
    assert (session.owner_type, session.owner_id) == (OwnerType.CLIENT, "admin")
    guarded.call(identity.delete_token(session.session_id))
    assert not _is_in(guarded)


def test_one_who_signs_in_again_and_again_leaves_no_more_than_some_sessions(
    guarded: ConsoleSite,
) -> None:
    first = guarded.another_browser()
    guarded.sign_in(first)
    for _ in range(SESSIONS_PER_OWNER_MAX):
        with guarded.another_browser() as each:
            guarded.sign_in(each)
    found = guarded.call(guarded.api.identity.sessions()).items
    assert len(found) == SESSIONS_PER_OWNER_MAX
    assert not _is_in(guarded, first)
    first.close()


def test_programs_say_who_they_are_as_they_do_to_the_api(guarded: ConsoleSite) -> None:
    headers = {"authorization": f"Bearer {guarded.admin_token}"}
    assert httpx.get(f"{guarded.server.url}/console", headers=headers).status_code == 200
    wrong = httpx.get(f"{guarded.server.url}/console", headers={"authorization": "Bearer hf_x"})
    assert wrong.status_code == 401


def test_without_authorization_there_is_nothing_to_sign_in_to(console: ConsoleSite) -> None:
    assert console.get("/console/sign-in").status == 404
    assert not console.get("/console").has("Sign out")
