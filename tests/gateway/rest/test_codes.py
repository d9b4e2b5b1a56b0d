"""Statuses and words of the public API: what is unknown, in the wrong state, or only spelled so."""

import asyncio
from enum import Enum
from pathlib import Path
from typing import Any

import camunda_orchestration_sdk.models as models
import pytest
from camunda_orchestration_sdk.models import ProcessCreationById
from camunda_orchestration_sdk.semantic_types import ProcessDefinitionId
from sdk import ORDER, UNKNOWN, file_of, served
from tests.gateway.fake_api import ask
from tests.gateway.fake_tables import FakeTables

from holdfast.engine.incidents.values import IncidentReason
from holdfast.gateway.rest.batches import ITEMS, OPERATIONS
from holdfast.gateway.rest.elements import ELEMENTS
from holdfast.gateway.rest.fields import Resource
from holdfast.gateway.rest.incidents import INCIDENTS, error_type
from holdfast.gateway.rest.instances import INSTANCES
from holdfast.gateway.rest.job_search import JOBS

WORDS: list[tuple[Resource, str, type[Enum]]] = [
    (INCIDENTS, "errorType", models.IncidentErrorTypeEnum),
    (INCIDENTS, "state", models.IncidentStateEnum),
    (JOBS, "state", models.JobStateEnum),
    (JOBS, "kind", models.JobKindEnum),
    (JOBS, "listenerEventType", models.JobListenerEventTypeEnum),
    (ELEMENTS, "type", models.ElementInstanceFilterType),
    (ELEMENTS, "state", models.ElementInstanceStateEnum),
    (INSTANCES, "state", models.ProcessInstanceStateEnum),
    (OPERATIONS, "state", models.BatchOperationStateEnum),
    (OPERATIONS, "operationType", models.BatchOperationTypeEnum),
    (OPERATIONS, "actorType", models.AuditLogActorTypeEnum),
    (ITEMS, "state", models.BatchOperationItemStateEnum),
    (ITEMS, "operationType", models.BatchOperationTypeEnum),
]


@pytest.mark.parametrize(("resource", "field", "words"), WORDS)
def test_a_filter_takes_every_word_of_the_api(
    resource: Resource, field: str, words: type[Enum]
) -> None:
    for word in words:
        resource.fields[field].read(field, word.value)


def test_every_reason_of_an_incident_is_an_error_type_of_the_api() -> None:
    for reason in IncidentReason:
        models.IncidentErrorTypeEnum(error_type(reason))


def test_what_is_unknown_is_not_found_and_what_is_in_a_wrong_state_is_a_conflict(
    tmp_path: Path,
) -> None:
    async def run() -> None:
        async with served(FakeTables().open) as (client, _, url):
            await client.deploy_resources_from_files([file_of(ORDER, tmp_path)])
            started = await client.create_process_instance(
                data=ProcessCreationById(process_definition_id=ProcessDefinitionId("order"))
            )
            instance = str(started.process_instance_key)

            async def status(method: str, path: str, body: Any = None) -> int:
                sent = {} if body is None else {"json": body}
                headers = {"x-requested-with": "test"}
                return (await ask(url, method, f"/v2/{path}", headers=headers, **sent)).status

            activation = {"type": "charge", "timeout": 60_000, "maxJobsToActivate": 1}
            reply = await ask(url, "POST", "/v2/jobs/activation", json=activation)
            [job] = [each["jobKey"] for each in reply.json()["jobs"]]
            error = {"errorCode": "NOBODY_CATCHES_IT"}

            resolution = "process-instances/{}/incident-resolution"
            assert await status("POST", resolution.format(UNKNOWN)) == 404
            assert await status("POST", resolution.format(instance)) == 200
            for changes in ({"retries": 2}, {"timeout": 1_000}, {"priority": 1}, {}):
                asked = {"changeset": changes}
                assert await status("PATCH", f"jobs/{UNKNOWN}", asked) == 404, changes
            assert await status("PATCH", f"jobs/{job}", {"changeset": {}}) == 400
            assert await status("POST", f"jobs/{UNKNOWN}/error", error) == 404
            assert await status("POST", f"jobs/{job}/error", error) == 204
            assert await status("POST", f"jobs/{job}/error", error) == 409

    asyncio.run(run())
