"""What one must be permitted for the commands about schedules."""

from holdfast.engine.identity.values import Permission, ResourceType
from holdfast.engine.kernel import Required
from holdfast.engine.state import EngineState
from holdfast.engine.timers.values import Schedule
from holdfast.records import Record


def create(state: EngineState, command: Record) -> tuple[Required, ...]:
    """A schedule submits tasks for its creator, who needs the permission for that as well."""
    new: Schedule = command.value
    return (
        Required(ResourceType.SCHEDULE, (Permission.UPDATE,), (new.id,)),
        Required(ResourceType.TASK, (Permission.CREATE,), (new.job.type,)),
    )
