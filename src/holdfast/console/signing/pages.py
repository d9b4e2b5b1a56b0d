"""The pages of signing in and out."""

import hmac
import re
import secrets
from dataclasses import replace
from urllib.parse import quote, unquote

from holdfast.console import csrf
from holdfast.console.page import ConsolePage, PageAsk, PageReply
from holdfast.console.sending import cookie
from holdfast.console.signing import cookies
from holdfast.console.signing.coming_back import own_path
from holdfast.console.signing.provider import IdentityProvider, SignInFlow
from holdfast.console.visitor import PageHead
from holdfast.engine.asker import Asker
from holdfast.errors import Forbidden, HoldfastError, InvalidArgument, Unauthorized
from holdfast.gateway.access.needs import Everyone
from holdfast.gateway.http.problems import problem_of
from holdfast.gateway.identity.sessions import OpenedSession, SessionService
from holdfast.limits import OIDC_FLOW_SECONDS

SIGN_IN_PATH = "/console/sign-in"
_LEAVE_PATH, _BACK_PATH = f"{SIGN_IN_PATH}/provider", f"{SIGN_IN_PATH}/callback"
_TEMPLATE = "sign_in.html"
_SECRET = r"[A-Za-z0-9_-]{43}"
_FLOW = re.compile(rf"({_SECRET})\.({_SECRET})\.({_SECRET})\.([!-:<-~]*)", re.ASCII)
_SECRET_BYTES = 32


