"""Batch operations over process instances: one path a type, one filter for what it works on.

The filter is that of a search of process instances. What the API has no word for is added to its
requests: `throttle`, `priority`, `retries` and `dryRun`.
"""

from typing import Annotated, Any

import msgspec

from holdfast.engine.batch.values import BatchOperationType
from holdfast.errors import InvalidArgument, NotFound
from holdfast.gateway.access.needs import of_batch
from holdfast.gateway.api import Api
from holdfast.gateway.batch.shapes import BatchOperationReceipt, NewBatchOperation
from holdfast.gateway.batch.tables import of_instances
from holdfast.gateway.endpoint import Endpoint, endpoint
from holdfast.gateway.numbers import Priority, Retries, Throttle
from holdfast.gateway.processes.shapes import MapElement, MoveTokens, NewMigration, NewModification
from holdfast.gateway.rest.common import Reference, RestApi
from holdfast.gateway.rest.fields import columns_of
from holdfast.gateway.rest.instances import INSTANCES
from holdfast.gateway.rest.queries import filter_of
from holdfast.gateway.rest.tables import row_of
from holdfast.gateway.shapes import Question

_T = BatchOperationType


class InstanceBatch(Reference, frozen=True, kw_only=True):
    """Process instances that a filter chooses."""

    # which ones, with at least one condition
    filter: Annotated[dict[str, Any], filter_of(INSTANCES, conditions_min=1)]
    throttle: Throttle = 0  # items per second over all partitions; 0: no limit
    priority: Priority = 0  # higher goes first
    dry_run: bool = False  # only count what would be selected


class IncidentBatch(InstanceBatch, frozen=True, kw_only=True):
    """Process instances whose incidents are to be resolved."""

    retries: Retries = 0  # further retries of each job after the next attempt


class BatchMove(Question, frozen=True):
    """Moves every token of one element to another."""

    source_element_id: str
    target_element_id: str


class ModificationBatch(InstanceBatch, frozen=True, kw_only=True):
    """Process instances whose tokens are to be moved."""

    move_instructions: list[BatchMove]


class MigrationPlan(Question, frozen=True):
    """Another version, and which elements become which."""

    target_process_definition_key: str
    mapping_instructions: list[MapElement]  # those that are not named keep their ids


class MigrationBatch(InstanceBatch, frozen=True, kw_only=True):
    """Process instances that are to follow another version."""

    migration_plan: MigrationPlan


def _new(type_: BatchOperationType, body: InstanceBatch, **rest: Any) -> NewBatchOperation:
    if not body.filter:
        raise InvalidArgument("Expected a filter with a condition, but it is empty", field="filter")
    chosen = msgspec.json.encode(columns_of(INSTANCES, body.filter))
    if type_ is _T.RESOLVE_INCIDENT:
        chosen = of_instances(chosen)
    return NewBatchOperation(
        type=type_,
        filter=msgspec.Raw(chosen),
        throttle=body.throttle,
        priority=body.priority,
        dry_run=body.dry_run,
        **rest,
    )


@endpoint("POST", "/v2/process-instances/cancellation", of_batch("CANCEL_PROCESS_INSTANCE"))
async def cancel_instances(api: Api, body: InstanceBatch) -> BatchOperationReceipt:
    """Cancel all process instances that a filter chooses."""
    return await api.batches.create(_new(_T.CANCEL_PROCESS_INSTANCE, body))


@endpoint("POST", "/v2/process-instances/deletion", of_batch("DELETE_PROCESS_INSTANCE"))
async def delete_instances(api: Api, body: InstanceBatch) -> BatchOperationReceipt:
    """Delete all process instances that have ended and that a filter chooses."""
    return await api.batches.create(_new(_T.DELETE_PROCESS_INSTANCE, body))


@endpoint("POST", "/v2/process-instances/incident-resolution", of_batch("RESOLVE_INCIDENT"))
async def resolve_incidents(api: Api, body: IncidentBatch) -> BatchOperationReceipt:
    """Resolve the incidents of all process instances that a filter chooses."""
    new = _new(_T.RESOLVE_INCIDENT, body, retries=body.retries)
    return await api.batches.create(new)


@endpoint(
    "POST", "/v2/process-instances/{instance_key}/incident-resolution", of_batch("RESOLVE_INCIDENT")
)
async def resolve_instance_incidents(api: RestApi, instance_key: str) -> BatchOperationReceipt:
    """Resolve all incidents of a process instance."""
    key = api.look.key(instance_key, "process instance")
    if await api.look.instance(key) is None and not await row_of(
        api.tables, "process_instances", key
    ):
        raise NotFound(
            f"There is no process instance with key {instance_key}",
            key=instance_key,
        )
    body = IncidentBatch(filter={"processInstanceKey": instance_key})
    return await api.batches.create(_new(_T.RESOLVE_INCIDENT, body))


@endpoint("POST", "/v2/process-instances/modification", of_batch("MODIFY_PROCESS_INSTANCE"))
async def modify_instances(api: Api, body: ModificationBatch) -> BatchOperationReceipt:
    """Move tokens of all process instances that a filter chooses."""
    moves = [
        MoveTokens(each.source_element_id, each.target_element_id)
        for each in body.move_instructions
    ]
    new = _new(_T.MODIFY_PROCESS_INSTANCE, body, modification=NewModification(move=moves))
    return await api.batches.create(new)


@endpoint("POST", "/v2/process-instances/migration", of_batch("MIGRATE_PROCESS_INSTANCE"))
async def migrate_instances(api: Api, body: MigrationBatch) -> BatchOperationReceipt:
    """Migrate all process instances that a filter chooses."""
    plan = body.migration_plan
    migration = NewMigration(plan.target_process_definition_key, plan.mapping_instructions)
    new = _new(_T.MIGRATE_PROCESS_INSTANCE, body, migration=migration)
    return await api.batches.create(new)


BATCH_CREATION_ENDPOINTS: tuple[Endpoint, ...] = (
    cancel_instances, delete_instances, resolve_incidents, resolve_instance_incidents,
    modify_instances, migrate_instances,
)  # fmt: skip
