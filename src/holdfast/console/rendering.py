"""Templates, and what all of them can use: numbers, times and links as people read them."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import msgspec
from jinja2 import Environment, PackageLoader, StrictUndefined
from jinja2.runtime import Context

from holdfast.console.charts import sparkline
from holdfast.console.static_files import StaticFiles
from holdfast.errors import raised_line
from holdfast.version import VERSION

NOTHING = "\N{EN DASH}"  # where there is no value
_SHORT_CHARS = 160

if TYPE_CHECKING:
    from holdfast.console.page import ConsolePage, PageAsk


class OfferedPages:
    """The pages that some visitor may open: nothing else is linked to."""

    def __init__(self, pages: Sequence["ConsolePage"]) -> None:
        self._pages = pages
        self.paths = tuple(each.path for each in pages)

    def there(self, url: str | None) -> str | None:
        """An address, if there is a page that may be opened: a link never leads nowhere."""
        path = (url or "").partition("#")[0].partition("?")[0]
        return url if any(each.pattern.fullmatch(path) for each in self._pages) else None


class Templates:
    """All templates of the package, compiled when they are used first."""

    def __init__(self, static: StaticFiles, pages: Sequence["ConsolePage"]) -> None:
        self._pages = [each for each in pages if each.method == "GET"]
        self._all = OfferedPages(self._pages)
        self._environment = Environment(
            loader=PackageLoader("holdfast.console"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
        )
        self._environment.globals |= {
            "static": static.url,
            "sparkline": sparkline,
            "version": VERSION,
        }
        self._environment.filters |= {
            "count": count,
            "when": when,
            "moment": moment,
            "ago": ago,
            "pretty": pretty,
            "span": span,
            "precise": precise,
            "short": short,
            "size": size,
            "summary": summary,
        }

    async def offered(self, ask: "PageAsk") -> OfferedPages:
        """What the visitor may open."""
        return OfferedPages([each for each in self._pages if await ask.may(each.need)])

    async def page(self, ask: "PageAsk", template: str, context: Mapping[str, Any]) -> bytes:
        """A whole page, with the navigation that its visitor may use."""
        navigation = await self._navigation(ask)
        found = self._environment.get_template(template)
        return found.render(await self._known(ask), navigation=navigation, **context).encode()

    async def part(
        self, ask: "PageAsk", template: str, block: str, context: Mapping[str, Any]
    ) -> bytes:
        """One block of a template, as htmx puts it into a page."""
        return self._block(template, block, {**await self._known(ask), **context}).encode()

    def live(
        self,
        template: str,
        block: str,
        context: Mapping[str, Any],
        offered: OfferedPages | None = None,
    ) -> str:
        """One block for all who listen to a feed; None: it links only to what all of them see."""
        there = (offered or self._all).there
        return self._block(template, block, {"there": there, **context})

    def _block(self, template: str, block: str, context: Mapping[str, Any]) -> str:
        found = self._environment.get_template(template)
        made: Context = found.new_context(dict(context))
        return "".join(found.blocks[block](made))

    async def _known(self, ask: "PageAsk") -> dict[str, Any]:
        return {
            "there": (await self.offered(ask)).there,
            "visitor": ask.visitor,
            "page": ask.page,
            "path": ask.path,
            "query": ask.query,
            "notice": ask.notice,
            "csrf": ask.csrf,
        }

    async def _navigation(self, ask: "PageAsk") -> list[tuple[str, list["ConsolePage"]]]:
        groups: dict[str, list[ConsolePage]] = {}
        for each in self._pages:
            if each.group is not None and await ask.may(each.need):
                groups.setdefault(each.group, []).append(each)
        return list(groups.items())


# --- as people read it ------------------------------------------------------------------------


def count(number: float | None) -> str:
    """A number with its thousands apart; what is unknown is a dash."""
    if number is None:
        return NOTHING
    return f"{number:,.0f}" if number == int(number) or number >= 100 else f"{number:,.1f}"


def size(size_bytes: float | None) -> str:
    """A number of bytes in the unit that people would use."""
    if size_bytes is None:
        return NOTHING
    for unit in ("B", "KB", "MB", "GB"):
        if size_bytes < 1_000:
            return f"{size_bytes:,.0f} B" if unit == "B" else f"{size_bytes:,.1f} {unit}"
        size_bytes /= 1_000
    return f"{size_bytes:,.1f} TB"


def when(time: datetime | None) -> str:
    """A time in UTC to the second, in an order that sorts."""
    return NOTHING if time is None else time.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S")


def precise(time: datetime) -> str:
    """A time in UTC to the millisecond, as records are apart."""
    return time.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]


def short(value: Any) -> str:
    """The beginning of some JSON, for a row of a table."""
    text = bytes(value)[: 4 * _SHORT_CHARS].decode(errors="ignore")
    return text if len(text) <= _SHORT_CHARS else f"{text[:_SHORT_CHARS]}\N{HORIZONTAL ELLIPSIS}"


def moment(time_ms: int | None) -> datetime | None:
    """Milliseconds since the epoch as a time."""
    return None if not time_ms else datetime.fromtimestamp(time_ms / 1_000, UTC)


def ago(time: datetime | None, now: datetime | None = None) -> str:
    """How long ago a time was, or in how long it will be."""
    if time is None:
        return NOTHING
    seconds = ((now or datetime.now(UTC)) - time).total_seconds()
    return f"in {span(-seconds)}" if seconds < -1 else f"{span(max(seconds, 0))} ago"


_SPANS = ((86_400 * 2, 86_400, "d"), (3_600 * 2, 3_600, "h"), (60 * 2, 60, "min"))


def span(seconds: float | None) -> str:
    """A number of seconds in the unit that people would use."""
    if seconds is None:
        return NOTHING
    for least, unit, name in _SPANS:
        if seconds >= least:
            return f"{seconds / unit:,.0f} {name}"
    return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.1f} s"


def pretty(value: Any) -> str:
    """JSON as people read it: bytes of JSON, or what was read of it."""
    if value is msgspec.UNSET or value is None:
        return ""
    if isinstance(value, msgspec.Raw | bytes | str):
        try:
            value = json.loads(bytes(value) if not isinstance(value, str) else value)
        except ValueError:
            return str(value) if isinstance(value, str) else bytes(value).decode(errors="replace")
    return json.dumps(value, indent=2, ensure_ascii=False)


def summary(error: str | None) -> str:
    """What an error comes down to: the line of a traceback that names what was raised."""
    return raised_line(error or "")
