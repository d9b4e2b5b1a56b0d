"""Groups that share partitions: their members, who has which partition, and why one is parked."""

from typing import get_args
from urllib.parse import quote

import msgspec

from holdfast.console.page import ConsolePage, PageAsk, PageReply
from holdfast.errors import InvalidArgument
from holdfast.gateway.groups.api import READ, UPDATE
from holdfast.gateway.groups.shapes import (
    GroupPartitionQuery,
    PartitionMove,
    PartitionStateWord,
    PartitionToken,
)
from holdfast.limits import CONSOLE_LIST_ITEMS

_HOME = "/console/groups"
_ONE = f"{_HOME}/{{group}}"
_STATES: tuple[PartitionStateWord, ...] = get_args(PartitionStateWord)


async def show_list(ask: PageAsk) -> PageReply:
    """The groups that the visitor may see."""
    return await ask.show("groups.html", groups=await ask.api.groups.groups())


async def show(ask: PageAsk) -> PageReply:
    """One group with its members, and its partitions page by page."""
    name = ask.parameters["group"]
    view = await ask.api.groups.group(name)
    found = await ask.api.groups.partitions(name, _query(ask))
    return await ask.show(
        "group.html",
        group=view,
        found=found,
        states=_STATES,
        may_update=await ask.may_with(UPDATE, name),
    )


def _query(ask: PageAsk) -> GroupPartitionQuery:
    asked = {name: ask.query.get(name) for name in ("state", "member", "after")}
    try:
        return msgspec.convert({**asked, "limit": CONSOLE_LIST_ITEMS}, GroupPartitionQuery)
    except msgspec.ValidationError as error:
        known = ", ".join(_STATES)
        raise InvalidArgument(
            f"Expected one of {known} for state, but found {asked['state']!r}", field="state"
        ) from error


# --- what can be done -------------------------------------------------------------------------


async def move(ask: PageAsk) -> PageReply:
    """A partition goes to another member."""
    token, to = ask.wanted("token"), ask.wanted("to")
    await ask.api.groups.move(ask.parameters["group"], PartitionMove(token, to))
    return _back(ask, f"{token} is to go to {to}; its owner hands it over.")


async def park(ask: PageAsk) -> PageReply:
    """A partition stops until it is resumed."""
    token = ask.wanted("token")
    await ask.api.groups.park(ask.parameters["group"], PartitionToken(token))
    return _back(ask, f"{token} is to be parked; its owner stops it.")


async def resume(ask: PageAsk) -> PageReply:
    """A partition that is parked runs again."""
    token = ask.wanted("token")
    await ask.api.groups.resume(ask.parameters["group"], PartitionToken(token))
    return _back(ask, f"{token} is to run again.")


def _back(ask: PageAsk, notice: str) -> PageReply:
    return ask.go(f"{_HOME}/{quote(ask.parameters['group'], safe='')}", notice)


PAGES = (
    ConsolePage(_HOME, "Partition groups", show_list, READ, group="Node"),
    ConsolePage(_ONE, "Partition group", show, READ),
    ConsolePage(f"{_ONE}/move", "Move", move, UPDATE, method="POST"),
    ConsolePage(f"{_ONE}/park", "Park", park, UPDATE, method="POST"),
    ConsolePage(f"{_ONE}/resume", "Resume", resume, UPDATE, method="POST"),
)
