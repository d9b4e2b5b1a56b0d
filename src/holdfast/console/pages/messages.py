"""Messages: who waits for them, those that are kept for later, and the processes they start."""

from typing import Any

from holdfast.console.forms import optional, raw_object, whole
from holdfast.console.page import ConsolePage, PageAsk, PageReply
from holdfast.engine.identity.values import Permission, ResourceType
from holdfast.gateway.access.needs import READ_DEFINITION, READ_INSTANCE, one
from holdfast.gateway.processes.shapes import (
    MessageQuery,
    MessageSubscriptionQuery,
    NewMessage,
)
from holdfast.limits import CONSOLE_LIST_ITEMS

_READ = one(ResourceType.MESSAGE, Permission.READ)
_PUBLISH = one(ResourceType.MESSAGE, Permission.CREATE)
_HOME = "/console/messages"


async def show(ask: PageAsk) -> PageReply:
    """What the visitor may see of each of the three."""
    name, shown = ask.query.get("name"), dict[str, Any]()
    if await ask.may(READ_INSTANCE):
        waiting = MessageSubscriptionQuery(
            name, ask.query.get("correlation"), ask.query.get("process"), CONSOLE_LIST_ITEMS,
            ask.query.get("after"),
        )  # fmt: skip
        shown["waiting"] = await ask.api.messages.subscriptions(waiting)
    if await ask.may(_READ):
        kept = MessageQuery(name, CONSOLE_LIST_ITEMS, ask.query.get("kept"))
        shown["kept"] = await ask.api.messages.page(kept)
    if await ask.may(READ_DEFINITION):
        starts = await ask.api.messages.starts()
        fitting = [each for each in starts if name in (None, each.name)]
        shown["starts"] = fitting[:CONSOLE_LIST_ITEMS]
        shown["starts_left"] = len(fitting) - len(shown["starts"])
    may_publish = await ask.may(_PUBLISH)
    return await ask.show("messages.html", shown=shown, may_publish=may_publish)


async def publish(ask: PageAsk) -> PageReply:
    """Gives a message to those that wait for it, and keeps it for a while if that is wanted."""
    new = NewMessage(
        ask.wanted("name"),
        optional(ask, "correlation") or "",
        raw_object(ask, "variables"),
        optional(ask, "id"),
        (whole(ask, "seconds") or 0) * 1_000,
    )
    receipt = await ask.api.messages.publish(new)
    started = receipt.started_instance_keys
    told = f" It started {', '.join(started)}." if started else ""
    return ask.go(_HOME, f"Message {receipt.message_key} was published.{told}")


PAGES = (
    ConsolePage(_HOME, "Messages", show, (*READ_INSTANCE, *_READ), "Work"),
    ConsolePage(f"{_HOME}/publish", "Publish a message", publish, _PUBLISH, method="POST"),
)
