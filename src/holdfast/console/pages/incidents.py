"""Incidents: grouped by what caused them, as a list, and one of them."""

from datetime import datetime
from typing import Any, NamedTuple
from urllib.parse import urlencode

from holdfast.console.bulk import BulkOffer, offers
from holdfast.console.forms import chosen
from holdfast.console.lists import ListedPage, TableList, between, listed
from holdfast.console.page import ConsolePage, PageAsk, PageReply
from holdfast.engine.batch.values import BatchOperationType
from holdfast.engine.identity.values import Permission, ResourceType
from holdfast.engine.incidents.values import IncidentReason, IncidentState
from holdfast.errors import NotFound
from holdfast.gateway.access.needs import READ_JOB, UPDATE_INSTANCE, UPDATE_JOB, one
from holdfast.gateway.rest.tables import Row, row_of
from holdfast.gateway.tasks.causes import IncidentGroup, IncidentGroupQuery
from holdfast.gateway.tasks.shapes import (
    IncidentQuery,
    IncidentView,
)
from holdfast.limits import CONSOLE_LIST_ITEMS

_UPDATE_TASK = one(ResourceType.TASK, Permission.UPDATE)
_HOME = "/console/incidents"
_T = BatchOperationType


# --- by cause ---------------------------------------------------------------------------------


class CauseRow(NamedTuple):
    """A cause, where its incidents are listed, and what can be done with all of them."""

    group: IncidentGroup
    path: str
    offers: list[BulkOffer]


async def show_groups(ask: PageAsk) -> PageReply:
    """Why work is stuck, the most frequent cause first."""
    query = IncidentGroupQuery(ask.query.get("type"), ask.query.get("process"))
    found = await ask.api.incidents.groups(query)
    rows = [
        CauseRow(each, _group_path(each), await _group_offers(ask, each))
        for each in found.items[:CONSOLE_LIST_ITEMS]
    ]
    return await ask.show("incidents.html", found=found, rows=rows)


def _group_path(group: IncidentGroup) -> str:
    return _list_path(
        process=group.process_id, element=group.element_id, type=group.type, reason=group.reason,
        cause=group.cause,
    )  # fmt: skip


def _list_path(**fields: str | None) -> str:
    """Where the incidents are listed that have these."""
    kept = {name: value for name, value in fields.items() if value}
    return f"{_HOME}/list?{urlencode(kept)}"


async def _group_offers(ask: PageAsk, group: IncidentGroup) -> list[BulkOffer]:
    """Incidents of a process are resolved, tasks are retried or discarded."""
    pattern = {"$like": like_of(group.cause)} if group.cause else None
    if group.process_id is None:
        filter_ = {"type": group.type, "error": pattern}
        return await offers(ask, filter_, _T.RETRY_TASK, _T.DISCARD_TASK)
    filter_ = {
        "processId": group.process_id, "elementId": group.element_id, "reason": group.reason,
        "error": pattern,
    }  # fmt: skip
    return await offers(ask, filter_, _T.RESOLVE_INCIDENT)


def like_of(cause: str) -> str:
    """A pattern of the tables that fits the errors of a cause: # stands for a number in it."""
    plain = "".join(f"\\{each}" if each in "\\*?" else each for each in cause)
    return f"*{plain.replace('#', '*')}*"


# --- the list ---------------------------------------------------------------------------------


class IncidentRow(NamedTuple):
    """An incident in the list."""

    key: str
    state: str
    reason: str
    process_id: str | None
    element_id: str | None
    type: str | None
    instance: str | None
    task: str | None
    created: datetime | None
    ended: datetime | None
    error: str | None


_SORTABLE = {
    "key": "incidentKey", "reason": "reason", "process": "processId", "element": "elementId",
    "type": "type", "created": "created", "ended": "ended",
}  # fmt: skip


def _of_view(view: IncidentView) -> IncidentRow:
    return IncidentRow(
        view.incident_key, view.state, view.reason, view.process_id, view.element_id, view.type,
        view.process_instance_key, view.task_key, view.created, view.ended, view.error,
    )  # fmt: skip


def _of_row(row: Row) -> IncidentRow:
    instance, task = row["process_instance_key"], row["job_key"]
    return IncidentRow(
        str(row["incident_key"]), row["state"], row["reason"], row["process_id"],
        row["element_id"], row["type"], str(instance) if instance else None,
        str(task) if task else None, row["created"], row["ended"], row["error"],
    )  # fmt: skip


