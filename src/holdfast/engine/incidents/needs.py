"""What one must be permitted to end an incident: by the process, or the task, that it stops."""

from holdfast.engine.identity.values import Permission, ResourceType
from holdfast.engine.kernel import Required
from holdfast.engine.state import EngineState
from holdfast.records import Record


def end(state: EngineState, command: Record) -> tuple[Required, ...]:
    incident = state.incidents.open.get(command.key)
    if incident is None:
        return ()
    if incident.process_id:
        ids, permission = (incident.process_id,), Permission.UPDATE_PROCESS_INSTANCE
        return (Required(ResourceType.PROCESS_DEFINITION, (permission,), ids),)
    return (Required(ResourceType.TASK, (Permission.UPDATE,), (incident.job_type,)),)
