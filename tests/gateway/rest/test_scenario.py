"""The whole story with the public client: a node and its pipeline, as `holdfast start` has it."""

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from camunda_orchestration_sdk import CamundaAsyncClient, WorkerConfig
from camunda_orchestration_sdk.models import (
    BatchOperationItemSearchQuery,
    BatchOperationSearchQuery,
    CancelProcessInstanceRequest,
    ElementInstanceSearchQuery,
    IncidentSearchQuery,
    ProcessCreationById,
    ProcessInstanceCancellationBatchOperationRequest,
    ProcessInstanceDeletionBatchOperationRequest,
    ProcessInstanceIncidentResolutionBatchOperationRequest,
    ProcessInstanceMigrationBatchOperationRequest,
    ProcessInstanceModificationBatchOperationRequest,
    ProcessInstanceSearchQuery,
    VariableSearchQuery,
)
from sdk import AT_ONCE, ORDER, client_of, file_of, variables

from holdfast.model.dsl import Process

ORDERS = 5


@contextmanager
def started(folder: Path) -> Iterator[str]:
    """A node in a process of its own; its URL."""
    command = [
        sys.executable, "-m", "holdfast.cli", "start", str(folder), "--port", "0", "--pipeline",
        "--partitions", "2", "--json",
    ]  # fmt: skip
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield json.loads(process.stdout.readline())["url"]
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


async def eventually(ask: Any, query: Any, count: int) -> list[Any]:
    """What a search finds, once the tables have so many; a 503 is that there are none yet."""
    async with asyncio.timeout(150):
        while True:
            try:
                found = (await ask(data=query, consistency=AT_ONCE)).items
            except Exception as error:
                if "503" not in str(error):
                    raise
                found = []
            if len(found) == count:
                return found
            await asyncio.sleep(0.2)


async def story(client: CamundaAsyncClient, folder: Path) -> None:
    await client.deploy_resources_from_files([file_of(ORDER, folder)])
    keys: list[str] = []
    for number in range(ORDERS):
        asked = ProcessCreationById(
            process_definition_id="order",  # type: ignore[arg-type]
            variables=variables(orderId=str(number)),
        )
        keys.append((await client.create_process_instance(data=asked)).process_instance_key)
    mended = False

    async def charge(job: Any) -> dict[str, Any]:
        if job.variables.to_dict()["orderId"] == "3" and not mended:
            raise ValueError("the card is refused")
        return {"charged": True}

    config = WorkerConfig(
        job_type="charge", job_timeout_milliseconds=60_000, with_lease=True,
        request_timeout_milliseconds=1_000,
    )  # fmt: skip
    client.create_job_worker(config=config, callback=charge)
    working = asyncio.create_task(client.run_workers())
    try:
        active = IncidentSearchQuery.from_dict({"filter": {"state": "ACTIVE"}})
        [incident] = await eventually(client.search_incidents, active, 1)
        assert (incident.process_instance_key, incident.element_id) == (keys[3], "charge")
        broken = ProcessInstanceSearchQuery.from_dict({"filter": {"hasIncident": True}})
        [instance] = await eventually(client.search_process_instances, broken, 1)
        assert instance.process_instance_key == keys[3]
        mended = True
        await client.resolve_incident(incident.incident_key)
        charged = VariableSearchQuery.from_dict({"filter": {"name": "charged", "value": "true"}})
        found = await eventually(client.search_variables, charged, ORDERS)
        assert {each.process_instance_key for each in found} == set(keys)
    finally:
        working.cancel()
    await client.cancel_process_instance(keys[0], data=CancelProcessInstanceRequest())  # type: ignore[arg-type]
    ended = ProcessInstanceSearchQuery.from_dict({"filter": {"state": "TERMINATED"}})
    [canceled] = await eventually(client.search_process_instances, ended, 1)
    assert canceled.process_instance_key == keys[0]
    shown = await client.get_process_instance(keys[0], consistency=AT_ONCE)  # type: ignore[arg-type]
    assert shown.state == "TERMINATED"


