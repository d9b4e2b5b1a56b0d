"""One process instance: its drawing, tree, variables, errors and time line."""

import asyncio
from datetime import datetime
from typing import Any, NamedTuple

import msgspec

from holdfast.console.drawing import DEFINITIONS, draw_instance, flat
from holdfast.console.page import ConsolePage, PageAsk, PageReply
from holdfast.console.pages.tasks import life_part
from holdfast.engine.identity.values import Permission, ResourceType
from holdfast.errors import Forbidden, NotFound
from holdfast.gateway.access.needs import (
    READ_INSTANCE,
    UPDATE_INSTANCE,
    of_process,
    one,
)
from holdfast.gateway.processes.shapes import InstanceState, ProcessInstanceView
from holdfast.gateway.rest.common import RestApi
from holdfast.gateway.rest.tables import Row, row_of
from holdfast.gateway.tasks.shapes import IncidentQuery, IncidentView, TaskView
from holdfast.limits import CONSOLE_LIST_ITEMS

_READ_LOG = one(ResourceType.JOURNAL, Permission.READ)
_CANCEL = of_process(Permission.CANCEL_PROCESS_INSTANCE)
_MODIFY = of_process(Permission.MODIFY_PROCESS_INSTANCE)
_ERRORS_SHOWN = 20  # jobs whose last error is looked up
RUNNING = (InstanceState.ACTIVE, InstanceState.TERMINATING)


class InstanceParent(NamedTuple):
    """Who called an instance."""

    instance: str
    element: str


async def find_instance(api: RestApi, key: str) -> ProcessInstanceView:
    """As it is now, or as the tables tell of one that ended long ago."""
    try:
        return await api.instances.get(key)
    except NotFound:
        row = await row_of(api.tables, "process_instances", api.look.key(key, "process instance"))
        if row is None or row["state"] == "DELETED":
            raise
        return _view_of(row)


def _view_of(row: Row) -> ProcessInstanceView:
    parent, result, definition = (
        row[name] for name in ("parent_element_instance_key", "result", "process_definition_key")
    )
    return ProcessInstanceView(
        str(row["process_instance_key"]), row["process_id"], InstanceState(row["state"]),
        row["version"], str(definition) if definition else None, str(parent) if parent else None,
        row["started"], row["ended"],
        msgspec.Raw(result.encode()) if result else msgspec.UNSET,
    )  # fmt: skip


async def show(ask: PageAsk) -> PageReply:
    """The page of an instance."""
    view = await find_instance(ask.api, ask.parameters["key"])
    version_key = await definition_key(ask, view)
    definition = await DEFINITIONS.get(ask.api, version_key, view.process_id)
    elements = flat(view.elements)
    incidents, parent = await asyncio.gather(_incidents(ask, view), _parent(ask, view))
    jobs = await _jobs(ask, [each.job_key for _, each in elements if each.job_key])
    is_running = view.state in RUNNING
    return await ask.show(
        "instance.html",
        instance=view,
        name=definition.name if definition is not None else "",
        definition_key=version_key if definition is not None else None,
        drawing=draw_instance(definition, view) if definition is not None else None,
        elements=elements,
        incidents=incidents,
        jobs=jobs,
        parent=parent,
        variables=view.variables,
        has_variables=view.variables is not msgspec.UNSET,
        is_running=is_running,
        can_cancel=is_running and await ask.may_with(_CANCEL, view.process_id),
        can_update=is_running and await ask.may_with(UPDATE_INSTANCE, view.process_id),
        can_migrate=is_running
        and definition is not None
        and await ask.may_with(UPDATE_INSTANCE, view.process_id),
        can_modify=is_running and await ask.may_with(_MODIFY, view.process_id),
        can_resolve=await ask.may_with(UPDATE_INSTANCE, view.process_id),
        can_read_log=await ask.may(_READ_LOG),
        targets=_targets(definition),
    )


def _targets(definition: Any) -> list[tuple[str, str]]:
    """Elements that a token may be put to, with their names."""
    if definition is None:
        return []
    return [(each.id, each.name or each.id) for each in definition.elements]


async def definition_key(ask: PageAsk, view: ProcessInstanceView) -> str | None:
    """The version that an instance follows; one that ended names it by its number."""
    if view.process_definition_key:
        return view.process_definition_key
    found = await ask.api.look.version(view.process_id, view.version) if view.version else None
    return str(found.key) if found else None


async def _incidents(ask: PageAsk, view: ProcessInstanceView) -> list[IncidentView]:
    if not view.incidents and not any(each.incident_key for _, each in flat(view.elements)):
        return []
    query = IncidentQuery(limit=CONSOLE_LIST_ITEMS, process_instance_key=view.process_instance_key)
    return (await ask.api.incidents.page(query)).items


async def _jobs(ask: PageAsk, keys: list[str]) -> dict[str, TaskView]:
    """What the jobs of active elements are doing, with the errors of their last attempts."""

    async def look(key: str) -> TaskView | None:
        try:
            return await ask.api.tasks.get(key)
        except (NotFound, Forbidden):
            return None

    found = await asyncio.gather(*(look(key) for key in keys[:_ERRORS_SHOWN]))
    return {each.task_key: each for each in found if each is not None}


async def _parent(ask: PageAsk, view: ProcessInstanceView) -> InstanceParent | None:
    if not view.parent_element_key:
        return None
    element = await ask.api.look.element(int(view.parent_element_key))
    if element is not None:
        return InstanceParent(str(element.instance), element.element.element_id)
    row = await row_of(ask.api.tables, "element_instances", int(view.parent_element_key))
    if row is None:
        return None
    return InstanceParent(str(row["process_instance_key"]), row["element_id"])


async def show_life(ask: PageAsk) -> PageReply:
    """What happened to it, from the log."""
    key = ask.api.look.key(ask.parameters["key"], "process instance")
    return await life_part(ask, key, f"/console/instances/{key}/life")


def since_of(created: datetime | None) -> str:
    """From when on the log has it, for a link."""
    return created.isoformat() if created else ""


_ONE = "/console/instances/{key}"
PAGES = (
    ConsolePage(_ONE, "Instance", show, READ_INSTANCE),
    ConsolePage(f"{_ONE}/life", "Life of an instance", show_life, _READ_LOG),
)
