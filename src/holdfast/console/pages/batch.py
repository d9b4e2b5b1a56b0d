"""One batch operation: how far it is, why items failed, its items, and what can be done with it."""

from functools import partial
from typing import Any

from holdfast.console.forms import chosen, whole
from holdfast.console.live import Produce, event
from holdfast.console.page import ConsolePage, PageAsk, PageReply, PageStream
from holdfast.console.pages.batches import READ
from holdfast.console.rendering import Templates
from holdfast.engine.batch.values import BatchOperationState
from holdfast.engine.identity.values import Permission, ResourceType
from holdfast.errors import Forbidden, Unavailable
from holdfast.gateway.access.needs import of_batch, one
from holdfast.gateway.as_of import noted_as_of
from holdfast.gateway.batch.shapes import (
    BatchChange,
    BatchFailures,
    BatchItemFilter,
    BatchItemPage,
    BatchItemQuery,
    BatchItemState,
    BatchOperationView,
    BatchPageQuery,
    BatchRetry,
)
from holdfast.gateway.rest.common import RestApi
from holdfast.limits import CONSOLE_LIST_ITEMS, CONSOLE_TICK_MS

_UPDATE = one(ResourceType.BATCH, Permission.UPDATE)
_TEMPLATE = "batch.html"
_S = BatchOperationState
RUNNING = (_S.CREATED, _S.ACTIVE, _S.SUSPENDED)
_ONE = "/console/batches/{key}"
_TOLD_AGAIN = 3  # ticks for which a new state is told: a slow tab may miss the first


def progress_of(view: BatchOperationView) -> dict[str, Any]:
    """What the live part of the page shows."""
    done = (
        view.operations_completed_count + view.operations_failed_count
        + view.operations_skipped_count + view.operations_canceled_count
    )  # fmt: skip
    return {"operation": view, "done": done, "is_running": view.state in RUNNING}


async def show(ask: PageAsk) -> PageReply:
    """The operation as of now; the live feed goes on from there."""
    key = ask.parameters["key"]
    view = await ask.api.batches.get(key)
    shown: dict[str, Any] = {"items": None, "failures": None, "items_problem": None}
    try:
        if view.operations_failed_count:
            shown["failures"] = await ask.api.batches.failures(key)
        wanted = BatchItemFilter(key, state=chosen(ask, "state", BatchItemState))
        page = BatchPageQuery(CONSOLE_LIST_ITEMS, ask.query.get("after"))
        shown["items"] = await ask.api.batches.items(BatchItemQuery(wanted, page))
    except (Forbidden, Unavailable) as error:
        shown["items_problem"] = error.message
    items: BatchItemPage | None = shown["items"]
    is_full = items is not None and len(items.items) == CONSOLE_LIST_ITEMS
    return await ask.show(
        _TEMPLATE,
        **progress_of(view),
        **shown,
        after=items.page.end_cursor if items is not None and is_full else None,
        as_of=noted_as_of(),
        item_states=list(BatchItemState),
        item_kind=_kind(view),
        may_update=await ask.may(_UPDATE),
        may_retry=await ask.may(of_batch(view.batch_operation_type)),
    )


def _kind(view: BatchOperationView) -> str:
    """Which pages the items have."""
    name = view.batch_operation_type
    return "tasks" if "TASK" in name else "incidents" if name == "RESOLVE_INCIDENT" else "instances"


async def live(ask: PageAsk) -> PageStream:
    """The progress, read once a second for all tabs that show this operation."""
    key = ask.parameters["key"]
    view = await ask.api.batches.get(key)
    make = partial(_producer, ask.api, ask.templates, key, view.state)
    feed = ask.feeds.feed(f"batch {key}", make, CONSOLE_TICK_MS, is_kept=False)
    return PageStream(feed.listen())


def _producer(api: RestApi, templates: Templates, key: str, state: BatchOperationState) -> Produce:
    last, times_left = b"", 0

    async def produce() -> bytes | None:
        nonlocal state, last, times_left
        view = await api.batches.get(key)
        made = event("progress", templates.live(_TEMPLATE, "progress", progress_of(view)))
        if view.state is not state:
            state, times_left = view.state, _TOLD_AGAIN
        if times_left:
            times_left -= 1
            return made + event("state", view.state)
        if made == last:
            return None
        last = made
        return made

    return produce


# --- what can be done -------------------------------------------------------------------------


async def suspend(ask: PageAsk) -> PageReply:
    """Stops it for now."""
    await ask.api.batches.suspend(ask.parameters["key"])
    return _back(ask, "The operation is suspended.")


async def resume(ask: PageAsk) -> PageReply:
    """Lets it go on."""
    await ask.api.batches.resume(ask.parameters["key"])
    return _back(ask, "The operation goes on.")


async def cancel(ask: PageAsk) -> PageReply:
    """Gives up what is not done."""
    await ask.api.batches.cancel(ask.parameters["key"])
    return _back(ask, "The operation is canceled. What was done stays done.")


async def change(ask: PageAsk) -> PageReply:
    """Another throttle or priority."""
    wanted = BatchChange(whole(ask, "throttle"), whole(ask, "priority"))
    await ask.api.batches.change(ask.parameters["key"], wanted)
    return _back(ask, "The throttle and the priority are changed.")


async def retry(ask: PageAsk) -> PageReply:
    """What failed is tried again by a new operation."""
    failed = BatchFailures.PARTITIONS if ask.form.get("failed") == "PARTITIONS" else None
    asked = BatchRetry(failed or BatchFailures.ITEMS)
    receipt = await ask.api.batches.retry(ask.parameters["key"], asked)
    return ask.go(
        f"/console/batches/{receipt.batch_operation_key}",
        f"What failed in {ask.parameters['key']} is tried again by this operation.",
    )


def _back(ask: PageAsk, notice: str) -> PageReply:
    return ask.go(f"/console/batches/{ask.parameters['key']}", notice)


PAGES = (
    ConsolePage(_ONE, "Batch operation", show, READ),
    ConsolePage(f"{_ONE}/live", "Progress of a batch operation", live, READ),
    ConsolePage(f"{_ONE}/suspend", "Suspend", suspend, _UPDATE, method="POST"),
    ConsolePage(f"{_ONE}/resume", "Resume", resume, _UPDATE, method="POST"),
    ConsolePage(f"{_ONE}/cancel", "Cancel", cancel, _UPDATE, method="POST"),
    ConsolePage(f"{_ONE}/change", "Change", change, _UPDATE, method="POST"),
    ConsolePage(f"{_ONE}/retry", "Retry", retry, of_batch(), method="POST"),
)