# --- batch operations -------------------------------------------------------------------------

PARCELS = 12
PARCEL = Process("parcel").task("pack", retries=0).wait("handed", message="handed", key="parcelId")
NEXT_PARCEL = (
    Process("parcel").task("pack", retries=0).wait("taken", message="taken", key="parcelId")
)


async def ended(client: CamundaAsyncClient, made: Any) -> Any:
    """An operation, once it has."""
    async with asyncio.timeout(90):
        while True:
            found = await client.get_batch_operation(made.batch_operation_key, consistency=AT_ONCE)
            if found.end_date is not None:
                return found
            await asyncio.sleep(0.1)


async def waiting_at(client: CamundaAsyncClient, element: str, keys: set[str]) -> None:
    query = ElementInstanceSearchQuery.from_dict(
        {"filter": {"elementId": element, "state": "ACTIVE"}}
    )
    found = await eventually(client.search_element_instances, query, len(keys))
    assert {each.process_instance_key for each in found} == keys


async def parcels(client: CamundaAsyncClient, url: str, folder: Path) -> None:
    await client.deploy_resources_from_files([file_of(PARCEL, folder)])
    keys: set[str] = set()
    for number in range(PARCELS):
        asked = ProcessCreationById(
            process_definition_id="parcel",  # type: ignore[arg-type]
            variables=variables(parcelId=f"parcel-{number}"),
        )
        keys.add((await client.create_process_instance(data=asked)).process_instance_key)

    # every job fails, and every incident is resolved by one operation
    is_open = False

    async def pack(job: Any) -> dict[str, Any]:
        if not is_open:
            raise ValueError("the shop is closed")
        return {}

    config = WorkerConfig(
        job_type="pack", job_timeout_milliseconds=60_000, with_lease=True,
        request_timeout_milliseconds=1_000,
    )  # fmt: skip
    client.create_job_worker(config=config, callback=pack)
    working = asyncio.create_task(client.run_workers())
    try:
        stuck = {"filter": {"processDefinitionId": "parcel", "state": "ACTIVE"}}
        query = IncidentSearchQuery.from_dict(stuck)
        incidents = await eventually(client.search_incidents, query, PARCELS)
        is_open = True
        broken = {"filter": {"processDefinitionId": "parcel", "hasIncident": True}}
        end = await ended(
            client, await client.resolve_incidents_batch_operation(
                data=ProcessInstanceIncidentResolutionBatchOperationRequest.from_dict(broken)
            )
        )  # fmt: skip
        assert (end.state, end.batch_operation_type) == ("COMPLETED", "RESOLVE_INCIDENT")
        assert end.operations_completed_count == end.operations_total_count == PARCELS
        of = {"batchOperationKey": end.batch_operation_key, "state": "COMPLETED"}
        query = BatchOperationItemSearchQuery.from_dict({"filter": of})
        items = await eventually(client.search_batch_operation_items, query, PARCELS)
        assert {each.item_key for each in items} == {each.incident_key for each in incidents}
        assert {each.process_instance_key for each in items} == keys
        await waiting_at(client, "handed", keys)

        # three go back and are packed again, then all follow the next version
        some = sorted(keys)[:3]
        moves = [{"sourceElementId": "handed", "targetElementId": "pack"}]
        is_open = False
        moved = await client.modify_process_instances_batch_operation(
            data=ProcessInstanceModificationBatchOperationRequest.from_dict(
                {"filter": {"processInstanceKey": {"$in": some}}, "moveInstructions": moves}
            )
        )
        assert (await ended(client, moved)).operations_completed_count == len(some)
        query = IncidentSearchQuery.from_dict(stuck)
        again = await eventually(client.search_incidents, query, len(some))
        assert {each.process_instance_key for each in again} == set(some)
        is_open = True
        for key in some:
            made = await client.resolve_process_instance_incidents(key)  # type: ignore[arg-type]
            assert (await ended(client, made)).operations_completed_count == 1
        await waiting_at(client, "handed", keys)
    finally:
        working.cancel()

    deployed = await client.deploy_resources_from_files([file_of(NEXT_PARCEL, folder)])
    target = deployed.processes[0].process_definition_key
    mapping = [{"sourceElementId": "handed", "targetElementId": "taken"}]
    plan = {"targetProcessDefinitionKey": target, "mappingInstructions": mapping}
    migrated = await client.migrate_process_instances_batch_operation(
        data=ProcessInstanceMigrationBatchOperationRequest.from_dict(
            {"filter": {"processDefinitionId": "parcel", "state": "ACTIVE"}, "migrationPlan": plan}
        )
    )
    assert (await ended(client, migrated)).operations_completed_count == PARCELS
    await waiting_at(client, "taken", keys)
    await canceled_and_deleted(client, url, keys)


