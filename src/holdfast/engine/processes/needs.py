"""What one must be permitted for the commands about processes: by the id of the process."""

from holdfast.engine.identity.values import EVERY_ID, Permission, ResourceType
from holdfast.engine.kernel import Need, Required
from holdfast.engine.processes.values import Deployment, Migration, NewInstance
from holdfast.engine.state import EngineState
from holdfast.records import Record


def deploy(state: EngineState, command: Record) -> tuple[Required, ...]:
    new: Deployment = command.value
    return (Required(ResourceType.RESOURCE, (Permission.CREATE,), (new.process_id,)),)


def create(state: EngineState, command: Record) -> tuple[Required, ...]:
    new: NewInstance = command.value
    return _process(Permission.CREATE_PROCESS_INSTANCE, new.process_id)


def named(permission: Permission) -> Need:
    """A permission for the process of the instance, or of the element, that a command names."""

    def need(state: EngineState, command: Record) -> tuple[Required, ...]:
        return of_instance(state, permission, state.processes.instance_of(command.key) or 0)

    return need


def migrate(state: EngineState, command: Record) -> tuple[Required, ...]:
    """Both processes, if it becomes an instance of another one."""
    asked: Migration = command.value
    target = state.processes.definitions.get(asked.definition)
    permission = Permission.UPDATE_PROCESS_INSTANCE
    found = of_instance(state, permission, command.key)
    return found if target is None else (*found, *_process(permission, target.process_id))


def delete(state: EngineState, command: Record) -> tuple[Required, ...]:
    """Nothing here knows any more which process an instance was of that has ended."""
    permission = Permission.DELETE_PROCESS_INSTANCE
    return of_instance(state, permission, command.key) or _process(permission, EVERY_ID)


def of_instance(state: EngineState, permission: Permission, key: int) -> tuple[Required, ...]:
    """A permission for the process of an instance; none for an instance that is not there."""
    instance = state.processes.instances.get(key)
    definition = state.processes.definitions.get(instance.definition) if instance else None
    return () if definition is None else _process(permission, definition.process_id)


def _process(permission: Permission, process_id: str) -> tuple[Required, ...]:
    return (Required(ResourceType.PROCESS_DEFINITION, (permission,), (process_id,)),)
