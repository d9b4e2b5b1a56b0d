"""Distributions: commands that have not reached all partitions, why not, and what can be done."""

from holdfast.console.page import ConsolePage, PageAsk, PageReply
from holdfast.engine.identity.values import Permission, ResourceType
from holdfast.errors import InvalidArgument
from holdfast.gateway.access.needs import one
from holdfast.gateway.distribution.shapes import (
    DistributionCancellation,
    DistributionQuery,
    DistributionSkip,
)
from holdfast.limits import CONSOLE_LIST_ITEMS

_READ = one(ResourceType.DISTRIBUTION, Permission.READ)
_UPDATE = one(ResourceType.DISTRIBUTION, Permission.UPDATE)
_HOME = "/console/distributions"
_ONE = f"{_HOME}/{{key}}"


async def show_list(ask: PageAsk) -> PageReply:
    """What is on its way, the oldest first."""
    target = ask.query.get("target")
    query = DistributionQuery(
        ask.query.get("queue"),
        None if target is None else _partition(target),
        CONSOLE_LIST_ITEMS,
        ask.query.get("after"),
    )
    found = await ask.api.distributions.page(query)
    topology = await ask.api.node.topology()
    return await ask.show(
        "distributions.html",
        found=found,
        partitions=[each.partition_id for each in topology.partitions],
        may_update=await ask.may(_UPDATE),
    )


async def show(ask: PageAsk) -> PageReply:
    """One of them, and each partition that has not acknowledged it."""
    view = await ask.api.distributions.get(ask.parameters["key"])
    may_update = await ask.may(_UPDATE)
    return await ask.show("distribution.html", distribution=view, may_update=may_update)


def _partition(text: str) -> int:
    if not (text.isascii() and text.isdecimal()):
        raise InvalidArgument(f"Expected a partition, but found {text!r}", field="partition")
    return int(text[:9])


# --- what can be done -------------------------------------------------------------------------


def _decider(ask: PageAsk) -> str:
    """Who decides: goes on the log."""
    return ask.visitor.name or "operator"


async def skip(ask: PageAsk) -> PageReply:
    """Gives it up for one partition."""
    key, partition = ask.parameters["key"], _partition(ask.wanted("partition"))
    decision = DistributionSkip(partition, _decider(ask), ask.wanted("reason"))
    await ask.api.distributions.skip(key, decision)
    return ask.go(_HOME, f"Distribution {key} is given up for partition {partition}.")


async def cancel(ask: PageAsk) -> PageReply:
    """Gives it up wherever it is pending."""
    key = ask.parameters["key"]
    decision = DistributionCancellation(_decider(ask), ask.wanted("reason"))
    await ask.api.distributions.cancel(key, decision)
    return ask.go(_HOME, f"Distribution {key} is given up wherever it was pending.")


async def resume(ask: PageAsk) -> PageReply:
    """Sends what is in flight to a partition again, at once."""
    partition = _partition(ask.wanted("partition"))
    count = await ask.api.distributions.resume(partition)
    return ask.go(_HOME, f"{count} distributions are sent to partition {partition} again.")


PAGES = (
    ConsolePage(_HOME, "Distributions", show_list, _READ, "Node"),
    ConsolePage(f"{_HOME}/resume", "Resume", resume, _UPDATE, method="POST"),
    ConsolePage(_ONE, "Distribution", show, _READ),
    ConsolePage(f"{_ONE}/skip", "Skip", skip, _UPDATE, method="POST"),
    ConsolePage(f"{_ONE}/cancel", "Cancel", cancel, _UPDATE, method="POST"),
)
