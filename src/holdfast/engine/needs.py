"""What one must be permitted for a command: the forms that most domains say it in."""

from collections.abc import Callable
from typing import Any

from holdfast.engine.identity.values import EVERY_ID, Permission, ResourceType
from holdfast.engine.kernel import Need, Required
from holdfast.engine.state import EngineState
from holdfast.records import Record


def with_every(resource: ResourceType, permission: Permission) -> Need:
    """A permission for all resources of a type: of those that have no names of their own."""
    required = (Required(resource, (permission,), (EVERY_ID,)),)
    return lambda state, command: required


def with_named(resource: ResourceType, permission: Permission, name: Callable[[Any], str]) -> Need:
    """A permission for the resource that the value of a command names."""

    def need(state: EngineState, command: Record) -> tuple[Required, ...]:
        return (Required(resource, (permission,), (name(command.value),)),)

    return need
