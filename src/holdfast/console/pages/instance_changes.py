"""What can be done with a process instance: resolve, cancel, variables, tokens, another version."""

import msgspec

from holdfast.console.drawing import DEFINITIONS, draw, draw_instance, flat
from holdfast.console.page import ConsolePage, PageAsk, PageReply
from holdfast.console.pages.instance import RUNNING, definition_key, find_instance
from holdfast.engine.identity.values import Permission
from holdfast.errors import InvalidArgument, InvalidState, NotFound
from holdfast.gateway.access.needs import UPDATE_INSTANCE, UPDATE_JOB, of_process
from holdfast.gateway.processes.shapes import (
    ActivateElement,
    MapElement,
    MoveTokens,
    NewMigration,
    NewModification,
    NewVariables,
    ProcessDefinitionQuery,
)

_MAPPED = "to:"  # before the id of an element, in the fields of a migration


def _home(ask: PageAsk) -> str:
    return f"/console/instances/{ask.parameters['key']}"


async def resolve(ask: PageAsk) -> PageReply:
    """Tries again what one of its incidents stopped."""
    retries = ask.form.get("retries", "")
    await ask.api.incidents.resolve(
        ask.wanted("incident"), int(retries) if retries.isdecimal() else 0
    )
    return ask.go(_home(ask), "The incident was resolved; its work is tried again.")


async def cancel(ask: PageAsk) -> PageReply:
    """Ends it."""
    await ask.api.instances.cancel(ask.parameters["key"])
    return ask.go(_home(ask), f"Instance {ask.parameters['key']} was canceled.")


async def set_variables(ask: PageAsk) -> PageReply:
    """New values for its variables; those that are not named stay."""
    text = ask.wanted("variables")
    try:
        found = msgspec.json.decode(text.encode())
    except msgspec.DecodeError as error:
        raise InvalidArgument(f"Expected variables as JSON, but {error}") from error
    if not isinstance(found, dict):
        raise InvalidArgument("Expected a JSON object with the variables by their names")
    scope = ask.form.get("scope") or ask.parameters["key"]
    new = NewVariables(msgspec.Raw(text.encode()), local=ask.form.get("local") == "yes")
    await ask.api.instances.set_variables(scope, new)
    return ask.go(_home(ask), "The variables were set.")


async def modify(ask: PageAsk) -> PageReply:
    """Moves the tokens of an element to another, adds one, or takes those of an element away."""
    source, target = ask.form.get("source", "").strip(), ask.form.get("target", "").strip()
    if source and target:
        new = NewModification(move=[MoveTokens(source, target)])
        told = f"The tokens of {source} were moved to {target}."
    elif target:
        new = NewModification(activate=[ActivateElement(target)])
        told = f"{target} has a new token."
    elif source:
        new = NewModification(terminate_ids=[source])
        told = f"The tokens of {source} were removed."
    else:
        raise InvalidArgument("Expected the element that has the tokens, or the one to get them")
    await ask.api.instances.modify(ask.parameters["key"], new)
    return ask.go(_home(ask), told)


# --- another version --------------------------------------------------------------------------


async def show_migration(ask: PageAsk) -> PageReply:
    """Both versions drawn, and which element becomes which."""
    view = await find_instance(ask.api, ask.parameters["key"])
    if view.state not in RUNNING:
        raise InvalidState(
            f"Expected an instance that runs, but {view.process_instance_key} is {view.state}"
        )
    own = await definition_key(ask, view)
    process_id = ask.query.get("process", view.process_id)
    versions = await ask.api.processes.find(ProcessDefinitionQuery(process_id))
    others = [each for each in versions if each.process_definition_key != own]
    chosen = ask.query.get("to") or (others[-1].process_definition_key if others else None)
    source = await DEFINITIONS.get(ask.api, own, view.process_id)
    if source is None:
        raise NotFound(f"The definition of instance {view.process_instance_key} is not to be seen")
    to = next((each for each in others if each.process_definition_key == chosen), None)
    target = await DEFINITIONS.get(ask.api, chosen, to.process_id) if to is not None else None
    active = sorted({each.element_id for _, each in flat(view.elements)})
    known = {each.id for each in target.elements} if target is not None else set[str]()
    return await ask.show(
        "migration.html",
        instance=view,
        others=others,
        chosen=chosen if to is not None else None,
        process_id=process_id,
        before=draw_instance(source, view),
        after=draw(target) if target is not None else None,
        active=[(each, each if each in known else "") for each in active],
        targets=[(each.id, each.name or each.id) for each in target.elements] if target else [],
    )


async def migrate(ask: PageAsk) -> PageReply:
    """Another version for it."""
    mapping = [
        MapElement(name.removeprefix(_MAPPED), target)
        for name, target in ask.form.items()
        if name.startswith(_MAPPED) and target
    ]
    await ask.api.instances.migrate(ask.parameters["key"], NewMigration(ask.wanted("to"), mapping))
    return ask.go(_home(ask), "The instance follows the other version now.")


_ONE = "/console/instances/{key}"
_CANCEL = of_process(Permission.CANCEL_PROCESS_INSTANCE)
_MODIFY = of_process(Permission.MODIFY_PROCESS_INSTANCE)
PAGES = (
    ConsolePage(f"{_ONE}/resolve", "Resolve", resolve, UPDATE_JOB, method="POST"),
    ConsolePage(f"{_ONE}/cancel", "Cancel", cancel, _CANCEL, method="POST"),
    ConsolePage(f"{_ONE}/variables", "Variables", set_variables, UPDATE_INSTANCE, method="POST"),
    ConsolePage(f"{_ONE}/tokens", "Tokens", modify, _MODIFY, method="POST"),
    ConsolePage(f"{_ONE}/migration", "Migrate", show_migration, UPDATE_INSTANCE),
    ConsolePage(f"{_ONE}/migration", "Migrate", migrate, UPDATE_INSTANCE, method="POST"),
)
