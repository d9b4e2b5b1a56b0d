"""Who a visitor is: by the session of their browser, or by a header as programs are.

The session only proves who somebody is. Whether it still holds, and what they may do, is asked of
the node with every request.
"""

from urllib.parse import quote

from holdfast.console.page import ConsolePage, PageReply
from holdfast.console.signing import cookies
from holdfast.console.signing.coming_back import HOME, path_of
from holdfast.console.signing.pages import SIGN_IN_PATH, SignInPages
from holdfast.console.signing.provider import IdentityProvider
from holdfast.console.visitor import PageHead, Visitor
from holdfast.errors import Unauthorized
from holdfast.gateway.access.access import Access
from holdfast.gateway.access.needs import Everyone
from holdfast.gateway.identity.sessions import SessionService


class SessionSigning:
    """Visitors of a node that wants to know who asks."""

    pages: tuple[ConsolePage, ...]

    def __init__(self, access: Access, sessions: SessionService) -> None:
        self._access = access
        self._sessions = sessions
        settings = sessions.oidc
        provider = None if settings is None else IdentityProvider(settings, sessions.named_in)
        self.pages = SignInPages(sessions, provider).table

    async def visitor(self, head: PageHead) -> Visitor:
        authorization = head.headers.get("authorization")
        if authorization is not None:
            encoded = authorization.encode("latin-1")
            asker = await self._access.admit(Everyone.KNOWN, encoded, head.address)
            return Visitor(asker, self._access)
        secret = cookies.found_in(head, cookies.SESSION)
        if not secret:
            raise Unauthorized("You are not signed in")
        return Visitor(await self._sessions.asker(secret), self._access, can_sign_out=True)

    def refuse(self, head: PageHead, error: Unauthorized) -> PageReply | None:
        if "authorization" in head.headers or "event-stream" in head.headers.get("accept", ""):
            return None  # a program, or a stream: they go nowhere else
        was_in = bool(cookies.found_in(head, cookies.SESSION))
        headers = [cookies.forgotten(head, cookies.SESSION)] if was_in else []
        back = path_of(head)
        there = SIGN_IN_PATH + (f"?next={quote(back, safe='')}" if back != HOME else "")
        notice = error.message if was_in else None
        if "hx-request" in head.headers:  # a part of a page: the whole page goes
            return PageReply(b"", 401, headers=(*headers, ("hx-redirect", there)), notice=notice)
        return PageReply(b"", 303, headers=(*headers, ("location", there)), notice=notice)
