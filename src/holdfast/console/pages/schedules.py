"""Schedules: the rules that submit tasks, when each is due next, and how to change them."""

import json
from urllib.parse import quote

import msgspec

from holdfast.console.forms import json_of, optional, wanted_word, whole
from holdfast.console.page import ConsolePage, PageAsk, PageReply
from holdfast.engine.identity.values import Permission, ResourceType
from holdfast.engine.timers.values import CatchUp
from holdfast.gateway.access.needs import one
from holdfast.gateway.tasks.shapes import NewSchedule, NewTask
from holdfast.limits import CONSOLE_LIST_ITEMS

_READ = one(ResourceType.SCHEDULE, Permission.READ)
_UPDATE = one(ResourceType.SCHEDULE, Permission.UPDATE)
_DELETE = one(ResourceType.SCHEDULE, Permission.DELETE)
_HOME = "/console/schedules"


async def show(ask: PageAsk) -> PageReply:
    """All schedules that the visitor may see, page by page in the order of their ids."""
    text, after = ask.query.get("id", ""), ask.query.get("after", "")
    fitting = [each for each in await ask.api.schedules.all() if text in each.schedule_id]
    left = [each for each in fitting if each.schedule_id > after]
    items = left[:CONSOLE_LIST_ITEMS]
    return await ask.show(
        "schedules.html",
        items=items,
        total=len(fitting),
        after=items[-1].schedule_id if len(left) > len(items) else None,
        deletable={
            each.schedule_id for each in items if await ask.may_with(_DELETE, each.schedule_id)
        },
        may_update=await ask.may(_UPDATE),
        catch_ups=list(CatchUp),
    )


async def put(ask: PageAsk) -> PageReply:
    """Creates a schedule, or gives it another rule."""
    id_, payload = ask.wanted("id"), optional(ask, "payload") or "null"
    json_of(payload, "payload")
    seconds = whole(ask, "seconds")
    new = NewSchedule(
        NewTask(ask.wanted("type"), msgspec.Raw(payload.encode())),
        optional(ask, "cron"),
        None if seconds is None else seconds * 1_000,
        optional(ask, "timezone") or "UTC",
        wanted_word(ask, "catchUp", CatchUp),
    )
    await ask.api.schedules.put(id_, new)
    return ask.go(f"{_HOME}?id={quote(id_, safe='')}", f"The schedule {json.dumps(id_)} is set.")


async def delete(ask: PageAsk) -> PageReply:
    """It submits nothing any more."""
    id_ = ask.wanted("id")
    await ask.api.schedules.delete(id_)
    return ask.go(_HOME, f"The schedule {json.dumps(id_)} was deleted.")


PAGES = (
    ConsolePage(_HOME, "Schedules", show, _READ, "Work"),
    ConsolePage(f"{_HOME}/put", "Set a schedule", put, _UPDATE, method="POST"),
    ConsolePage(f"{_HOME}/delete", "Delete a schedule", delete, _DELETE, method="POST"),
)
