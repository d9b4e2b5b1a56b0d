"""The console as an ASGI app: finds the page, who asks for it and whether they may, and answers.

What every request passes is here and nowhere else: signing in, permissions, the proof that a form
is ours, errors as pages. The gateway has checked Host and Origin before.
"""

import time
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qsl, unquote

from holdfast.console import csrf
from holdfast.console.live import LiveFeeds
from holdfast.console.page import ConsolePage, PageAsk, PageReply, PageStream
from holdfast.console.pages.table import PAGES
from holdfast.console.rendering import Templates
from holdfast.console.sending import (
    NOTICE_COOKIE,
    Receive,
    Send,
    cookie,
    notice_in,
    send_reply,
    send_static,
    send_stream,
)
from holdfast.console.signing import SessionSigning
from holdfast.console.static_files import StaticFiles
from holdfast.console.visitor import HeaderSigning, PageHead, Signing, Visitor
from holdfast.errors import Forbidden, HoldfastError, InvalidArgument, NotFound, Unauthorized
from holdfast.gateway.access.asking import asking
from holdfast.gateway.http.problems import problem_of
from holdfast.gateway.rest.common import RestApi
from holdfast.limits import CONSOLE_FORM_BYTES_MAX, CONSOLE_FORM_FIELDS_MAX, CONSOLE_TICK_MS
from holdfast.logs import log

CONSOLE_PATH = "/console"
_FORM = "application/x-www-form-urlencoded"


class Console:
    """Serves the pages, over what can be asked of a node."""

    def __init__(self, api: RestApi, signing: Signing | None = None) -> None:
        self._api = api
        self._signing = signing or _signing_of(api)
        self._pages = (*PAGES, *self._signing.pages)
        self._static = StaticFiles()
        self._templates = Templates(self._static, self._pages)
        self.feeds = LiveFeeds()

    def end(self) -> None:
        """The server closes: streams end."""
        self.feeds.end()

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        head = PageHead.of(scope)
        if head.path in ("/", "/console/"):
            reply = PageReply(b"", 303, headers=(("location", CONSOLE_PATH),))
            return await send_reply(reply, head, send)
        file = self._static.at(head.path)
        if file is not None:
            return await send_static(file, head, send)
        secret = csrf.secret_in(head)
        kept = secret or csrf.new_secret()
        answer = await self._answer(scope, receive, head, secret, kept)
        if isinstance(answer, PageStream):
            with asking(answer.asker):
                return await send_stream(answer, receive, send)
        more = [] if secret else [cookie(csrf.COOKIE, kept, head)]
        if NOTICE_COOKIE in head.cookies and answer.body and not answer.notice:
            more.append(cookie(NOTICE_COOKIE, "", head, 0))
        return await send_reply(answer, head, send, more)

    async def _answer(
        self, scope: Any, receive: Receive, head: PageHead, secret: str | None, kept: str
    ) -> PageReply | PageStream:
        visitor = Visitor(access=self._api.access)
        ask = self._ask(scope, head, _NOWHERE, {}, visitor, kept)
        try:
            page, parameters = self._find(head, scope["raw_path"].decode("latin-1"))
            if not page.is_open:
                visitor = await self._signing.visitor(head)
                if not await visitor.may(page.need):
                    raise Forbidden(
                        f"{visitor.name!r} may not use the page {page.title!r}; an administrator"
                        " can grant the permission"
                    )
            ask = self._ask(scope, head, page, parameters, visitor, kept)
            with asking(visitor.asker):
                if page.method == "POST":
                    ask = replace(ask, form=await _form_of(head, receive))
                    given = ask.form.get(csrf.FIELD) or head.headers.get(csrf.HEADER, "")
                    csrf.check(secret, given, visitor)
                answer = await page.handle(ask)
            if isinstance(answer, PageStream):
                events = self._while_permitted(answer.events, head, page)
                return PageStream(events, visitor.asker)
            return answer
        except Unauthorized as error:
            refused = self._signing.refuse(head, error)
            return refused or await self._problem(ask, error)
        except Exception as error:
            return await self._problem(ask, error)

    async def _while_permitted(
        self, events: AsyncIterator[bytes], head: PageHead, page: ConsolePage
    ) -> AsyncIterator[bytes]:
        """Ends a stream when its visitor is signed out, or may not have it any more."""
        checked = time.monotonic()
        async with aclosing(events) as open_events:  # pyright: ignore[reportArgumentType]
            async for each in open_events:
                if time.monotonic() - checked >= CONSOLE_TICK_MS / 1_000 / 2:
                    checked = time.monotonic()
                    try:
                        if not await (await self._signing.visitor(head)).may(page.need):
                            return
                    except HoldfastError:
                        return
                yield each

    def _find(self, head: PageHead, raw_path: str) -> tuple[ConsolePage, dict[str, str]]:
        method = "GET" if head.method == "HEAD" else head.method
        for page in self._pages:
            found = page.pattern.fullmatch(raw_path.partition("?")[0])
            if found is not None and page.method == method:
                return page, {name: unquote(value) for name, value in found.groupdict().items()}
        raise NotFound(f"There is no page {head.path} of the console")

    def _ask(
        self,
        scope: Any,
        head: PageHead,
        page: ConsolePage,
        parameters: Mapping[str, str],
        visitor: Visitor,
        secret: str,
    ) -> PageAsk:
        query = parse_qsl(scope["query_string"].decode("latin-1"), max_num_fields=None)
        return PageAsk(
            self._api, visitor, self._templates, self.feeds, page, head, head.path, parameters,
            {name: value.strip() for name, value in query if value.strip()},
            csrf=csrf.token_for(secret, visitor),
            is_part="hx-request" in head.headers and "hx-boosted" not in head.headers,
            notice=notice_in(head),
        )  # fmt: skip

    async def _problem(self, ask: PageAsk, error: Exception) -> PageReply:
        problem, named = problem_of(error, "", ask.path)
        if not isinstance(error, HoldfastError):
            log.error("page failed", path=ask.path, exc_info=error)
        headers = tuple(named.items())
        if ask.is_part:
            part = await ask.part("problem.html", "problem", problem=problem)
            # htmx puts only answers without an error into a page
            shown = (*headers, ("hx-retarget", "#messages"), ("hx-reswap", "innerHTML"))
            return replace(part, headers=shown)
        shown = await ask.show("problem.html", problem=problem)
        return replace(shown, status=problem.status, headers=headers)


