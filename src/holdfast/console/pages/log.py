"""The log browser: records of a partition or of all, and one record with its causes."""

from collections import deque
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from typing import Any
from urllib.parse import urlencode

from holdfast.console.live import Produce, event
from holdfast.console.page import ConsolePage, PageAsk, PageReply, PageStream
from holdfast.console.rendering import Templates
from holdfast.console.trees import record_tree
from holdfast.engine.identity.values import Permission, ResourceType
from holdfast.engine.telling import INTENTS
from holdfast.errors import InvalidArgument
from holdfast.gateway.access.needs import one
from holdfast.gateway.journal.shapes import (
    RecordEnd,
    RecordFilter,
    RecordPageQuery,
    RecordQuery,
    RecordType,
    RecordView,
)
from holdfast.gateway.rest.common import RestApi
from holdfast.limits import CONSOLE_LIST_ITEMS, CONSOLE_TICK_MS

_READ = one(ResourceType.JOURNAL, Permission.READ)
_TEMPLATE = "log.html"
_ALL_INTENTS = sorted({intent for intents in INTENTS.values() for intent in intents})
_FILTERS = ("partition", "valueType", "intent", "type", "key", "source", "since", "until")


def filter_of(query: Any) -> RecordFilter:
    """The filter in the query of an address; the fields are those of the form."""
    try:
        type_ = RecordType(query["type"]) if "type" in query else None
    except ValueError as error:
        raise InvalidArgument(f"Expected a type of records, but {error}", field="type") from error
    return RecordFilter(
        partition=_number(query, "partition"),
        type=type_,
        value_type=query.get("valueType"),
        intent=query.get("intent"),
        key=query.get("key"),
        source_position=_number(query, "source"),
        since_ms=_time_ms(query, "since"),
        until_ms=_time_ms(query, "until"),
    )


def _number(query: Any, name: str) -> int | None:
    text = query.get(name)
    if text is None:
        return None
    if not text.isascii() or not text.isdigit() or len(text) > 18:
        raise InvalidArgument(f"Expected a number for {name}, but found {text!r}", field=name)
    return int(text)


def _time_ms(query: Any, name: str) -> int | None:
    """A time as a browser's field has it, without a zone: in UTC."""
    text = query.get(name)
    if text is None:
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError as error:
        raise InvalidArgument(
            f"Expected a time such as 2026-01-31T14:30 for {name}, but found {text!r}", field=name
        ) from error
    return int((found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp() * 1_000)


async def show(ask: PageAsk) -> PageReply:
    """A page of records, the newest first."""
    query = ask.query
    start = RecordEnd.OLDEST if query.get("start") == "oldest" else RecordEnd.NEWEST
    page = RecordPageQuery(
        CONSOLE_LIST_ITEMS, start, older_than=query.get("older"), newer_than=query.get("newer")
    )
    found = await ask.api.journal.records(RecordQuery(filter_of(query), page))
    topology = await ask.api.node.topology()
    kept = {name: query[name] for name in _FILTERS if name in query}
    return await ask.show(
        _TEMPLATE,
        found=found,
        records=found.items,
        partitions=len(topology.partitions),
        value_types=sorted(INTENTS),
        intents=INTENTS.get(query.get("valueType", "")) or _ALL_INTENTS,
        types=list(RecordType),
        is_following="follow" in query,
        live=f"/console/log/live?{urlencode(kept)}",
        page_items=CONSOLE_LIST_ITEMS,
    )


async def live(ask: PageAsk) -> PageStream:
    """The newest records that meet a filter, as they come; tabs with the same filter share it."""
    wanted = filter_of(ask.query)
    first = await _newest(ask.api, wanted)  # a wrong filter is refused before the stream begins
    make = partial(_follower, ask.api, ask.templates, wanted, first)
    feed = ask.feeds.feed(f"log {wanted}", make, CONSOLE_TICK_MS, is_kept=False)
    return PageStream(feed.listen())


async def _newest(api: RestApi, wanted: RecordFilter) -> Any:
    query = RecordQuery(wanted, RecordPageQuery(CONSOLE_LIST_ITEMS))
    return await api.journal.records(query)


def _follower(api: RestApi, templates: Templates, wanted: RecordFilter, first: Any) -> Produce:
    cursor: str = first.newer_cursor
    shown: deque[RecordView] = deque(first.items, maxlen=CONSOLE_LIST_ITEMS)
    is_new = True

    async def produce() -> bytes | None:
        nonlocal cursor, is_new
        page = RecordPageQuery(CONSOLE_LIST_ITEMS, newer_than=cursor)
        found = await api.journal.records(RecordQuery(wanted, page))
        if found.has_newer and len(found.items) == CONSOLE_LIST_ITEMS:
            found = await _newest(api, wanted)  # they come faster than anybody reads
        cursor = found.newer_cursor
        if not found.items and not is_new:
            return None
        is_new = False
        shown.extendleft(reversed(found.items))
        records = list(islice(shown, CONSOLE_LIST_ITEMS))
        return event("records", templates.live(_TEMPLATE, "rows", {"records": records}))

    return produce


async def record(ask: PageAsk) -> PageReply:
    """One record: its value, what led to it and what came of it."""
    place = ask.parameters["partition"], ask.parameters["position"]
    trace = await ask.api.journal.trace(*place)
    own = trace.causes[-1]
    return await ask.show(
        "record.html", record=own, tree=record_tree(trace), trace=trace, root=trace.causes[0]
    )


PAGES = (
    ConsolePage("/console/log", "Log", show, _READ, group="Node"),
    ConsolePage("/console/log/live", "Newest records", live, _READ),
    ConsolePage("/console/log/{partition}/{position}", "Record", record, _READ),
)
