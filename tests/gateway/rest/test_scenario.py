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

import pytest
from camunda_orchestration_sdk import CamundaAsyncClient, WorkerConfig
from camunda_orchestration_sdk.models import (
    CancelProcessInstanceRequest,
    IncidentSearchQuery,
    ProcessCreationById,
    ProcessInstanceSearchQuery,
    VariableSearchQuery,
)
from camunda_orchestration_sdk.runtime.eventual import ConsistencyOptions
from sdk import ORDER, client_of, file_of, variables

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
                found = (await ask(data=query, consistency=ConsistencyOptions(0))).items
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
    shown = await client.get_process_instance(keys[0], consistency=ConsistencyOptions(0))  # type: ignore[arg-type]
    assert shown.state == "TERMINATED"


@pytest.mark.xdist_group("spark")
def test_orders_are_deployed_started_worked_on_found_mended_and_cancelled(tmp_path: Path) -> None:
    async def run(url: str) -> None:
        async with client_of(url) as client:
            await story(client, tmp_path)

    with started(tmp_path / "data") as url:
        asyncio.run(run(url))
