"""What can be asked of a node about processes and messages."""

from collections.abc import Sequence
from typing import Protocol

from holdfast.gateway.processes.shapes import (
    MessageReceipt,
    NewMessage,
    NewMigration,
    NewModification,
    NewProcessInstance,
    NewVariables,
    ProcessDefinition,
    ProcessDefinitionQuery,
    ProcessInstancePage,
    ProcessInstanceQuery,
    ProcessInstanceReceipt,
    ProcessInstanceView,
    ProcessSource,
    Resource,
)


class ProcessApi(Protocol):
    """The part of the Api that is about processes."""

    async def deploy(self, resources: Sequence[Resource]) -> list[ProcessDefinition]:
        """Every process of the files, on every partition when it returns."""
        ...

    async def definitions(self, query: ProcessDefinitionQuery) -> list[ProcessDefinition]: ...

    async def definition_source(self, definition_key: str) -> ProcessSource: ...

    async def start(self, instances: Sequence[NewProcessInstance]) -> list[ProcessInstanceReceipt]:
        """Durable when it returns. Instances without a key are appended together."""
        ...

    async def instance(self, instance_key: str) -> ProcessInstanceView: ...

    async def instances(self, query: ProcessInstanceQuery) -> ProcessInstancePage: ...

    async def cancel_instance(self, instance_key: str) -> None: ...

    async def set_variables(self, scope_key: str, variables: NewVariables) -> None: ...

    async def modify_instance(self, instance_key: str, modification: NewModification) -> None: ...

    async def migrate_instance(self, instance_key: str, migration: NewMigration) -> None: ...

    async def publish(self, message: NewMessage) -> MessageReceipt: ...
