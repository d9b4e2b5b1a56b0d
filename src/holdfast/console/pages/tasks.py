"""Tasks and jobs: the list, and one of them with its payload, its error and what can be done."""

from datetime import datetime
from typing import Any, NamedTuple

import msgspec

from holdfast.console.bulk import offers
from holdfast.console.life import life_of
from holdfast.console.lists import ListedPage, TableList, between, listed
from holdfast.console.page import ConsolePage, PageAsk, PageReply
from holdfast.engine.batch.values import BatchOperationType
from holdfast.engine.identity.values import Permission, ResourceType
from holdfast.engine.jobs.values import FINAL_STATES, JobState
from holdfast.errors import InvalidArgument, NotFound
from holdfast.gateway.access.needs import READ_JOB, UPDATE_INSTANCE, UPDATE_JOB, one
from holdfast.gateway.rest.tables import Row, row_of
from holdfast.gateway.shapes import ListScope
from holdfast.gateway.tasks.shapes import IncidentQuery, TaskQuery, TaskView
from holdfast.limits import CONSOLE_LIST_ITEMS

_READ_LOG = one(ResourceType.JOURNAL, Permission.READ)
_UPDATE_TASK = one(ResourceType.TASK, Permission.UPDATE)
_OPEN = "OPEN"


class TaskRow(NamedTuple):
    """A job in the list."""

    key: str
    type: str
    state: str
    created: datetime | None
    due: datetime | None
    ended: datetime | None
    failures: int | None
    retries: int | None
    worker: str | None
    error: str | None
    instance: str | None = None


_SORTABLE = {
    "key": "jobKey", "type": "type", "state": "state", "created": "created", "due": "due",
    "ended": "ended", "failures": "failures",
}  # fmt: skip


def _of_view(view: TaskView) -> TaskRow:
    return TaskRow(
        view.task_key, view.type, view.state, view.created, view.due, view.finished, view.failures,
        view.retries, view.worker, view.error,
    )  # fmt: skip


def _of_row(row: Row) -> TaskRow:
    instance = row["process_instance_key"]
    return TaskRow(
        str(row["job_key"]), row["type"], row["state"], row["created"], row["due"], row["ended"],
        row["failures"], row["retries"], row["worker"], row["error"],
        str(instance) if instance else None,
    )  # fmt: skip


def _filter(ask: PageAsk) -> dict[str, Any]:
    wanted: dict[str, Any] = {}
    if "type" in ask.query:
        wanted["type"] = ask.query["type"]
    state = ask.query.get("state")
    if state == _OPEN:
        wanted["state"] = {"$notIn": sorted(FINAL_STATES)}
    elif state is not None:
        wanted["state"] = state
    if "error" in ask.query:
        wanted["error"] = {"$like": f"*{ask.query['error']}*"}
    if created := between(ask, "since", "until"):
        wanted["created"] = created
    return wanted


async def show_list(ask: PageAsk) -> PageReply:
    """Jobs that wait, run, are stuck or ended."""
    wanted = ask.query.get("state")
    if wanted not in (None, _OPEN, *JobState):
        raise InvalidArgument(f"There is no state {wanted!r} of a task", state=wanted)

    async def from_state() -> ListedPage[TaskRow]:
        if wanted == JobState.INCIDENT:
            return await _stuck(ask)
        state = None if wanted in (None, _OPEN) else JobState(wanted)
        scope = ListScope.OPEN if wanted == _OPEN else ListScope.ALL
        query = TaskQuery(
            ask.query.get("type"), state, CONSOLE_LIST_ITEMS, ask.query.get("after"), scope
        )
        page = await ask.api.tasks.page(query)
        rows = [_of_view(each) for each in page.items]
        return ListedPage(rows, page.after, ended_since=page.ended_since)

    filter_ = _filter(ask)
    tables = TableList("jobs", filter_, _SORTABLE, "created", _of_row)
    found = await listed(ask, tables, from_state)
    stuck = (BatchOperationType.RETRY_TASK, BatchOperationType.DISCARD_TASK)
    may_be_stuck = wanted in (None, _OPEN, JobState.INCIDENT)
    return await ask.show(
        "tasks.html",
        found=found,
        states=[_OPEN, *JobState],
        offers=await offers(ask, filter_, *stuck) if may_be_stuck else [],
    )


async def _stuck(ask: PageAsk) -> ListedPage[TaskRow]:
    """Jobs with an incident, by the incidents: there are fewer of them than of jobs."""
    query = IncidentQuery(ask.query.get("type"), CONSOLE_LIST_ITEMS, ask.query.get("after"))
    page = await ask.api.incidents.page(query)
    rows = [
        TaskRow(
            each.task_key, each.type, JobState.INCIDENT, each.created, None, None, None, None, None,
            each.error, each.process_instance_key,
        )
        for each in page.items
        if each.task_key is not None
    ]  # fmt: skip
    return ListedPage(rows, page.after)


# --- one of them ------------------------------------------------------------------------------


