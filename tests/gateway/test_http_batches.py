"""Batch operations over HTTP: a path for each type, and what is wrong is a problem."""

import asyncio
from typing import Any

import msgspec
import pytest
from fake_api import FakeApi, Reply, ask, served

from holdfast.errors import InvalidState, NotFound

WHERE = {"processId": "order"}
PLANS: dict[str, dict[str, Any]] = {
    "modification": {"move": [{"sourceId": "a", "targetId": "b"}]},
    "migration": {
        "targetProcessDefinitionKey": "4",
        "mappingInstructions": [{"sourceElementId": "a", "targetElementId": "b"}],
    },
}
PATHS = {
    "/v2/process-instances/cancellation": ("CANCEL_PROCESS_INSTANCE", {}),
    "/v2/process-instances/modification": (
        "MODIFY_PROCESS_INSTANCE", {"plan": PLANS["modification"]},
    ),
    "/v2/process-instances/migration": (
        "MIGRATE_PROCESS_INSTANCE", {"migrationPlan": PLANS["migration"]},
    ),
    "/v2/process-instances/deletion": ("DELETE_PROCESS_INSTANCE", {}),
    "/v2/process-instances/incident-resolution": ("RESOLVE_INCIDENT", {"retries": 2}),
    "/v2/tasks/retry": ("RETRY_TASK", {"retries": 3}),
    "/v2/tasks/discard": ("DISCARD_TASK", {}),
}  # fmt: skip


def post(path: str, body: Any, api: FakeApi | None = None) -> Reply:
    async def run() -> Reply:
        async with served(api or FakeApi()) as server:
            return await ask(server.url, "POST", path, json=body)

    return asyncio.run(run())


@pytest.mark.parametrize("path", PATHS)
def test_each_type_has_its_path(path: str) -> None:
    type_, more = PATHS[path]
    api = FakeApi()
    reply = post(path, {"filter": WHERE, "throttle": 5, "priority": -1, **more}, api)
    assert reply.status == 200
    assert reply.json()["batchOperationKey"] == "17"
    assert reply.json()["batchOperationType"] == type_
    asked = msgspec.json.decode(api.calls[0][1])
    assert (asked["type"], asked["filter"], asked["throttle"]) == (type_, WHERE, 5)
    assert asked.get("retries", 0) == more.get("retries", 0)
    for name, plan in PLANS.items():
        assert (name in asked) == (plan in more.values())
    preview = post(path, {"filter": WHERE, "dryRun": True, **more}).json()
    assert preview["batchOperationKey"] is None and preview["preview"]["items"] == 3


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    "body", [{}, {"filter": WHERE, "colour": 1}, {"filter": 7, "plan": 7, "migrationPlan": 7}]
)
def test_a_body_that_is_wrong_is_refused(path: str, body: Any) -> None:
    reply = post(path, body)
    assert (reply.status, reply.json()["code"]) == (400, "INVALID_ARGUMENT")


def test_steering_answers_nothing_or_why_not() -> None:
    for verb in ("suspension", "resumption", "cancellation"):
        api = FakeApi()
        assert post(f"/v2/batch-operations/17/{verb}", None, api).status == 204
        assert api.calls[0][1] == "17"
        for error, status in ((NotFound("gone"), 404), (InvalidState("not now"), 409)):
            api.error = error
            assert post(f"/v2/batch-operations/17/{verb}", None, api).status == status


def test_fields_are_called_as_in_the_orchestration_cluster_api() -> None:
    page = post("/v2/batch-operations/search", {"filter": {"state": "ACTIVE"}}).json()
    (found,) = page["items"]
    assert found["operationsTotalCount"] == 9 and found["startDate"] == "2030-01-02T12:00:00Z"
    assert found["errors"] == [{"partitionId": 2, "type": "QUERY_FAILED", "message": "no ü"}]
    assert page["page"]["endCursor"] == "b"
    items = post("/v2/batch-operation-items/search", {"page": {"limit": 3}}).json()
    assert items["items"][0]["itemKey"] == "5" and items["page"]["hasMoreTotalItems"]