def _filter(ask: PageAsk) -> dict[str, Any]:
    wanted: dict[str, Any] = {"state": ask.query.get("state", IncidentState.OPEN)}
    named = {"process": "processId", "element": "elementId", "type": "type", "reason": "reason"}
    wanted |= {field: ask.query[name] for name, field in named.items() if name in ask.query}
    if "cause" in ask.query:
        wanted["error"] = {"$like": like_of(ask.query["cause"])}
    elif "error" in ask.query:
        wanted["error"] = {"$like": f"*{ask.query['error']}*"}
    if created := between(ask, "since", "until"):
        wanted["created"] = created
    return wanted


async def show_list(ask: PageAsk) -> PageReply:
    """Incidents that are open, or ended: those of a cause, of a process, or all."""
    state = chosen(ask, "state", IncidentState) or IncidentState.OPEN
    reason = chosen(ask, "reason", IncidentReason)

    async def from_state() -> ListedPage[IncidentRow]:
        query = IncidentQuery(
            ask.query.get("type"), CONSOLE_LIST_ITEMS, ask.query.get("after"),
            ask.query.get("process"), state=state, element_id=ask.query.get("element"),
            reason=reason, cause=ask.query.get("cause"),
        )  # fmt: skip
        page = await ask.api.incidents.page(query)
        rows = [_of_view(each) for each in page.items]
        return ListedPage(rows, page.after, ended_since=page.ended_since)

    filter_ = _filter(ask)
    tables = TableList("incidents", filter_, _SORTABLE, "created", _of_row)
    found = await listed(ask, tables, from_state)
    is_open = state is IncidentState.OPEN
    asked = {name: value for name, value in filter_.items() if name != "state"}
    return await ask.show(
        "incident_list.html",
        found=found,
        states=list(IncidentState),
        reasons=list(IncidentReason),
        offers=await offers(ask, asked, _T.RESOLVE_INCIDENT) if is_open else [],
    )


# --- one of them ------------------------------------------------------------------------------


async def show_one(ask: PageAsk) -> PageReply:
    """An incident: what it stops, why, and what can be done."""
    key = ask.parameters["key"]
    view = await _find(ask, key)
    is_open = view.state is IncidentState.OPEN
    return await ask.show(
        "incident.html",
        incident=view,
        alike=_list_path(process=view.process_id, element=view.element_id, type=view.type),
        can_resolve=is_open and await _may(ask, view),
        can_discard=is_open
        and view.process_id is None
        and await ask.may_with(_UPDATE_TASK, view.type),
    )


async def _find(ask: PageAsk, key: str) -> IncidentView:
    try:
        return await ask.api.incidents.get(key)
    except NotFound:
        row = await row_of(ask.api.tables, "incidents", ask.api.look.key(key, "incident"))
        if row is None:
            raise
        found = _of_row(row)
        assert found.created is not None, "an incident was created at some time"
        return IncidentView(
            found.key, found.task, found.type or "", IncidentReason(found.reason),
            found.error or "", found.created, found.instance, found.process_id, found.element_id,
            state=IncidentState(found.state), ended=found.ended,
        )  # fmt: skip


async def _may(ask: PageAsk, view: IncidentView) -> bool:
    """A task by its type, what stops a process by that."""
    if view.process_id is not None:
        return await ask.may_with(UPDATE_INSTANCE, view.process_id)
    return await ask.may_with(_UPDATE_TASK, view.type)


async def resolve(ask: PageAsk) -> PageReply:
    """Tries again what it stopped."""
    key, retries = ask.parameters["key"], ask.form.get("retries", "")
    await ask.api.incidents.resolve(key, int(retries) if retries.isdecimal() else 0)
    return ask.go(f"{_HOME}/{key}", "The incident was resolved; its work is tried again.")


async def discard(ask: PageAsk) -> PageReply:
    """Gives up its task."""
    key = ask.parameters["key"]
    await ask.api.incidents.discard(key)
    return ask.go(f"{_HOME}/{key}", "The incident and its task were discarded.")


_ONE = f"{_HOME}/{{key}}"
PAGES = (
    ConsolePage(_HOME, "Incidents", show_groups, READ_JOB, "Work"),
    ConsolePage(f"{_HOME}/list", "List of incidents", show_list, READ_JOB),
    ConsolePage(_ONE, "Incident", show_one, READ_JOB),
    ConsolePage(f"{_ONE}/resolve", "Resolve", resolve, UPDATE_JOB, method="POST"),
    ConsolePage(f"{_ONE}/discard", "Discard", discard, UPDATE_JOB, method="POST"),
)
