"""The public client asks for batch operations, looks at them and steers them."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest
from camunda_orchestration_sdk import CamundaAsyncClient
from camunda_orchestration_sdk.models import (
    BatchOperationItemSearchQuery,
    BatchOperationSearchQuery,
    ProcessInstanceCancellationBatchOperationRequest,
    ProcessInstanceDeletionBatchOperationRequest,
    ProcessInstanceIncidentResolutionBatchOperationRequest,
    ProcessInstanceMigrationBatchOperationRequest,
    ProcessInstanceModificationBatchOperationRequest,
)
from rest_tables import COMPLETE, OF_TASKS, RUNNING, put_batches
from sdk import AT_ONCE, ORDER, served
from tests.gateway.fake_tables import FakeTables
from tests.pipeline.select_tables import BASE, Tables

from holdfast.engine.batch.values import BatchOperation
from holdfast.gateway.as_of import AsOf
from holdfast.gateway.processes.shapes import NewProcessInstance, Resource
from holdfast.gateway.service import Gateway
from holdfast.model.bpmn import write_bpmn
from holdfast.pipeline.search.serving import FolderTables

WHERE = {"processDefinitionId": "order", "hasIncident": True, "$or": [{"state": "ACTIVE"}]}
COLUMNS = {
    "processId": {"$eq": "order"}, "incidents": {"$gt": 0}, "$or": [{"state": {"$in": ["ACTIVE"]}}],
}  # fmt: skip
MAPPING = [{"sourceElementId": "a", "targetElementId": "b"}]
PLAN = {"targetProcessDefinitionKey": str(BASE + 9), "mappingInstructions": MAPPING}

# by type: the call, its request, and what goes beside the filter
CALLS: dict[str, tuple[str, type[Any], dict[str, Any]]] = {
    "CANCEL_PROCESS_INSTANCE": (
        "cancel_process_instances_batch_operation",
        ProcessInstanceCancellationBatchOperationRequest, {},
    ),
    "DELETE_PROCESS_INSTANCE": (
        "delete_process_instances_batch_operation",
        ProcessInstanceDeletionBatchOperationRequest, {},
    ),
    "RESOLVE_INCIDENT": (
        "resolve_incidents_batch_operation",
        ProcessInstanceIncidentResolutionBatchOperationRequest, {},
    ),
    "MODIFY_PROCESS_INSTANCE": (
        "modify_process_instances_batch_operation",
        ProcessInstanceModificationBatchOperationRequest, {"moveInstructions": MAPPING},
    ),
    "MIGRATE_PROCESS_INSTANCE": (
        "migrate_process_instances_batch_operation",
        ProcessInstanceMigrationBatchOperationRequest, {"migrationPlan": PLAN},
    ),
}  # fmt: skip


def tell(
    story: Callable[[CamundaAsyncClient, Gateway], Awaitable[None]], tables: FakeTables
) -> None:
    async def run() -> None:
        async with served(open_tables=tables.open) as (client, gateway, _):
            await story(client, gateway)

    asyncio.run(run())


@pytest.mark.parametrize("type_", CALLS)
def test_an_operation_of_each_type_begins_with_the_filter_of_a_search(type_: str) -> None:
    tables = FakeTables()
    call, request, more = CALLS[type_]

    async def story(client: CamundaAsyncClient, _: Gateway) -> None:
        body = request.from_dict({"filter": WHERE, "operationReference": 5, **more})
        made = await getattr(client, call)(data=body)
        assert made.batch_operation_type == type_
        end = await ended(client, made.batch_operation_key)
        assert (end.state, end.batch_operation_type) == ("COMPLETED", type_)
        assert (end.operations_total_count, end.actor_id, end.errors) == (0, None, [])

    tell(story, tables)
    asked = tables.asked[0]
    chosen = msgspec.json.decode(asked.filter)
    expected = {"processInstance": COLUMNS} if type_ == "RESOLVE_INCIDENT" else COLUMNS
    assert (asked.type, chosen) == (type_, expected)
    assert _plan(asked) == {
        "MODIFY_PROCESS_INSTANCE": (("a", "b"),),
        "MIGRATE_PROCESS_INSTANCE": (BASE + 9, (("a", "b"),)),
    }.get(type_)


def _plan(asked: BatchOperation) -> Any:
    if asked.modification is not None:
        return asked.modification.move
    if asked.migration is not None:
        return asked.migration.definition, asked.migration.elements
    return None


async def ended(client: CamundaAsyncClient, key: Any) -> Any:
    async with asyncio.timeout(30):
        while True:
            found = await client.get_batch_operation(key, consistency=AT_ONCE)
            if found.end_date is not None:
                return found
            await asyncio.sleep(0.02)


def test_the_incidents_of_one_instance_are_resolved_by_an_operation() -> None:
    tables = FakeTables()
    instances: list[str] = []

    async def story(client: CamundaAsyncClient, gateway: Gateway) -> None:
        await gateway.processes.deploy(
            [Resource("o.bpmn", write_bpmn(ORDER.definition()).decode())]
        )
        [started] = await gateway.instances.start([NewProcessInstance("order")])
        instances.append(started.process_instance_key)
        made = await client.resolve_process_instance_incidents(instances[0])  # type: ignore[arg-type]
        assert made.batch_operation_type == "RESOLVE_INCIDENT"
        await ended(client, made.batch_operation_key)

    tell(story, tables)
    chosen = {"processInstance": {"processInstanceKey": {"$eq": instances[0]}}}
    assert msgspec.json.decode(tables.asked[0].filter) == chosen


def test_an_operation_is_suspended_resumed_and_canceled() -> None:
    tables = FakeTables()
    tables.keys = [BASE + n for n in range(1, 400)]  # all gone

    async def story(client: CamundaAsyncClient, _: Gateway) -> None:
        call, request, _more = CALLS["CANCEL_PROCESS_INSTANCE"]
        made = await getattr(client, call)(data=request.from_dict({"filter": WHERE}))
        key = made.batch_operation_key
        shown = await ended(client, key)
        assert shown.operations_completed_count == shown.operations_total_count == 399
        for steer in (
            client.suspend_batch_operation, client.resume_batch_operation,
            client.cancel_batch_operation,
        ):  # fmt: skip
            with pytest.raises(Exception, match="404"):
                await steer(key)

    tell(story, tables)


# --- searches ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("batches") / "tables"
    put_batches(Tables(root))
    return root


def look(root: Path, story: Callable[[CamundaAsyncClient], Awaitable[None]]) -> None:
    async def told(client: CamundaAsyncClient, gateway: Gateway) -> None:
        gateway.tables = FolderTables(root)
        await story(client)
        gateway.tables.close()

    tell(told, FakeTables())


def test_operations_are_found_by_what_the_api_calls_their_columns(root: Path) -> None:
    async def story(client: CamundaAsyncClient) -> None:
        async def found(filter_: dict[str, Any], **more: Any) -> list[int]:
            query = BatchOperationSearchQuery.from_dict({"filter": filter_, **more})
            answer = await client.search_batch_operations(data=query, consistency=AT_ONCE)
            return [int(each.batch_operation_key) for each in answer.items]

        assert await found({}) == [COMPLETE, OF_TASKS, RUNNING]
        assert await found({"state": "ACTIVE"}) == [RUNNING]
        assert await found({"state": {"$in": ["COMPLETED", "FAILED"]}}) == [OF_TASKS]
        assert await found({"operationType": {"$neq": "UPDATE_JOB"}}) == [COMPLETE, RUNNING]
        assert await found({"operationType": "SUSPEND_PROCESS_INSTANCE"}) == []
        assert await found({"batchOperationKey": {"$notIn": [str(COMPLETE)]}}) == [
            OF_TASKS,
            RUNNING,
        ]
        assert await found({"actorId": {"$like": "a*"}}) == [COMPLETE]
        assert await found({"actorType": "USER"}) == [COMPLETE]
        assert await found({"actorType": "CLIENT"}) == []
        for field in (
            "actorId", "actorType", "batchOperationKey", "endDate", "operationType", "startDate",
            "state",
        ):  # fmt: skip
            order = [{"field": field, "order": "DESC"}]
            assert len(await found({}, sort=order)) == 3
        assert await found({}, sort=order) == [COMPLETE, OF_TASKS, RUNNING]
        assert await found({}, page={"limit": 1, "from": 1}) == [OF_TASKS]

    look(root, story)


def test_an_operation_is_told_in_the_words_of_the_api(root: Path) -> None:
    async def story(client: CamundaAsyncClient) -> None:
        answer = await client.search_batch_operations(
            data=BatchOperationSearchQuery.from_dict({}), consistency=AT_ONCE
        )
        one, tasks, _ = answer.items
        assert one.operations_completed_count == 5, "what was gone is done"
        assert (one.operations_failed_count, one.operations_total_count) == (1, 9)
        assert [(each.type_, each.message) for each in one.errors] == [("QUERY_FAILED", "no")]
        assert (one.actor_id, one.actor_type) == ("ann", "USER")
        assert one.end_date is not None and one.start_date is not None
        assert tasks.batch_operation_type == "UPDATE_JOB"
        assert (answer.page.total_items, answer.page.has_more_total_items) == (3, False)

    look(root, story)


def test_items_are_found_and_told_in_the_words_of_the_api(root: Path) -> None:
    async def story(client: CamundaAsyncClient) -> None:
        async def found(filter_: dict[str, Any], **more: Any) -> list[Any]:
            query = BatchOperationItemSearchQuery.from_dict({"filter": filter_, **more})
            answer = await client.search_batch_operation_items(data=query, consistency=AT_ONCE)
            return answer.items

        done, gone = await found({"state": "COMPLETED"})
        assert (int(done.item_key), done.error_message) == (BASE + 50, None)
        assert gone.error_message is not None and "gone" in gone.error_message
        [failed] = await found({"batchOperationKey": str(COMPLETE), "state": "FAILED"})
        assert (failed.error_message, failed.process_instance_key) == ("no", None)
        [task] = await found({"operationType": "UPDATE_JOB"})
        assert (int(task.item_key), task.processed_date) == (BASE + 53, None)
        [one] = await found({"processInstanceKey": str(BASE + 51)})
        assert int(one.item_key) == BASE + 51
        for field in ("batchOperationKey", "itemKey", "processedDate", "processInstanceKey"):
            assert len(await found({}, sort=[{"field": field, "order": "ASC"}])) == 4

    look(root, story)


def test_an_answer_from_the_tables_says_as_of_when(root: Path) -> None:
    async def story() -> None:
        as_of = AsOf(datetime(2026, 11, 16, 2, 30, tzinfo=UTC), 1_203)
        async with served(FakeTables().open) as (_, gateway, url), aiohttp.ClientSession() as http:
            gateway.tables = FolderTables(root, lambda: as_of)
            for method, path, is_from_tables in (
                ("POST", "/v2/batch-operations/search", True),
                ("GET", "/v2/topology", False),
                ("POST", "/v2/process-instances/search", True),
            ):
                async with http.request(method, url + path, json={}) as answer:
                    assert answer.status == 200
                    told = {
                        name.lower(): value
                        for name, value in answer.headers.items()
                        if name.lower().startswith("holdfast-")
                    }
                assert told == (
                    {
                        "holdfast-as-of": "2026-11-16T02:30:00.000Z",
                        "holdfast-records-behind": "1203",
                    }
                    if is_from_tables
                    else {}
                )
            gateway.tables.close()

    asyncio.run(story())
