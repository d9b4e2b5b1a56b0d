"""What can be asked of a node about processes, their instances and messages."""

from collections.abc import Sequence
from typing import Protocol

from holdfast.engine.identity.values import Permission, ResourceType
from holdfast.gateway.access.needs import (
    READ_DEFINITION,
    READ_INSTANCE,
    UPDATE_INSTANCE,
    of_process,
    one,
)
from holdfast.gateway.operation import Namespace, operation
from holdfast.gateway.processes.shapes import (
    ElementCounts,
    MessagePage,
    MessagePublication,
    MessageQuery,
    MessageReceipt,
    MessageStarts,
    MessageStartView,
    MessageSubscriptionPage,
    MessageSubscriptionQuery,
    NewDeployment,
    NewMessage,
    NewMigration,
    NewModification,
    NewProcessInstance,
    NewProcessInstances,
    NewVariables,
    ProcessDefinition,
    ProcessDefinitionQuery,
    ProcessDefinitions,
    ProcessInstancePage,
    ProcessInstanceQuery,
    ProcessInstanceReceipt,
    ProcessInstanceReceipts,
    ProcessInstanceView,
    ProcessSource,
    Resource,
)

_R, _P = ResourceType, Permission


class ProcessApi(Namespace, Protocol):
    """Process definitions: deploy them, look at them."""

    @operation(
        "deploy", "POST", "/v2/deployments", one(_R.RESOURCE, _P.CREATE),
        body=NewDeployment, answer=ProcessDefinitions,
    )  # fmt: skip
    async def deploy(self, resources: Sequence[Resource]) -> list[ProcessDefinition]:
        """Deploy BPMN files on every partition.

        Every process of the files is on every partition when it returns.
        """
        ...

    @operation(
        "list_definitions", "POST", "/v2/process-definitions/listing", READ_DEFINITION,
        answer=ProcessDefinitions,
    )  # fmt: skip
    async def find(self, query: ProcessDefinitionQuery) -> list[ProcessDefinition]:
        """List process definitions."""
        ...

    @operation(
        "get_definition_source", "GET", "/v2/process-definitions/{definition_key}/source",
        READ_DEFINITION,
    )  # fmt: skip
    async def source(self, definition_key: str) -> ProcessSource:
        """Show a process definition as BPMN."""
        ...

    @operation(
        "count_elements", "GET", "/v2/process-definitions/{definition_key}/elements",
        READ_INSTANCE,
    )  # fmt: skip
    async def elements(self, definition_key: str) -> ElementCounts:
        """Count the tokens and incidents of a version by element.

        A bounded number of active elements is looked at.
        """
        ...


class InstanceApi(Namespace, Protocol):
    """Process instances: start them, look at them, change them."""

    @operation(
        "start_instances", "POST", "/v2/process-instances/batch",
        of_process(_P.CREATE_PROCESS_INSTANCE),
        body=NewProcessInstances, answer=ProcessInstanceReceipts,
    )  # fmt: skip
    async def start(self, instances: Sequence[NewProcessInstance]) -> list[ProcessInstanceReceipt]:
        """Start many processes at once.

        Durable when it returns. Instances without a key are appended together.
        """
        ...

    @operation(
        "get_instance_details", "GET", "/v2/process-instances/{instance_key}/details",
        READ_INSTANCE,
    )  # fmt: skip
    async def get(self, instance_key: str) -> ProcessInstanceView:
        """Show a process instance with its variables and its active elements."""
        ...

    @operation("list_instances", "POST", "/v2/process-instances/listing", READ_INSTANCE)
    async def page(self, query: ProcessInstanceQuery) -> ProcessInstancePage:
        """List running process instances, or those that ended recently."""
        ...

    @operation(
        "cancel_instance", "POST", "/v2/process-instances/{instance_key}/cancellation",
        of_process(_P.CANCEL_PROCESS_INSTANCE),
    )  # fmt: skip
    async def cancel(self, instance_key: str) -> None:
        """Cancel a process instance."""

    @operation(
        "set_variables", "PUT", "/v2/element-instances/{element_key}/variables", UPDATE_INSTANCE
    )
    async def set_variables(self, element_key: str, new: NewVariables) -> None:
        """Set variables of a process instance or an element instance."""

    @operation(
        "change_tokens", "POST", "/v2/process-instances/{instance_key}/tokens",
        of_process(_P.MODIFY_PROCESS_INSTANCE),
    )  # fmt: skip
    async def modify(self, instance_key: str, new: NewModification) -> None:
        """Add, remove and move tokens of a process instance."""

    @operation(
        "migrate_instance", "POST", "/v2/process-instances/{instance_key}/migration",
        UPDATE_INSTANCE,
    )  # fmt: skip
    async def migrate(self, instance_key: str, new: NewMigration) -> None:
        """Move a process instance to another version."""


def _publication(message: NewMessage) -> MessagePublication:
    return MessagePublication(
        message.name, message.correlation_key, message.variables, message.message_id,
        message.ttl_ms,
    )  # fmt: skip


class MessageApi(Namespace, Protocol):
    """Messages for process instances."""

    @operation(
        "publish_message", "POST", "/v2/messages/publication", one(_R.MESSAGE, _P.CREATE),
        body=_publication,
    )  # fmt: skip
    async def publish(self, new: NewMessage) -> MessageReceipt:
        """Publish a message."""
        ...

    @operation("list_messages", "POST", "/v2/messages/listing", one(_R.MESSAGE, _P.READ))
    async def page(self, query: MessageQuery) -> MessagePage:
        """List messages that are kept for those that wait later."""
        ...

    @operation(
        "list_message_subscriptions", "POST", "/v2/message-subscriptions/listing", READ_INSTANCE
    )
    async def subscriptions(self, query: MessageSubscriptionQuery) -> MessageSubscriptionPage:
        """List the elements of process instances that wait for messages."""
        ...

    @operation(
        "list_message_starts", "GET", "/v2/messages/starts", READ_DEFINITION, answer=MessageStarts
    )
    async def starts(self) -> list[MessageStartView]:
        """List the processes that messages start."""
        ...
