"""Whatever has a key: from the field at the top of every page to the page about it."""

from collections.abc import Awaitable, Callable
from typing import Any

from holdfast.console.page import ConsolePage, PageAsk, PageReply
from holdfast.errors import Forbidden, InvalidArgument, InvalidState, NotFound, Unavailable
from holdfast.gateway.rest.tables import row_of

_MISSING = (NotFound, Forbidden, InvalidArgument, InvalidState, Unavailable)

FindKey = Callable[[PageAsk, str], Awaitable[Any]]

# In the order in which people ask: what the node knows now, then what the tables know of the past.
_KINDS: tuple[tuple[str, FindKey], ...] = (
    ("instances", lambda ask, key: ask.api.instances.get(key)),
    ("tasks", lambda ask, key: ask.api.tasks.details(key)),
    ("incidents", lambda ask, key: ask.api.incidents.get(key)),
    ("definitions", lambda ask, key: ask.api.processes.source(key)),
    ("batches", lambda ask, key: ask.api.batches.get(key)),
    ("distributions", lambda ask, key: ask.api.distributions.get(key)),
)
_TABLES = (("instances", "process_instances"), ("tasks", "jobs"), ("incidents", "incidents"))


async def show(ask: PageAsk) -> PageReply:
    """Goes to the page of a key; an element leads to its instance."""
    key = "".join(ask.query.get("key", "").split())
    path = await _path_of(ask, key) if key.isdecimal() else None
    return ask.go(path) if path is not None else await ask.show("find.html", key=key)


async def _path_of(ask: PageAsk, key: str) -> str | None:
    there = (await ask.templates.offered(ask)).there
    for kind, find in _KINDS:
        path = there(f"/console/{kind}/{key}")
        if path is not None and await _is_found(find(ask, key)):
            return path
    try:
        number = ask.api.look.key(key, "key")
    except _MISSING:
        return None
    element = await ask.api.look.element(number)
    if element is not None:
        return f"/console/instances/{element.instance}"
    for kind, table in _TABLES:
        path = there(f"/console/{kind}/{key}")
        if path is not None and await row_of(ask.api.tables, table, number) is not None:
            return path
    return None


async def _is_found(look: Awaitable[Any]) -> bool:
    try:
        await look
    except _MISSING:
        return False
    return True


PAGES = (ConsolePage("/console/find", "Find", show),)