class SignInPages:
    """What a visitor sees before they are known, and what lets them in."""

    def __init__(self, sessions: SessionService, provider: IdentityProvider | None) -> None:
        self._sessions = sessions
        self._provider = provider
        pages = [
            ConsolePage(SIGN_IN_PATH, "Sign in", self._show, Everyone.ANYBODY, is_open=True),
            ConsolePage(
                SIGN_IN_PATH, "Sign in", self._sign_in, Everyone.ANYBODY, method="POST",
                is_open=True,
            ),
            ConsolePage("/console/sign-out", "Sign out", self._sign_out, method="POST"),
        ]  # fmt: skip
        if provider is not None:
            there = ((_LEAVE_PATH, self._leave), (_BACK_PATH, self._come_back))
            pages += [
                ConsolePage(path, "Sign in", handle, Everyone.ANYBODY, is_open=True)
                for path, handle in there
            ]
        self.table = tuple(pages)

    # --- by a form ----------------------------------------------------------------------------

    async def _show(self, ask: PageAsk) -> PageReply:
        secret = cookies.found_in(ask.head, cookies.SESSION)
        back = own_path(ask.query.get("next", ""))
        if secret:
            try:
                await self._sessions.asker(secret)
            except Unauthorized:
                pass
            else:
                return ask.go(back)
        return await self._form(ask, back)

    async def _form(self, ask: PageAsk, back: str, error: HoldfastError | None = None) -> PageReply:
        """The page; with an error it says what was wrong, and keeps the name that was given."""
        problem, headers = (None, {}) if error is None else problem_of(error, "POST", ask.path)
        shown = await ask.show(
            _TEMPLATE,
            problem=problem,
            next=back,
            username=ask.form.get("username", ""),
            has_passwords=self._sessions.has_passwords,
            leave=None if self._provider is None else f"{_LEAVE_PATH}?next={quote(back, safe='')}",
        )
        if problem is None:
            return shown
        headers.pop("www-authenticate", None)  # the browser's own question would be in the way
        return replace(shown, status=problem.status, headers=tuple(headers.items()))

    async def _sign_in(self, ask: PageAsk) -> PageReply:
        back = own_path(ask.form.get("next", ""))
        try:
            _check_encrypted(ask.head)
            opened = await self._opened(ask)
        except HoldfastError as error:
            return await self._form(ask, back, error)
        return await self._let_in(ask, opened, back)

    async def _opened(self, ask: PageAsk) -> OpenedSession:
        address = ask.head.address
        if "token" in ask.form:
            return await self._sessions.by_token(ask.wanted("token"), address)
        if not self._sessions.has_passwords:
            raise InvalidArgument("Expected a token, as this node takes no passwords")
        username, password = ask.wanted("username"), ask.form.get("password", "")
        return await self._sessions.by_password(username, password, address)

    async def _let_in(self, ask: PageAsk, opened: OpenedSession, back: str) -> PageReply:
        """A new session and a new secret for forms: what was known before is of no use after."""
        before = cookies.found_in(ask.head, cookies.SESSION)
        if before:
            await self._sessions.end(before)
        headers = (
            cookies.kept(ask.head, cookies.SESSION, opened.secret, opened.lasts_ms // 1_000),
            cookie(csrf.COOKIE, csrf.new_secret(), ask.head),
        )
        there = ask.go(back)
        return replace(there, headers=(*there.headers, *headers))

    async def _sign_out(self, ask: PageAsk) -> PageReply:
        await self._sessions.end(cookies.found_in(ask.head, cookies.SESSION))
        there = ask.go(SIGN_IN_PATH, "You are signed out.")
        headers = (
            cookies.forgotten(ask.head, cookies.SESSION),
            cookie(csrf.COOKIE, csrf.new_secret(), ask.head),
        )
        return replace(there, headers=(*there.headers, *headers))

    # --- at the identity provider -------------------------------------------------------------

    async def _leave(self, ask: PageAsk) -> PageReply:
        assert self._provider is not None, "there is a page only with a provider"
        flow = SignInFlow(*(secrets.token_urlsafe(_SECRET_BYTES) for _ in range(3)))
        try:
            there = await self._provider.leave(flow, self._back_url(ask.head))
        except HoldfastError as error:
            return await self._form(ask, own_path(ask.query.get("next", "")), error)
        kept = ".".join((*flow, quote(own_path(ask.query.get("next", "")), safe="/")))
        flow_cookie = cookies.kept(ask.head, cookies.FLOW, kept, OIDC_FLOW_SECONDS)
        return PageReply(b"", 303, headers=(("location", there), flow_cookie))

    async def _come_back(self, ask: PageAsk) -> PageReply:
        back = own_path("")
        try:
            flow, back = _flow_of(ask)
            asker = await self._named(ask, flow)
            opened = await self._sessions.by_issuer(asker)
        except HoldfastError as error:
            shown = await self._form(ask, back, error)
        else:
            shown = await self._let_in(ask, opened, back)
        done = cookies.forgotten(ask.head, cookies.FLOW)
        return replace(shown, headers=(*shown.headers, done))

    async def _named(self, ask: PageAsk, flow: SignInFlow) -> Asker:
        assert self._provider is not None, "there is a page only with a provider"
        issuer = ask.query.get("iss")  # RFC 9207: whose answer it is
        if issuer is not None and issuer != self._provider.settings.issuer:
            raise Unauthorized(
                f"Expected an answer of the identity provider, but {issuer!r} sent it"
            )
        if "error" in ask.query:
            reason = ask.query.get("error_description") or ask.query["error"]
            raise Unauthorized(f"The identity provider did not sign you in: {reason[:300]}")
        if "code" not in ask.query:
            raise InvalidArgument("Expected a code of the identity provider, but there is none")
        return await self._provider.named(ask.query["code"], flow, self._back_url(ask.head))

    def _back_url(self, head: PageHead) -> str:
        assert self._provider is not None, "there is a page only with a provider"
        if self._provider.settings.redirect_url:
            return self._provider.settings.redirect_url
        scheme = "https" if cookies.is_guarded(head) else "http"
        return f"{scheme}://{head.headers.get('host', '')}{_BACK_PATH}"


def _flow_of(ask: PageAsk) -> tuple[SignInFlow, str]:
    """What this browser left for; Unauthorized unless the answer is to that."""
    found = _FLOW.fullmatch(cookies.found_in(ask.head, cookies.FLOW))
    state = ask.query.get("state", "")
    if found is None or not hmac.compare_digest(found[1].encode(), state.encode()):
        raise Unauthorized(
            "Expected an answer to a sign-in of this browser, but it is to another or took too"
            " long; sign in again"
        )
    return SignInFlow(found[1], found[2], found[3]), own_path(unquote(found[4]))


def _check_encrypted(head: PageHead) -> None:
    """Beyond this machine nobody signs in where others could read along.

    The browser says how it came here; the node may stand behind a proxy that decrypts.
    """
    if head.headers.get("origin", "").startswith("http://") and cookies.is_guarded(head):
        raise Forbidden(
            "Expected HTTPS, but this page came over HTTP, where others could read what you type;"
            " open the console by its https:// address"
        )