async def show_one(ask: PageAsk) -> PageReply:
    """A job: as it is now, or as the log or the tables tell of one that ended."""
    key = ask.parameters["key"]
    number = ask.api.look.key(key, "task")
    row: Row | None = None
    try:
        view = await ask.api.tasks.details(key)
    except NotFound:
        row = await row_of(ask.api.tables, "jobs", number)
        if row is None:
            raise
        view = _view_of(row)
    instance = await _instance_of(ask, number, row)
    is_open = view.state not in FINAL_STATES
    return await ask.show(
        "task.html",
        task=view,
        instance=instance,
        has_payload=view.payload is not msgspec.UNSET,
        has_result=view.result is not msgspec.UNSET,
        can_cancel=is_open and instance is None and await ask.may_with(_UPDATE_TASK, view.type),
        can_update=is_open and await _may_update(ask, view, instance),
        can_read_log=await ask.may(_READ_LOG),
    )


async def _may_update(ask: PageAsk, view: TaskView, instance: str | None) -> bool:
    """A task by its type, the job of a process by that."""
    if instance is None:
        return await ask.may_with(_UPDATE_TASK, view.type)
    found = await ask.api.look.instance(int(instance))
    return found is not None and await ask.may_with(UPDATE_INSTANCE, found.process_id)


def _view_of(row: Row) -> TaskView:
    return TaskView(
        str(row["job_key"]), row["type"], JobState(row["state"]), error=row["error"],
        priority=row["priority"], retries=row["retries"], failures=row["failures"],
        created=row["created"], due=row["due"], finished=row["ended"], worker=row["worker"],
    )  # fmt: skip


async def _instance_of(ask: PageAsk, key: int, row: Row | None) -> str | None:
    """The process instance that a job is done for; None if it is a task."""
    try:
        found = (await ask.api.look.job(str(key))).job.submitted
    except NotFound:
        row = row or await row_of(ask.api.tables, "jobs", key)
        number = row["process_instance_key"] if row else None
    else:
        number = found.instance_key
    return str(number) if number else None


async def show_life(ask: PageAsk) -> PageReply:
    """What happened to it, from the log."""
    key = ask.api.look.key(ask.parameters["key"], "task")
    return await life_part(ask, key, f"/console/tasks/{key}/life")


async def life_part(ask: PageAsk, key: int, path: str) -> PageReply:
    """A piece of a time line, for a page about a key."""
    created = datetime.fromisoformat(ask.query["since"]) if "since" in ask.query else None
    position = int(ask.query["position"]) if ask.query.get("position", "").isdecimal() else None
    keys = [int(each) for each in ask.query.get("keys", "").split(",") if each.isdecimal()]
    piece = await life_of(ask.api, key, created, position, keys)
    return await ask.part("life.html", "life", piece=piece, more=path, subject=key)


async def cancel(ask: PageAsk) -> PageReply:
    """Gives up a task."""
    key = ask.parameters["key"]
    await ask.api.tasks.cancel(key)
    return ask.go(f"/console/tasks/{key}", f"Task {key} was canceled.")


async def update_retries(ask: PageAsk) -> PageReply:
    """Another number of retries."""
    key, retries = ask.parameters["key"], _whole(ask, "retries")
    await ask.api.jobs.update_retries(key, retries)
    return ask.go(f"/console/tasks/{key}", f"Job {key} has {retries} retries left.")


async def resolve(ask: PageAsk) -> PageReply:
    """Tries again what an incident stopped."""
    key = ask.parameters["key"]
    view = await ask.api.tasks.details(key)
    if view.incident_key is None:
        raise InvalidArgument(f"Expected task {key} to have an incident, but it has none")
    retries = _whole(ask, "retries") if ask.form.get("retries") else 0
    await ask.api.incidents.resolve(view.incident_key, retries)
    return ask.go(f"/console/tasks/{key}", f"Task {key} is tried again.")


async def discard(ask: PageAsk) -> PageReply:
    """Gives up a task that waits for a person."""
    key = ask.parameters["key"]
    view = await ask.api.tasks.details(key)
    if view.incident_key is None:
        raise InvalidArgument(f"Expected task {key} to have an incident, but it has none")
    await ask.api.incidents.discard(view.incident_key)
    return ask.go(f"/console/tasks/{key}", f"Task {key} was discarded.")


def _whole(ask: PageAsk, name: str) -> int:
    text = ask.wanted(name)
    if not text.isdecimal():
        raise InvalidArgument(f"Expected a whole number for {name}, but found {text!r}", field=name)
    return int(text)


_ONE = "/console/tasks/{key}"
PAGES = (
    ConsolePage("/console/tasks", "Tasks", show_list, READ_JOB, "Work"),
    ConsolePage(_ONE, "Task", show_one, READ_JOB),
    ConsolePage(f"{_ONE}/life", "Life of a task", show_life, _READ_LOG),
    ConsolePage(f"{_ONE}/cancel", "Cancel a task", cancel, _UPDATE_TASK, method="POST"),
    ConsolePage(f"{_ONE}/retries", "Retries", update_retries, UPDATE_JOB, method="POST"),
    ConsolePage(f"{_ONE}/retry", "Retry", resolve, UPDATE_JOB, method="POST"),
    ConsolePage(f"{_ONE}/discard", "Discard", discard, UPDATE_JOB, method="POST"),
)
