"""The public client of the REST API deploys, starts, works and repairs over real HTTP."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from camunda_orchestration_sdk import CamundaAsyncClient, WorkerConfig
from camunda_orchestration_sdk.errors import (
    BadRequestError,
    ConflictError,
    NotFoundError,
)
from camunda_orchestration_sdk.models import (
    CancelProcessInstanceRequest,
    JobActivationRequest,
    JobChangeset,
    JobCompletionRequest,
    JobErrorRequest,
    JobFailRequest,
    JobUpdateRequest,
    MessageCorrelationRequest,
    MessagePublicationRequest,
    MigrateProcessInstanceMappingInstruction,
    ProcessCreationById,
    ProcessCreationByKey,
    ProcessInstanceMigrationInstruction,
    ProcessInstanceModificationActivateInstruction,
    ProcessInstanceModificationInstruction,
    ProcessInstanceModificationTerminateByIdInstruction,
    SetVariableRequest,
    SetVariableRequestVariables,
)
from sdk import AT_ONCE, ORDER, UNKNOWN, file_of, served, variables

from holdfast.engine.jobs.values import JobIntent
from holdfast.engine.partition import DISPATCH
from holdfast.gateway.service import Gateway
from holdfast.gateway.tasks.shapes import IncidentQuery, NewTask
from holdfast.journal import Entry
from holdfast.limits import READ_BYTES_MAX
from holdfast.model.bpmn import write_bpmn
from holdfast.model.dsl import Process
from holdfast.records import Record, RecordKind, ValueType, partition_of

Story = Callable[[CamundaAsyncClient, Gateway, Path], Awaitable[None]]


def tell(story: Story, folder: Path) -> None:
    async def run() -> None:
        async with served() as (client, gateway, _):
            await story(client, gateway, folder)

    asyncio.run(run())


async def start(client: CamundaAsyncClient, folder: Path, order: str = "7") -> str:
    await client.deploy_resources_from_files([file_of(ORDER, folder)])
    asked = ProcessCreationById(process_definition_id="order", variables=variables(orderId=order))  # type: ignore[arg-type]
    return (await client.create_process_instance(data=asked)).process_instance_key


async def activate(client: CamundaAsyncClient, **more: Any) -> Any:
    asked = JobActivationRequest(
        type_="charge", timeout=60_000, max_jobs_to_activate=1, worker="me", **more
    )
    [job] = (await client.activate_jobs(data=asked)).jobs
    return job


async def the_incident(gateway: Gateway) -> Any:
    [incident] = (await gateway.incidents.page(IncidentQuery())).items
    return incident


async def until(met: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(20):
        while not await met():  # noqa: ASYNC110 - a node elsewhere tells nobody
            await asyncio.sleep(0.01)


async def has_incident(gateway: Gateway) -> bool:
    return bool((await gateway.incidents.page(IncidentQuery())).items)


async def is_at(gateway: Gateway, key: str, element_id: str) -> bool:
    return (await gateway.instances.get(key)).elements[0].element_id == element_id


def test_the_topology_names_the_node_and_its_partitions(tmp_path: Path) -> None:
    async def story(client: CamundaAsyncClient, _: Gateway, folder: Path) -> None:
        topology = await client.get_topology()
        assert (topology.cluster_size, topology.partitions_count) == (1, 2)
        [broker] = topology.brokers
        assert [each.partition_id for each in broker.partitions] == [1, 2]

    tell(story, tmp_path)


def test_a_file_is_deployed_once_and_given_back_as_it_came(tmp_path: Path) -> None:
    async def story(client: CamundaAsyncClient, _: Gateway, folder: Path) -> None:
        file, bpmn = file_of(ORDER, folder), write_bpmn(ORDER.definition()).decode()
        for _ in range(2):
            [deployed] = (await client.deploy_resources_from_files([file])).processes
            assert deployed.process_definition_version == 1
        assert (deployed.process_definition_id, deployed.resource_name) == ("order", "order.bpmn")
        key = deployed.process_definition_key
        found = await client.get_process_definition(key)
        assert (found.name, found.version) == ("An order", 1)
        assert await client.get_process_definition_xml(key) == bpmn

    tell(story, tmp_path)


def test_a_worker_fails_a_job_a_person_resolves_the_incident_and_the_worker_ends_it(
    tmp_path: Path,
) -> None:
    async def story(client: CamundaAsyncClient, gateway: Gateway, folder: Path) -> None:
        key = await start(client, folder)
        seen: list[Any] = []

        async def work(job: Any) -> dict[str, Any]:
            seen.append(job)
            if len(seen) == 1:
                raise ValueError("the card is refused")
            return {"charged": True}

        config = WorkerConfig(
            job_type="charge", job_timeout_milliseconds=60_000, with_lease=True,
            request_timeout_milliseconds=1_000,
        )  # fmt: skip
        client.create_job_worker(config=config, callback=work)
        working = asyncio.create_task(client.run_workers())
        try:
            await until(lambda: has_incident(gateway))
            assert seen[0].variables.to_dict() == {"orderId": "7"}
            assert seen[0].custom_headers.to_dict() == {"currency": "EUR"}
            assert (seen[0].retries, seen[0].process_instance_key) == (1, key)
            assert (await client.get_process_instance(key)).has_incident

            incident = await the_incident(gateway)
            shown = await client.get_incident(incident.incident_key)
            assert shown.error_message == "the card is refused"
            assert (shown.error_type, shown.element_id) == ("JOB_NO_RETRIES", "charge")
            changes = JobUpdateRequest(changeset=JobChangeset(retries=3))
            await client.update_job(job_key=shown.job_key, data=changes)  # type: ignore[arg-type]
            await client.resolve_incident(incident.incident_key)
            await until(lambda: is_at(gateway, key, "paid"))
            assert seen[1].retries == 3
        finally:
            working.cancel()
        asked = MessageCorrelationRequest(name="payment", correlation_key="7")
        assert (await client.correlate_message(data=asked)).process_instance_key == key

    tell(story, tmp_path)


def test_retries_and_errors_that_a_worker_reports_are_as_it_says(tmp_path: Path) -> None:
    async def story(client: CamundaAsyncClient, gateway: Gateway, folder: Path) -> None:
        key = await start(client, folder)
        job = await activate(client)
        failure = JobFailRequest(retries=5, error_message="busy", retry_back_off=1)
        await client.fail_job(job.job_key, data=failure)
        job = await activate(client)
        assert job.retries == 5
        await client.fail_job(job.job_key, data=JobFailRequest(retries=4, retry_back_off=1))
        job = await activate(client)
        assert job.retries == 4
        await client.throw_job_error(job.job_key, data=JobErrorRequest(error_code="DECLINED"))
        assert (await gateway.instances.get(key)).state == "COMPLETED"

    tell(story, tmp_path)


def test_a_failure_with_other_retries_is_one_command(tmp_path: Path) -> None:
    async def story(client: CamundaAsyncClient, gateway: Gateway, folder: Path) -> None:
        await start(client, folder)
        job = await activate(client, with_lease=True)
        before = await records_of(gateway, job.job_key)
        await client.fail_job(job.job_key, data=JobFailRequest(retries=5, retry_back_off=60_000))
        told = (await records_of(gateway, job.job_key))[len(before) :]
        intents = [(record.kind, record.intent) for record in told]
        assert intents == [
            (RecordKind.COMMAND, JobIntent.FAIL),
            (RecordKind.EVENT, JobIntent.FAILED),
        ]
        late = JobFailRequest(retries=9, job_lease_token=job.job_lease_token)
        with pytest.raises(ConflictError):  # a worker that does not hold the job does not change it
            await client.fail_job(job.job_key, data=late)
        assert (await gateway.tasks.get(job.job_key)).retries == 4

    tell(story, tmp_path)


async def records_of(gateway: Gateway, job_key: str) -> list[Record]:
    """What the log has about a job itself, in its order."""
    partition = partition_of(int(job_key))
    content = await gateway.journal.read(partition, 0, READ_BYTES_MAX)
    entries = msgspec.msgpack.decode(content, type=list[Entry])
    records = DISPATCH.codec.decode_many([entry.payload for entry in entries])
    key = (ValueType.JOB, int(job_key))
    return [record for record in records if (record.value_type, record.key) == key]


def test_a_job_is_done_once_whatever_is_reported(tmp_path: Path) -> None:
    async def story(client: CamundaAsyncClient, gateway: Gateway, folder: Path) -> None:
        await start(client, folder)
        job = await activate(client, with_lease=True)
        token = job.job_lease_token
        await client.fail_job(job.job_key, data=JobFailRequest(retries=3, job_lease_token=token))
        late = JobCompletionRequest(job_lease_token=token)
        with pytest.raises(ConflictError):
            await client.complete_job(job.job_key, data=late)
        with pytest.raises(ConflictError, match="lease has ended"):
            await client.complete_job(job.job_key, data=JobCompletionRequest())
        again = await activate(client)
        assert again.job_lease_token is None
        with pytest.raises(ConflictError):
            await client.complete_job(job.job_key, data=late)
        await client.complete_job(again.job_key, data=JobCompletionRequest())
        with pytest.raises(NotFoundError):
            await client.complete_job(again.job_key, data=JobCompletionRequest())

    tell(story, tmp_path)


def test_a_worker_takes_tasks_too(tmp_path: Path) -> None:
    async def story(client: CamundaAsyncClient, gateway: Gateway, folder: Path) -> None:
        await gateway.tasks.submit([NewTask("charge", priority=7)])
        job = await activate(client)
        assert (job.process_definition_id, job.process_instance_key) == ("task", "-1")
        assert (job.priority, job.root_process_instance_key) == (7, None)
        assert job.variables.to_dict() == {"payload": None}
        await client.complete_job(job.job_key, data=JobCompletionRequest())
        assert (await gateway.tasks.get(job.job_key)).state == "COMPLETED"

    tell(story, tmp_path)


def test_an_instance_is_waited_for_and_gives_its_variables(tmp_path: Path) -> None:
    async def story(client: CamundaAsyncClient, _: Gateway, folder: Path) -> None:
        await client.deploy_resources_from_files([file_of(ORDER, folder)])
        message = MessagePublicationRequest(
            name="payment", correlation_key="8", time_to_live=60_000
        )
        await client.publish_message(data=message)

        async def work() -> None:
            job = await activate(client)
            await client.complete_job(job.job_key, data=JobCompletionRequest())

        asked = ProcessCreationById(
            process_definition_id="order",  # type: ignore[arg-type]
            variables=variables(orderId="8", total=3), await_completion=True,
            fetch_variables=["total"],
        )  # fmt: skip
        ended, _ = await asyncio.gather(client.create_process_instance(data=asked), work())
        assert ended.variables.to_dict() == {"total": 3}

    tell(story, tmp_path)


def test_an_instance_is_changed_migrated_and_cancelled(tmp_path: Path) -> None:
    async def story(client: CamundaAsyncClient, gateway: Gateway, folder: Path) -> None:
        key = await start(client, folder)
        values = SetVariableRequestVariables.from_dict({"total": 7})
        await client.create_element_instance_variables(
            key,
            data=SetVariableRequest(variables=values),  # type: ignore[arg-type]
        )
        change = ProcessInstanceModificationInstruction(
            activate_instructions=[ProcessInstanceModificationActivateInstruction("paid")],  # type: ignore[arg-type]
            terminate_instructions=[ProcessInstanceModificationTerminateByIdInstruction("charge")],  # type: ignore[arg-type]
        )
        await client.modify_process_instance(key, data=change)
        view = await gateway.instances.get(key)
        assert [each.element_id for each in view.elements] == ["paid"]
        element = await client.get_element_instance(view.elements[0].element_instance_key)
        assert (element.element_id, element.type_) == ("paid", "INTERMEDIATE_CATCH_EVENT")

        [new] = (
            await client.deploy_resources_from_files([file_of(ORDER.task("ship"), folder)])
        ).processes
        plan = ProcessInstanceMigrationInstruction(
            target_process_definition_key=new.process_definition_key,
            mapping_instructions=[MigrateProcessInstanceMappingInstruction("paid", "paid")],  # type: ignore[arg-type]
        )
        await client.migrate_process_instance(key, data=plan)
        assert (await client.get_process_instance(key)).process_definition_version == 2
        await client.cancel_process_instance(key, data=CancelProcessInstanceRequest())
        with pytest.raises(NotFoundError):
            await client.cancel_process_instance(key, data=CancelProcessInstanceRequest())

    tell(story, tmp_path)


def test_a_called_instance_knows_its_root(tmp_path: Path) -> None:
    async def story(client: CamundaAsyncClient, gateway: Gateway, folder: Path) -> None:
        processes = [Process("low").task("charge"), Process("top").call("sub", process="low")]
        await client.deploy_resources_from_files([file_of(each, folder) for each in processes])
        asked = ProcessCreationById(process_definition_id="top")  # type: ignore[arg-type]
        top = (await client.create_process_instance(data=asked)).process_instance_key
        job = await activate(client)
        assert job.process_instance_key != top and job.root_process_instance_key == top
        definition = await client.get_process_definition(job.process_definition_key)
        assert definition.process_definition_id == job.process_definition_id == "low"
        low = await client.get_process_instance(job.process_instance_key, consistency=AT_ONCE)
        assert (low.parent_process_instance_key, low.root_process_instance_key) == (top, top)
        element = await client.get_element_instance(job.element_instance_key, consistency=AT_ONCE)
        assert element.root_process_instance_key == top
        itself = await client.get_process_instance(top, consistency=AT_ONCE)
        assert itself.root_process_instance_key == top

    tell(story, tmp_path)


def test_a_message_is_correlated_to_the_process_that_it_starts(tmp_path: Path) -> None:
    async def story(client: CamundaAsyncClient, gateway: Gateway, folder: Path) -> None:
        process = Process("letter").starts(message="letter").task("charge")
        await client.deploy_resources_from_files([file_of(process, folder)])
        asked = MessageCorrelationRequest(name="letter", correlation_key="7")
        given = await client.correlate_message(data=asked)
        shown = await gateway.instances.get(given.process_instance_key)
        assert shown.process_id == "letter"
        with pytest.raises(NotFoundError, match="to keep a message"):
            await client.correlate_message(data=asked)  # one at a time for a key
        without = MessageCorrelationRequest(name="letter")
        keys = {(await client.correlate_message(data=without)).process_instance_key for _ in "ab"}
        assert len(keys) == 2 and given.process_instance_key not in keys

    tell(story, tmp_path)


def test_what_is_not_there_is_not_found(tmp_path: Path) -> None:
    async def story(client: CamundaAsyncClient, _: Gateway, folder: Path) -> None:
        by_key = ProcessCreationByKey(process_definition_key=UNKNOWN)  # type: ignore[arg-type]
        by_id = ProcessCreationById(process_definition_id="nothing")  # type: ignore[arg-type]
        asked: list[Awaitable[Any]] = [
            client.get_process_definition(UNKNOWN),
            client.get_process_definition_xml(UNKNOWN),
            client.get_process_instance(UNKNOWN),
            client.get_element_instance(UNKNOWN),
            client.get_incident(UNKNOWN),
            client.get_variable("2251799813999999123456786"),
            client.resolve_incident(UNKNOWN),
            client.complete_job(UNKNOWN, data=JobCompletionRequest()),
            client.correlate_message(data=MessageCorrelationRequest(name="payment")),
        ]
        for each in asked:
            with pytest.raises(NotFoundError):
                await each
        for data in (by_key, by_id):
            with pytest.raises(Exception, match="404"):
                await client.create_process_instance(data=data)
        with pytest.raises(BadRequestError):
            await client.activate_jobs(data=JobActivationRequest("", 1_000, 1))

    tell(story, tmp_path)
