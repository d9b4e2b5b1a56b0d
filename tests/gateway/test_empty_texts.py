"""An empty text is never taken for none: every optional text of every request is tried."""

from typing import Any, get_args, get_type_hints

import msgspec
import pytest

from holdfast.errors import InvalidArgument
from holdfast.gateway.batch.shapes import (
    BatchItemFilter,
    BatchItemQuery,
    BatchOperationQuery,
    BatchPageQuery,
)
from holdfast.gateway.content.shapes import NewPackage
from holdfast.gateway.distribution.shapes import DistributionQuery
from holdfast.gateway.groups.shapes import GroupPartitionQuery
from holdfast.gateway.http.endpoints import ENDPOINTS
from holdfast.gateway.identity.shapes import NewUser, UserChange
from holdfast.gateway.journal.shapes import RecordFilter, RecordPageQuery, RecordQuery
from holdfast.gateway.processes.shapes import (
    ActivateElement,
    MessageQuery,
    MessageSubscriptionQuery,
    NewMessage,
    NewModification,
    NewProcessInstance,
    ProcessInstanceQuery,
)
from holdfast.gateway.tasks.shapes import IncidentQuery, NewSchedule, NewTask, TaskQuery
from holdfast.gateway.transactions.shapes import (
    TransactionQuery,
    TransactionRequest,
    TransactionStep,
)
from holdfast.testing.loop import run
from holdfast.testing.node import MemoryNode

KEY = str((1 << 51) + 7)
CALLS: dict[str, Any] = {
    "NewTask.key": lambda api: api.tasks.submit([NewTask("a", key="")]),
    "NewProcessInstance.key": lambda api: api.instances.start([NewProcessInstance("a", key="")]),
    "MessagePublication.message_id": lambda api: api.messages.publish(
        NewMessage("a", "b", message_id="")
    ),
    "NewMessage.message_id": lambda api: api.transactions.commit(
        TransactionRequest([TransactionStep(publish=NewMessage("a", "b", message_id=""))])
    ),
    "TransactionRequest.id": lambda api: api.transactions.commit(
        TransactionRequest([TransactionStep(submit=NewTask("a"))], id="")
    ),
    "TransactionRequest.home_job": lambda api: api.transactions.commit(
        TransactionRequest([TransactionStep(submit=NewTask("a"))], home_job="")
    ),
    "TransactionQuery.after": lambda api: api.transactions.page(TransactionQuery(after="")),
    "NewUser.password": lambda api: api.identity.create_user(NewUser("ann", password="")),
    "UserChange.password": lambda api: api.identity.update_user("ann", UserChange(password="")),
    "BatchPageQuery.after": lambda api: api.batches.page(
        BatchOperationQuery(page=BatchPageQuery(after=""))
    ),
    "NewSchedule.cron": lambda api: api.schedules.put(
        "a", NewSchedule(NewTask("a"), cron="", interval_ms=1_000)
    ),
    "TaskQuery.after": lambda api: api.tasks.page(TaskQuery(after="")),
    "IncidentQuery.after": lambda api: api.incidents.page(IncidentQuery(after="")),
    "MessageQuery.after": lambda api: api.messages.page(MessageQuery(after="")),
    "MessageSubscriptionQuery.after": lambda api: api.messages.subscriptions(
        MessageSubscriptionQuery(after="")
    ),
    "ProcessInstanceQuery.after": lambda api: api.instances.page(ProcessInstanceQuery(after="")),
    "DistributionQuery.after": lambda api: api.distributions.page(DistributionQuery(after="")),
    "ActivateElement.ancestor_key": lambda api: api.instances.modify(
        KEY, NewModification([ActivateElement("a", "")])
    ),
    "BatchItemFilter.batch_operation_key": lambda api: api.batches.items(
        BatchItemQuery(BatchItemFilter(batch_operation_key=""))
    ),
    "NewPackage.blob": lambda api: api.content.publish(
        NewPackage("site", "p", "ADD", ["/a"], sha256=bytes(32), blob="")
    ),
    "GroupPartitionQuery.after": lambda api: api.groups.partitions(
        "a", GroupPartitionQuery(after="")
    ),
    "GroupPartitionQuery.member": lambda api: api.groups.partitions(
        "a", GroupPartitionQuery(member="")
    ),
    "RecordFilter.value_type": lambda api: api.journal.records(
        RecordQuery(RecordFilter(value_type=""))
    ),
    "RecordFilter.intent": lambda api: api.journal.records(RecordQuery(RecordFilter(intent=""))),
    "RecordFilter.key": lambda api: api.journal.records(RecordQuery(RecordFilter(key=""))),
    "RecordPageQuery.older_than": lambda api: api.journal.records(
        RecordQuery(page=RecordPageQuery(older_than=""))
    ),
    "RecordPageQuery.newer_than": lambda api: api.journal.records(
        RecordQuery(page=RecordPageQuery(newer_than=""))
    ),
    "BatchItemFilter.item_key": lambda api: api.batches.items(
        BatchItemQuery(BatchItemFilter(item_key=""))
    ),
    "BatchItemFilter.process_instance_key": lambda api: api.batches.items(
        BatchItemQuery(BatchItemFilter(process_instance_key=""))
    ),
}
# Nothing has an empty one of these, so nothing is found or matched: that is no guess.
FILTERS = {
    "TaskQuery.type", "IncidentQuery.type", "IncidentQuery.process_id",
    "IncidentQuery.process_instance_key", "ProcessDefinitionQuery.process_id",
    "ProcessInstanceQuery.process_id", "DistributionQuery.queue", "AuthorizationQuery.owner_id",
    "AuthorizationQuery.resource_id", "IncidentGroupQuery.type", "IncidentGroupQuery.process_id",
    "MessageQuery.name", "MessageSubscriptionQuery.name", "MessageSubscriptionQuery.process_id",
    # those of tasks have no element, an error may say nothing, and a key may be empty
    "IncidentQuery.element_id", "IncidentQuery.cause", "MessageSubscriptionQuery.correlation_key",
}  # fmt: skip
# Refused whatever they say, but for the one tenant that there is.
UNUSED = {"MessagePublication.tenant_id", "MessagePublication.business_id"}


def optional_texts() -> set[str]:
    """Every `str | None` of the bodies of our own endpoints, at any depth."""
    found: set[str] = set()
    seen: set[Any] = set()
    todo: list[Any] = [end.request for end in ENDPOINTS if end.request is not None]
    while todo:
        hint = todo.pop()
        if hint in seen:
            continue
        seen.add(hint)
        todo += get_args(hint)
        if not (isinstance(hint, type) and issubclass(hint, msgspec.Struct)):
            continue
        if hint.__module__.startswith("holdfast.gateway.rest"):
            continue  # the public API's own rules
        for name, inner in get_type_hints(hint).items():
            todo.append(inner)
            if {str, type(None)} <= set(get_args(inner)):
                found.add(f"{hint.__name__}.{name}")
    return found


def test_every_optional_text_of_a_request_is_tried_or_a_filter() -> None:
    assert optional_texts() - FILTERS - UNUSED == CALLS.keys()


@pytest.mark.parametrize("field", CALLS)
def test_an_empty_text_is_refused(field: str) -> None:
    async def story() -> None:
        node = await MemoryNode(partitions=1).start()
        with pytest.raises(InvalidArgument, match="Expected"):
            await CALLS[field](node.gateway)
        await node.close()

    run(story())
