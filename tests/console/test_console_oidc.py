"""Signing in at an identity provider: the authorization code flow with PKCE, over real HTTP."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from holdfast.config import Config
from holdfast.console.signing.provider import IdentityProvider
from holdfast.engine.identity.values import OwnerType
from holdfast.errors import InvalidArgument
from holdfast.gateway.identity.sessions import OidcSettings
from holdfast.gateway.identity.shapes import Member

from .conftest import ConsoleSite, SeenPage
from .oidc_provider import CLIENT, OTHER_KEY, SECRET, OidcProvider

SESSION, FLOW = "holdfast-session", "holdfast-oidc"


@pytest.fixture
def provider() -> Iterator[OidcProvider]:
    made = OidcProvider()
    yield made
    made.close()


@pytest.fixture
def site(tmp_path: Path, provider: OidcProvider) -> Iterator[ConsoleSite]:
    secret = tmp_path / "secret"
    secret.write_text(SECRET + "\n")
    config = Config(
        partitions=2, log_level="critical", authorization=True, oidc_issuer=provider.issuer,
        oidc_client_id=CLIENT, oidc_client_secret_file=str(secret),
        jwt_user_claim="preferred_username",
    )  # fmt: skip
    made = ConsoleSite(tmp_path / "data", config)
    role = Member(OwnerType.GROUP, "on-call")
    made.call(made.api.identity.add_member(OwnerType.ROLE, "reader", role))
    yield made
    made.close()


def _leave(site: ConsoleSite, back: str = "/console") -> str:
    """Where the provider sends the browser back to."""
    sent = site.browser.get("/console/sign-in/provider", params={"next": back})
    assert sent.status_code == 303
    return httpx.get(sent.headers["location"]).headers["location"]


def _come_back(site: ConsoleSite, url: str) -> httpx.Response:
    headers = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}
    return site.browser.get(url, headers=headers)


def test_a_person_whom_the_provider_names_is_let_in_with_their_groups(
    site: ConsoleSite, provider: OidcProvider
) -> None:
    page = site.get("/console?a=1")
    assert page.has("Sign in with your organisation") and not page.has("With a password")
    [leave] = [each for each in page.links if "provider" in each]
    sent = site.browser.get(leave)
    there = sent.headers["location"]
    asked = {name: value for name, [value] in parse_qs(urlsplit(there).query).items()}
    assert there.startswith(f"{provider.issuer}/authorize?")
    assert asked["redirect_uri"] == f"{site.server.url}/console/sign-in/callback"
    assert (asked["client_id"], asked["scope"]) == (CLIENT, "openid profile")
    told = sent.headers["set-cookie"]
    assert "HttpOnly" in told and "SameSite=Lax" in told and "Max-Age=600" in told
    assert asked["code_challenge"] not in told  # the browser has the verifier, not this
    back = httpx.get(there).headers["location"]
    done = _come_back(site, back)
    assert (done.status_code, done.headers["location"]) == (303, "/console?a=1")
    assert FLOW not in site.browser.cookies and SESSION in site.browser.cookies
    page = site.get("/console")
    assert page.has("ann") and page.has("open incidents")
    [session] = site.call(site.api.identity.sessions()).items
    assert (session.owner_type, session.owner_id) == (OwnerType.USER, "ann")
    role = Member(OwnerType.GROUP, "on-call")
    site.call(site.api.identity.remove_member(OwnerType.ROLE, "reader", role))
    assert site.get("/console").has("You may not see the numbers of the node")


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"iss": "http://127.0.0.1:1/other"}, "issuer"),
        ({"aud": "another-client"}, "Audience"),
        ({"nonce": "of another visit"}, "it is for another"),
        ({"nonce": 7}, "it is for another"),
        ({"exp": 1_000_000_000}, "expired"),
        ({"azp": "another-client"}, "another client"),
        ({"preferred_username": ""}, "trusted"),
        ({"preferred_username": "a\nb"}, "trusted"),
    ],
)
def test_an_id_token_for_somebody_or_something_else_lets_nobody_in(
    site: ConsoleSite, provider: OidcProvider, changed: dict[str, Any], why: str
) -> None:
    provider.changed = changed
    page = SeenPage(_come_back(site, _leave(site)))
    assert page.status == 401 and why.lower() in page.text.lower()
    assert SESSION not in site.browser.cookies and FLOW not in site.browser.cookies


def test_a_signature_of_another_key_lets_nobody_in(
    site: ConsoleSite, provider: OidcProvider
) -> None:
    provider.key = OTHER_KEY
    page = SeenPage(_come_back(site, _leave(site)))
    assert page.status == 401 and page.has("Signature verification failed")
    assert SESSION not in site.browser.cookies


def test_an_answer_counts_once_and_in_the_browser_that_left(site: ConsoleSite) -> None:
    """Login CSRF: a code of somebody else is of no use in a browser that did not ask for it."""
    back = _leave(site)
    with site.another_browser() as other:
        sent = other.get(back)
        assert sent.status_code == 401 and "of this browser" in sent.text
        assert SESSION not in other.cookies
        other.get("/console/sign-in/provider")  # it left, too, but for another answer
        assert other.get(back).status_code == 401 and SESSION not in other.cookies
    kept = site.browser.cookies[FLOW]
    assert _come_back(site, back).status_code == 303
    site.browser.cookies.clear()
    site.browser.cookies.set(FLOW, kept, domain="127.0.0.1", path="/console")
    again = _come_back(site, back)  # the same code a second time
    assert again.status_code == 401 and "invalid_grant" in again.text


def test_what_the_provider_refuses_is_told(site: ConsoleSite, provider: OidcProvider) -> None:
    provider.refuses = True
    page = SeenPage(_come_back(site, _leave(site)))
    assert page.status == 401 and page.has("You are not let in")
    provider.refuses = False
    back = _leave(site)
    wrong = back.replace("realms%2Fshop", "realms%2Fother")
    assert wrong != back
    page = SeenPage(_come_back(site, wrong))
    assert page.status == 401 and page.has("Expected an answer of the identity provider")


def test_a_verifier_that_is_not_the_one_is_refused_by_the_provider(site: ConsoleSite) -> None:
    back = _leave(site)
    state, nonce, verifier, there = site.browser.cookies[FLOW].split(".")
    changed = ("A" if verifier[0] != "A" else "B") + verifier[1:]
    site.browser.cookies.set(
        FLOW, ".".join((state, nonce, changed, there)), domain="127.0.0.1", path="/console"
    )
    for each in list(site.browser.cookies.jar):
        if each.name == FLOW and changed not in (each.value or ""):
            site.browser.cookies.jar.clear(each.domain, each.path, each.name)
    page = SeenPage(_come_back(site, back))
    assert page.status == 401 and page.has("invalid_grant")


def test_a_provider_that_is_away_is_told_and_the_other_ways_are_there(
    site: ConsoleSite, provider: OidcProvider
) -> None:
    provider.close()
    page = site.get("/console/sign-in/provider")
    assert page.status == 503 and page.has("cannot be reached") and page.has("With a token")
    assert site.sign_in(token=site.admin_token).has("Sign out")


def test_the_way_back_leads_to_no_other_place(site: ConsoleSite) -> None:
    done = _come_back(site, _leave(site, "//evil.example"))
    assert (done.status_code, done.headers["location"]) == (303, "/console")


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"issuer": "http://login.example.org"}, "https://"),
        ({"client_id": ""}, "oidc_client_id"),
        ({"client_secret_file": "/nowhere/secret"}, "oidc_client_secret_file"),
    ],
)
def test_settings_that_cannot_work_are_refused_at_the_start(
    changed: dict[str, str], why: str
) -> None:
    settings = OidcSettings("https://login.example.org", CLIENT, "", "", "openid")._replace(
        **changed
    )
    with pytest.raises(InvalidArgument, match=why):
        IdentityProvider(settings, lambda *_: pytest.fail("nobody asks"))


def test_a_provider_that_calls_itself_otherwise_is_not_the_one(
    site: ConsoleSite, provider: OidcProvider
) -> None:
    provider.issuer += "/"
    page = site.get("/console/sign-in/provider")
    assert page.status == 503 and page.has("write oidc_issuer as it does")
