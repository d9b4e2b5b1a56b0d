"""What one must be permitted for the commands about batch operations.

That they may be created is one thing; each item is then done with the claims of the creator, and
needs what its own command needs.
"""

from holdfast.engine.batch.values import BatchOperation, BatchOperationType
from holdfast.engine.identity.values import EVERY_ID, Permission, ResourceType
from holdfast.engine.kernel import Required
from holdfast.engine.state import EngineState
from holdfast.records import Record

_BY_TYPE = {
    each: Permission(f"CREATE_BATCH_OPERATION_{each}") for each in BatchOperationType
}  # a type without a permission of its own is an error when this is loaded


def create(state: EngineState, command: Record) -> tuple[Required, ...]:
    new: BatchOperation = command.value
    return (of_type(new.type),)


def of_type(type_: BatchOperationType) -> Required:
    """The permission for a type, or the one for all types."""
    return Required(ResourceType.BATCH, (Permission.CREATE, _BY_TYPE[type_]), (EVERY_ID,))
