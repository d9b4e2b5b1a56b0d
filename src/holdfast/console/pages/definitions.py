"""Processes: what is deployed, in which versions, and each of them drawn."""

from typing import Any

from holdfast.console.drawing import DEFINITIONS, draw_version
from holdfast.console.forms import raw_object
from holdfast.console.page import ConsolePage, PageAsk, PageReply
from holdfast.engine.identity.values import Permission, ResourceType
from holdfast.errors import NotFound
from holdfast.gateway.access.needs import READ_DEFINITION, READ_INSTANCE, of_process, one
from holdfast.gateway.processes.shapes import (
    NewProcessInstance,
    ProcessDefinition,
    ProcessDefinitionQuery,
    Resource,
)
from holdfast.limits import CONSOLE_LIST_ITEMS

_DEPLOY = one(ResourceType.RESOURCE, Permission.CREATE)
_START = of_process(Permission.CREATE_PROCESS_INSTANCE)
_HOME = "/console/definitions"
_ONE = f"{_HOME}/{{key}}"


async def show_list(ask: PageAsk) -> PageReply:
    """The latest versions, or all of one process."""
    process = ask.query.get("process")
    query = ProcessDefinitionQuery(process, latest="all" not in ask.query and process is None)
    found = await ask.api.processes.find(query)
    keys = [each.process_definition_key for each in found]
    after = ask.query.get("after")
    start = keys.index(after) + 1 if after in keys else 0
    items = found[start : start + CONSOLE_LIST_ITEMS]
    has_more = start + len(items) < len(found)
    return await ask.show(
        "definitions.html",
        items=items,
        total=len(found),
        after=items[-1].process_definition_key if has_more else None,
        may_deploy=await ask.may(_DEPLOY),
    )


async def show(ask: PageAsk) -> PageReply:
    """One version with its drawing, and the others of its process."""
    key = ask.parameters["key"]
    found = await ask.api.look.readable_definition(ask.api.look.key(key, "process definition"))
    if found is None:
        raise NotFound(f"There is no process definition with key {key}", key=key)
    versions = await ask.api.processes.find(ProcessDefinitionQuery(found.process_id))
    own = next(each for each in versions if each.process_definition_key == key)
    definition = await DEFINITIONS.get(ask.api, key, found.process_id)
    source = await ask.api.processes.source(key)
    can_see_instances = await ask.may_with(READ_INSTANCE, found.process_id)
    counts = await ask.api.processes.elements(key) if can_see_instances else None
    return await ask.show(
        "definition.html",
        definition=own,
        versions=_around(versions, own),
        total=len(versions),
        version_tag=found.version_tag,
        drawing=draw_version(definition, counts) if definition is not None else None,
        counts=counts,
        source=source.content,
        can_start=await ask.may_with(_START, found.process_id),
        can_see_instances=can_see_instances,
    )


def _around(versions: list[ProcessDefinition], own: ProcessDefinition) -> list[ProcessDefinition]:
    """The newest versions, and the one that is shown."""
    newest = sorted(versions, key=lambda each: -each.version)[:CONSOLE_LIST_ITEMS]
    return newest if own in newest else [*newest, own]


async def start(ask: PageAsk) -> PageReply:
    """Starts an instance of this version."""
    key = ask.parameters["key"]
    found = await ask.api.look.readable_definition(ask.api.look.key(key, "process definition"))
    if found is None:
        raise NotFound(f"There is no process definition with key {key}", key=key)
    new = NewProcessInstance(found.process_id, found.version, raw_object(ask, "variables"))
    [receipt] = await ask.api.instances.start([new])
    return ask.go(f"/console/instances/{receipt.process_instance_key}", "The instance is started.")


async def deploy(ask: PageAsk) -> PageReply:
    """Deploys a BPMN file."""
    resource = Resource(ask.form.get("name", "").strip() or "console.bpmn", ask.wanted("content"))
    found = await ask.api.processes.deploy([resource])
    told = "; ".join(_told(each) for each in found)
    first: Any = found[0].process_definition_key
    return ask.go(f"{_HOME}/{first}" if len(found) == 1 else _HOME, f"{told}.")


def _told(found: ProcessDefinition) -> str:
    what = f"Process {found.process_id} has version {found.version}"
    if not found.created:
        return f"{what} with this content already"
    ignored = f", {len(found.ignored)} parts of the file are ignored" if found.ignored else ""
    return f"{what} now{ignored}"


PAGES = (
    ConsolePage(_HOME, "Processes", show_list, READ_DEFINITION, "Work"),
    ConsolePage(_ONE, "Process", show, READ_DEFINITION),
    ConsolePage(f"{_HOME}/deploy", "Deploy", deploy, _DEPLOY, method="POST"),
    ConsolePage(f"{_ONE}/start", "Start", start, _START, method="POST"),
)
