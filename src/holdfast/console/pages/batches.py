"""Batch operations: those that run and those that ended."""

from holdfast.console.forms import chosen
from holdfast.console.page import ConsolePage, PageAsk, PageReply
from holdfast.engine.batch.values import BatchOperationState, BatchOperationType
from holdfast.engine.identity.values import Permission, ResourceType
from holdfast.gateway.access.needs import of_batch, one
from holdfast.gateway.batch.shapes import (
    BatchOperationFilter,
    BatchOperationQuery,
    BatchPageQuery,
)
from holdfast.limits import CONSOLE_LIST_ITEMS

READ = one(ResourceType.BATCH, Permission.READ)


async def show(ask: PageAsk) -> PageReply:
    """The list, what runs first."""
    wanted = BatchOperationFilter(
        chosen(ask, "state", BatchOperationState), chosen(ask, "type", BatchOperationType)
    )
    page = BatchPageQuery(CONSOLE_LIST_ITEMS, ask.query.get("after"))
    found = await ask.api.batches.page(BatchOperationQuery(wanted, page))
    has_more = len(found.items) == CONSOLE_LIST_ITEMS
    return await ask.show(
        "batches.html",
        found=found,
        after=found.page.end_cursor if has_more else None,
        states=list(BatchOperationState),
        types=list(BatchOperationType),
        may_create=await ask.may(of_batch()),
    )


PAGES = (ConsolePage("/console/batches", "Batch operations", show, READ, group="Work"),)
