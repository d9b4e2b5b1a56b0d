"""Process instances: the list."""

from datetime import datetime
from typing import Any, NamedTuple

from holdfast.console.bulk import offers
from holdfast.console.lists import ListedPage, TableList, between, listed
from holdfast.console.page import ConsolePage, PageAsk, PageReply
from holdfast.engine.batch.values import BatchOperationType
from holdfast.errors import InvalidArgument
from holdfast.gateway.access.needs import READ_INSTANCE
from holdfast.gateway.processes.shapes import (
    InstanceState,
    ProcessInstanceQuery,
    ProcessInstanceView,
)
from holdfast.gateway.rest.tables import Row
from holdfast.gateway.shapes import ListScope
from holdfast.limits import CONSOLE_LIST_ITEMS

_T = BatchOperationType
_STUCK = "INCIDENT"
_STATES = (InstanceState.ACTIVE, InstanceState.COMPLETED, InstanceState.CANCELED)


_NOT_DELETED = {"$neq": "DELETED"}


class InstanceRow(NamedTuple):
    """An instance in the list."""

    key: str
    process_id: str
    version: int
    state: str
    incidents: int
    started: datetime | None
    ended: datetime | None


_SORTABLE = {
    "key": "processInstanceKey", "process": "processId", "version": "version", "state": "state",
    "incidents": "incidents", "started": "started", "ended": "ended",
}  # fmt: skip


def _of_view(view: ProcessInstanceView) -> InstanceRow:
    return InstanceRow(
        view.process_instance_key, view.process_id, view.version, view.state, view.incidents,
        view.created, view.finished,
    )  # fmt: skip


def _of_row(row: Row) -> InstanceRow:
    return InstanceRow(
        str(row["process_instance_key"]), row["process_id"], row["version"], row["state"],
        max(row["incidents"] or 0, 0), row["started"], row["ended"],
    )  # fmt: skip


def _version(ask: PageAsk) -> int | None:
    text = ask.query.get("version")
    if text is not None and not text.isdecimal():
        raise InvalidArgument(f"Expected a whole number for the version, but found {text!r}")
    return None if text is None else int(text)


def _filter(ask: PageAsk) -> dict[str, Any]:
    wanted: dict[str, Any] = {"state": _NOT_DELETED}
    if "process" in ask.query:
        wanted["processId"] = ask.query["process"]
    if (version := _version(ask)) is not None:
        wanted["version"] = version
    state = ask.query.get("state")
    if state == _STUCK:
        wanted["incidents"] = {"$gt": 0}
    elif state is not None:
        wanted["state"] = state
    if started := between(ask, "since", "until"):
        wanted["started"] = started
    return wanted


async def show_list(ask: PageAsk) -> PageReply:
    """Instances that run, are stuck or ended."""
    wanted = ask.query.get("state")
    if wanted not in (None, _STUCK, *InstanceState):
        raise InvalidArgument(f"There is no state {wanted!r} of an instance", state=wanted)

    async def from_state() -> ListedPage[InstanceRow]:
        is_stuck = wanted == _STUCK
        state = None if wanted is None or is_stuck else InstanceState(wanted)
        query = ProcessInstanceQuery(
            ask.query.get("process"), _version(ask), is_stuck, CONSOLE_LIST_ITEMS,
            ask.query.get("after"), ListScope.ALL, state,
        )  # fmt: skip
        page = await ask.api.instances.page(query)
        rows = [_of_view(each) for each in page.items]
        return ListedPage(rows, page.after, ended_since=page.ended_since)

    filter_ = _filter(ask)
    tables = TableList("process_instances", filter_, _SORTABLE, "started", _of_row)
    found = await listed(ask, tables, from_state)
    return await ask.show(
        "instances.html",
        found=found,
        states=[_STUCK, *_STATES],
        offers=await offers(ask, _chosen(filter_), *_operations(wanted)),
    )


def _chosen(filter_: dict[str, Any]) -> dict[str, Any]:
    """What the visitor asked for: a batch operation leaves out by itself what it cannot do."""
    return {name: value for name, value in filter_.items() if value != _NOT_DELETED}


def _operations(state: str | None) -> tuple[BatchOperationType, ...]:
    """What can be done with instances in a state."""
    if state in (InstanceState.COMPLETED, InstanceState.CANCELED):
        return (_T.DELETE_PROCESS_INSTANCE,)
    return (
        _T.CANCEL_PROCESS_INSTANCE, _T.MIGRATE_PROCESS_INSTANCE, _T.MODIFY_PROCESS_INSTANCE,
    )  # fmt: skip


PAGES = (ConsolePage("/console/instances", "Instances", show_list, READ_INSTANCE, "Work"),)
