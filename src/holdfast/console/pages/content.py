"""Content distribution: publishers, their subscribers, and the queue of one of them."""

from urllib.parse import quote

from holdfast.console.page import ConsolePage, PageAsk, PageReply
from holdfast.errors import InvalidArgument, Unavailable
from holdfast.gateway.content.api import ADMINISTER, LOOK
from holdfast.gateway.content.shapes import QueueQuery
from holdfast.limits import CONSOLE_LIST_ITEMS

_HOME = "/console/content"
_PUBLISHER = f"{_HOME}/{{publisher}}"
_QUEUE = f"{_PUBLISHER}/{{subscriber}}"


async def show_publishers(ask: PageAsk) -> PageReply:
    """The publishers that the visitor may see; a node that distributes nothing says so."""
    try:
        farms = await ask.api.content.publishers()
    except Unavailable as error:
        return await ask.show("content.html", farms=[], problem=error.message)
    return await ask.show("content.html", farms=farms, problem=None)


async def show_subscribers(ask: PageAsk) -> PageReply:
    """One publisher, and how far each of its subscribers is."""
    publisher = ask.parameters["publisher"]
    return await ask.show(
        "content_publisher.html",
        farm=await ask.api.content.farm(publisher),
        subscribers=await ask.api.content.subscribers(publisher),
    )


async def show_queue(ask: PageAsk) -> PageReply:
    """What a subscriber has still to take, and what it gave up on."""
    publisher, name = ask.parameters["publisher"], ask.parameters["subscriber"]
    found = await ask.api.content.queue(publisher, name, _page(ask, "after"))
    failed = await ask.api.content.errors(publisher, name, _page(ask, "failed"))
    known = await ask.api.content.subscribers(publisher)
    [subscriber] = [each for each in known if each.name == name]  # it has a queue
    return await ask.show(
        "content_queue.html",
        publisher=publisher,
        subscriber=subscriber,
        found=found,
        failed=failed,
        may_administer=await ask.may_with(ADMINISTER, publisher),
    )


def _page(ask: PageAsk, name: str) -> QueueQuery:
    after = ask.query.get(name)
    return QueueQuery(-1 if after is None else _offset(after, name), CONSOLE_LIST_ITEMS)


def _offset(text: str, name: str) -> int:
    if not (text.isascii() and text.isdecimal()):
        raise InvalidArgument(f"Expected an offset for {name}, but found {text!r}", field=name)
    return int(text[:20])


# --- what can be done -------------------------------------------------------------------------


async def retry(ask: PageAsk) -> PageReply:
    """A package that the subscriber gave up on is tried again."""
    offset = _offset(ask.wanted("offset"), "offset")
    await ask.api.content.retry(ask.parameters["publisher"], ask.parameters["subscriber"], offset)
    return _back(ask, f"The subscriber is asked to import the package at {offset} again.")


async def remove(ask: PageAsk) -> PageReply:
    """One package is skipped."""
    offset = _offset(ask.wanted("offset"), "offset")
    await ask.api.content.remove(ask.parameters["publisher"], ask.parameters["subscriber"], offset)
    return _back(ask, f"The subscriber is asked to skip the package at {offset}.")


async def clear(ask: PageAsk) -> PageReply:
    """All packages up to one are skipped."""
    offset = _offset(ask.wanted("offset"), "offset")
    await ask.api.content.clear(ask.parameters["publisher"], ask.parameters["subscriber"], offset)
    return _back(ask, f"The subscriber is asked to skip all packages up to {offset}.")


def _back(ask: PageAsk, notice: str) -> PageReply:
    names = (ask.parameters["publisher"], ask.parameters["subscriber"])
    return ask.go("/".join((_HOME, *(quote(each, safe="") for each in names))), notice)


PAGES = (
    ConsolePage(_HOME, "Content", show_publishers, LOOK, group="Node"),
    ConsolePage(_PUBLISHER, "Publisher", show_subscribers, LOOK),
    ConsolePage(_QUEUE, "Queue", show_queue, LOOK),
    ConsolePage(f"{_QUEUE}/retry", "Retry", retry, ADMINISTER, method="POST"),
    ConsolePage(f"{_QUEUE}/remove", "Remove", remove, ADMINISTER, method="POST"),
    ConsolePage(f"{_QUEUE}/clear", "Clear", clear, ADMINISTER, method="POST"),
)