def _signing_of(api: RestApi) -> Signing:
    if api.access is None or api.sessions is None:
        return HeaderSigning(api.access)
    return SessionSigning(api.access, api.sessions)


async def _nowhere(ask: PageAsk) -> PageReply:
    raise NotFound(f"There is no page {ask.path}")


_NOWHERE = ConsolePage(CONSOLE_PATH, "Problem", _nowhere)


async def _form_of(head: PageHead, receive: Receive) -> dict[str, str]:
    """The fields of a form; of those with the same name the last counts."""
    if not head.headers.get("content-type", "").lower().startswith(_FORM):
        raise InvalidArgument(f"Expected a form ({_FORM}), but found another content type")
    pieces: list[bytes] = []
    size_bytes = 0
    while True:
        message = await receive()
        if message["type"] != "http.request":
            raise InvalidArgument("Expected a whole form, but the browser is gone")
        pieces.append(message.get("body", b""))
        size_bytes += len(pieces[-1])
        if size_bytes > CONSOLE_FORM_BYTES_MAX:
            raise InvalidArgument(
                f"Expected a form of at most {CONSOLE_FORM_BYTES_MAX} bytes, but found more"
            )
        if not message.get("more_body"):
            break
    try:
        return dict(
            parse_qsl(
                b"".join(pieces).decode(), keep_blank_values=True, strict_parsing=False,
                max_num_fields=CONSOLE_FORM_FIELDS_MAX,
            )
        )  # fmt: skip
    except ValueError as error:  # no UTF-8, or too many fields
        raise InvalidArgument(f"Expected a form of the console, but {error}") from error
