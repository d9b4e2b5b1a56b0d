"""What a page of the console is: a row of the table of pages, what is asked of it, its reply."""

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from holdfast.engine.asker import Asker
from holdfast.errors import InvalidArgument
from holdfast.gateway.access.needs import Alternatives, Everyone, Need
from holdfast.gateway.rest.common import RestApi

if TYPE_CHECKING:
    from holdfast.console.live import LiveFeeds
    from holdfast.console.rendering import Templates
    from holdfast.console.visitor import PageHead, Visitor

HTML = "text/html; charset=utf-8"
_PARAMETER = re.compile(r"{(\w+)}")


@dataclass(frozen=True, slots=True)
class PageReply:
    """What a page answers in one piece."""

    body: bytes
    status: int = 200
    media_type: str = HTML
    headers: tuple[tuple[str, str], ...] = ()
    notice: str | None = None  # shown once, on the page that comes next


@dataclass(frozen=True, slots=True)
class PageStream:
    """What a page answers piece by piece: server-sent events, until the visitor goes."""

    events: AsyncIterator[bytes]
    asker: Asker | None = None  # whose stream it is: set where pages are served


@dataclass(frozen=True, slots=True)
class PageAsk:
    """A request for a page, by a visitor who is let in."""

    api: RestApi
    visitor: "Visitor"
    templates: "Templates"
    feeds: "LiveFeeds"
    page: "ConsolePage"
    head: "PageHead"
    path: str
    parameters: Mapping[str, str]  # those in the path
    query: Mapping[str, str]  # those behind the question mark that are not empty
    form: Mapping[str, str] = field(default_factory=dict)  # of a POST
    csrf: str = ""  # for the forms of the page
    is_part: bool = False  # htmx asks for a part of the page
    notice: str | None = None  # what was done by the request before this

    async def may(self, need: Need) -> bool:
        """Whether the visitor may do it with some resource: what may not be is not offered."""
        return await self.visitor.may(need)

    async def may_with(self, need: Alternatives, id_: str) -> bool:
        """The same for one resource, by the id of its process or the type of its task."""
        return await self.visitor.may_with(need, id_)

    def wanted(self, name: str) -> str:
        """A field of the form; InvalidArgument if it is missing or empty."""
        value = self.form.get(name, "").strip()
        if not value:
            raise InvalidArgument(f"Expected {name} in the form, but it is empty", field=name)
        return value

    async def show(self, template: str, **context: Any) -> PageReply:
        """The whole page."""
        return PageReply(await self.templates.page(self, template, context))

    async def part(self, template: str, block: str, **context: Any) -> PageReply:
        """One block of a template, for htmx."""
        return PageReply(await self.templates.part(self, template, block, context))

    def go(self, path: str, notice: str | None = None) -> PageReply:
        """On to another page, after something was done; the notice is shown there."""
        assert path.startswith("/console"), "a page sends its visitor nowhere else"
        return PageReply(b"", 303, headers=(("location", path),), notice=notice)


Handler = Callable[[PageAsk], Awaitable[PageReply | PageStream]]


@dataclass(frozen=True)
class ConsolePage:
    """A row of the table of pages."""

    path: str  # `/console/...`; {names} are one part of it each
    title: str
    handle: Handler
    need: Need = Everyone.KNOWN  # what a visitor must be permitted to be let in at all
    group: str | None = None  # of the navigation; None: it is not in there
    method: Literal["GET", "POST"] = "GET"
    is_open: bool = False  # for everybody, also before they have signed in

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """What its path looks like."""
        texts = _PARAMETER.split(self.path)
        parts = [
            re.escape(text) if number % 2 == 0 else f"(?P<{text}>[^/]+)"
            for number, text in enumerate(texts)
        ]
        return re.compile("".join(parts))
