"""Modifying a process instance: tokens that are added, moved and removed."""

from typing import Any

import msgspec

from holdfast.engine.identity.values import Permission
from holdfast.errors import InvalidArgument
from holdfast.gateway.access.needs import of_process
from holdfast.gateway.endpoint import Endpoint, endpoint
from holdfast.gateway.processes.shapes import ActivateElement, MoveTokens, NewModification
from holdfast.gateway.rest.common import Reference, RestApi, object_of, refuse_given
from holdfast.gateway.shapes import Question, no_variables


class VariableInstruction(Question, frozen=True):
    """Variables for a scope that is created."""

    variables: msgspec.Raw = msgspec.field(default_factory=no_variables)
    scope_id: str = ""  # the element's own, or empty for the instance


class ActivateInstruction(Question, frozen=True):
    """An element that gets a token."""

    element_id: str
    ancestor_element_instance_key: str | None = None
    variable_instructions: list[VariableInstruction] = msgspec.field(default_factory=list)


class SourceInstruction(Question, frozen=True):
    """The source of moved tokens."""

    source_type: str
    source_element_id: str | None = None
    source_element_instance_key: str | None = None


class MoveInstruction(Question, frozen=True):
    """Moves every token of one element to another."""

    source_element_instruction: SourceInstruction
    target_element_id: str
    ancestor_scope_instruction: dict[str, Any] | None = None
    variable_instructions: list[VariableInstruction] = msgspec.field(default_factory=list)


class TerminateInstruction(Question, frozen=True):
    """An element instance, or all instances of an element, to terminate."""

    element_instance_key: str | None = None
    element_id: str | None = None


class Modification(Reference, frozen=True):
    """Tokens to add, move and remove in an instance."""

    activate_instructions: list[ActivateInstruction] = msgspec.field(default_factory=list)
    move_instructions: list[MoveInstruction] = msgspec.field(default_factory=list)
    terminate_instructions: list[TerminateInstruction] = msgspec.field(default_factory=list)


@endpoint(
    "POST",
    "/v2/process-instances/{instance_key}/modification",
    of_process(Permission.MODIFY_PROCESS_INSTANCE),
)
async def modify_instance(api: RestApi, instance_key: str, body: Modification) -> None:
    """Add, move and remove tokens of a process instance."""
    everywhere: dict[str, msgspec.Raw] = {}
    activate: list[ActivateElement] = []
    for each in body.activate_instructions:
        local = _variables(each.variable_instructions, each.element_id, everywhere)
        activate.append(ActivateElement(each.element_id, each.ancestor_element_instance_key, local))
    keys = [each.element_instance_key for each in body.terminate_instructions]
    ids = [each.element_id for each in body.terminate_instructions]
    if any((key is None) == (id_ is None) for key, id_ in zip(keys, ids, strict=True)):
        raise InvalidArgument(
            "Expected either elementInstanceKey or elementId in each terminateInstruction",
            field="terminateInstructions",
        )
    modification = NewModification(
        activate,
        [key for key in keys if key is not None],
        [id_ for id_ in ids if id_ is not None],
        [_move(each) for each in body.move_instructions],
        msgspec.Raw(msgspec.json.encode(everywhere)),
    )
    await api.instances.modify(instance_key, modification)


def _variables(
    instructions: list[VariableInstruction], element_id: str, everywhere: dict[str, msgspec.Raw]
) -> msgspec.Raw:
    """The element's own variables; those for the whole instance are added to `everywhere`."""
    local: dict[str, msgspec.Raw] = {}
    for each in instructions:
        if each.scope_id not in ("", element_id):
            raise InvalidArgument(
                f"Expected {element_id!r} or no scope for variables, but found {each.scope_id!r}",
                field="scopeId",
            )
        values = bytes(object_of(each.variables, "variables"))
        into = local if each.scope_id else everywhere
        into.update(msgspec.json.decode(values, type=dict[str, msgspec.Raw]))
    return msgspec.Raw(msgspec.json.encode(local))


def _move(each: MoveInstruction) -> MoveTokens:
    source = each.source_element_instruction
    if source.source_type != "byId" or source.source_element_id is None:
        raise InvalidArgument(
            f"Expected a source byId, as all tokens of an element move, but found"
            f" {source.source_type!r}",
            field="sourceElementInstruction",
        )
    scope = each.ancestor_scope_instruction or {}
    if scope.get("ancestorScopeType", "inferred") != "inferred":
        raise InvalidArgument(
            "Expected an inferred scope, as tokens stay in theirs, but found another",
            field="ancestorScopeInstruction",
        )
    refuse_given(variableInstructions=each.variable_instructions)
    return MoveTokens(source.source_element_id, each.target_element_id)


MODIFICATION_ENDPOINTS: tuple[Endpoint, ...] = (modify_instance,)