async def canceled_and_deleted(client: CamundaAsyncClient, url: str, keys: set[str]) -> None:
    running = {"processDefinitionId": "parcel", "state": "ACTIVE"}
    # slow enough to be steered: the pace is beyond the words of the API
    async with (
        aiohttp.ClientSession() as session,
        session.post(
            f"{url}/v2/process-instances/cancellation", json={"filter": running, "throttle": 2}
        ) as reply,
    ):
        key = (await reply.json())["batchOperationKey"]

    async def search(state: str) -> Any:
        asked = {"state": state, "batchOperationKey": key}
        query = BatchOperationSearchQuery.from_dict({"filter": asked})
        [found] = await eventually(client.search_batch_operations, query, 1)
        return found

    assert (await search("ACTIVE")).batch_operation_type == "CANCEL_PROCESS_INSTANCE"
    await client.suspend_batch_operation(key)
    halfway = await search("SUSPENDED")
    assert halfway.operations_completed_count < len(keys)
    shown = await client.get_batch_operation(key, consistency=AT_ONCE)
    assert shown.state == "SUSPENDED"
    assert shown.operations_completed_count == halfway.operations_completed_count
    await client.resume_batch_operation(key)
    await search("ACTIVE")
    await client.cancel_batch_operation(key)
    given_up = await ended(client, shown)
    assert given_up.state == "CANCELED" and given_up.operations_completed_count < len(keys)

    rest = await client.cancel_process_instances_batch_operation(
        data=ProcessInstanceCancellationBatchOperationRequest.from_dict({"filter": running})
    )
    end = await ended(client, rest)
    left = len(keys) - given_up.operations_completed_count
    assert end.operations_completed_count == end.operations_total_count == left
    over = {"filter": {"processDefinitionId": "parcel", "state": "TERMINATED"}}
    query = ProcessInstanceSearchQuery.from_dict(over)
    assert len(await eventually(client.search_process_instances, query, len(keys))) == len(keys)
    deleted = await client.delete_process_instances_batch_operation(
        data=ProcessInstanceDeletionBatchOperationRequest.from_dict(over)
    )
    assert (await ended(client, deleted)).operations_completed_count == len(keys)
    assert await eventually(client.search_process_instances, query, 0) == []


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with started(tmp_path_factory.mktemp("scenario") / "data") as url:
        yield url


@pytest.mark.xdist_group("spark-processes")
def test_orders_are_deployed_started_worked_on_found_mended_and_cancelled(
    url: str, tmp_path: Path
) -> None:
    async def run() -> None:
        async with client_of(url) as client:
            await story(client, tmp_path)

    asyncio.run(run())


@pytest.mark.soak  # the scenario of orders is the short version
@pytest.mark.xdist_group("spark-processes")
@pytest.mark.timeout(400)
def test_many_parcels_are_mended_moved_migrated_canceled_and_deleted_by_batch_operations(
    url: str, tmp_path: Path
) -> None:
    async def run() -> None:
        async with client_of(url) as client:
            await parcels(client, url, tmp_path)

    asyncio.run(run())
