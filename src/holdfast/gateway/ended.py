"""Lists that go on behind what is open: what ended recently, on all partitions, the last one first.

A cursor among ended things is the time and the key of the last one of a page. What ends while
somebody turns the pages has a later time, so nothing is listed twice and nothing is left out.
"""

import re
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any, Generic, NamedTuple, TypeVar

from holdfast.config import Config
from holdfast.engine.ended.queries import FindEnded, FoundEnded, ListEnded
from holdfast.engine.ended.values import EndedKind, EndedThing, KeptEnded
from holdfast.errors import InvalidArgument
from holdfast.gateway import checks
from holdfast.gateway.access.asking import Asked
from holdfast.gateway.shapes import ListScope
from holdfast.records import partition_of

T = TypeVar("T")

OLDER = "the tables of the pipeline have what ended earlier"
_CURSOR = re.compile(r"(\d{1,15})-(\d{1,19})", re.ASCII)


class EndedPage(NamedTuple):
    """Some of what ended, and where to go on."""

    items: list[EndedThing]
    after: str | None
    since: datetime | None  # all that ended since then is known; None: all that ever did


class ListPage(NamedTuple, Generic[T]):
    """A page of a list."""

    items: list[T]
    after: str | None = None
    ended_since: datetime | None = None


ListOpen = Callable[[str | None, int], Awaitable[tuple[list[T], int]]]
"""Open things behind a key, so many at most; and the key to go on behind, 0 if there are no more"""

ListEndedThings = Callable[[str | None, int], Awaitable[EndedPage]]
"""The same of ended things, behind a cursor."""


class EndedThings:
    """What ended recently, as far as the partitions' logs tell."""

    def __init__(self, asked: Asked, config: Config) -> None:
        self._asked = asked
        share = -(-config.ended_kept_max // asked.count)  # all partitions together keep so many
        self._kept = KeptEnded(config.ended_kept_ms, share)

    async def page(
        self, kind: EndedKind, after: str | None, limit: int, **wanted: Any
    ) -> EndedPage:
        """A page behind a cursor; `wanted` are fields of `ListEnded`."""
        query = ListEnded(kind, limit, self._kept, _place(after), **wanted)
        rows = await self._asked.ask_all(query)
        found = [thing for each in rows for thing in each.items]
        found.sort(key=lambda thing: (thing.ended_ms, thing.key), reverse=True)
        has_more = len(found) > limit or any(each.has_more for each in rows)
        items = found[:limit]
        cursor = f"{items[-1].ended_ms}-{items[-1].key}" if items and has_more else None
        return EndedPage(items, cursor, checks.moment(max(each.since_ms for each in rows)))

    async def find(self, kind: EndedKind, key: int) -> FoundEnded | None:
        """Something that ended recently; None if it is not known."""
        return await self._asked.ask(partition_of(key), FindEnded(kind, key, self._kept))


async def page_of(
    scope: ListScope,
    after: str | None,
    limit: int,
    list_open: ListOpen[T],
    list_ended: ListEndedThings,
    view: Callable[[EndedThing], T],
) -> ListPage[T]:
    """A page of open things, of ended ones, or of the open ones and then the ended ones."""
    items: list[T] = []
    is_behind_open = after is not None and _CURSOR.fullmatch(after) is not None
    if scope is ListScope.OPEN or (scope is ListScope.ALL and not is_behind_open):
        items, last = await list_open(after, limit)
        if last or scope is ListScope.OPEN:
            return ListPage(items, str(last) if last else None)
        after = None
    assert len(items) < limit, "a full page of open things has no cursor"
    ended = await list_ended(after, limit - len(items))
    return ListPage([*items, *map(view, ended.items)], ended.after, ended.since)


def _place(after: str | None) -> tuple[int, int] | None:
    """The place of a cursor."""
    if after is None:
        return None
    found = _CURSOR.fullmatch(after)
    if found is None:
        raise InvalidArgument(f"Expected `after` as the page before gave it, but found {after!r}")
    return int(found[1]), int(found[2])
