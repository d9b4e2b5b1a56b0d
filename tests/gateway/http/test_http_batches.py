"""Batch operations over HTTP: a path for each type, and what is wrong is a problem."""

import asyncio
from typing import Any

import msgspec
import pytest
from tests.gateway.fake_api import FakeApi, Reply, ask, served
from tests.gateway.samples import sample

from holdfast.errors import InvalidState, NotFound
from holdfast.gateway.batch.shapes import BatchOperationPage

WHERE = {"processDefinitionId": "order", "state": "TERMINATED"}
COLUMNS = {"processId": {"$eq": "order"}, "state": {"$in": ["CANCELED"]}}
PLANS: dict[str, dict[str, Any]] = {
    "modification": {"move": [{"sourceId": "a", "targetId": "b"}], "variables": {}},
    "migration": {
        "targetProcessDefinitionKey": "4",
        "mappingInstructions": [{"sourceElementId": "a", "targetElementId": "b"}],
    },
}
MOVES = [{"sourceElementId": "a", "targetElementId": "b"}]
# by path: the type, what goes beside the filter, and the plan that becomes of it
PATHS: dict[str, tuple[str, dict[str, Any], str | None]] = {
    "/v2/process-instances/cancellation": ("CANCEL_PROCESS_INSTANCE", {}, None),
    "/v2/process-instances/modification": (
        "MODIFY_PROCESS_INSTANCE", {"moveInstructions": MOVES}, "modification",
    ),
    "/v2/process-instances/migration": (
        "MIGRATE_PROCESS_INSTANCE", {"migrationPlan": PLANS["migration"]}, "migration",
    ),
    "/v2/process-instances/deletion": ("DELETE_PROCESS_INSTANCE", {}, None),
    "/v2/process-instances/incident-resolution": ("RESOLVE_INCIDENT", {"retries": 2}, None),
    "/v2/tasks/retry": ("RETRY_TASK", {"retries": 3}, None),
    "/v2/tasks/discard": ("DISCARD_TASK", {}, None),
}  # fmt: skip


def chosen(path: str) -> Any:
    """What becomes of the filter: the REST API's has other names, that of tasks goes as it is."""
    if "tasks" in path:
        return WHERE
    return {"processInstance": COLUMNS} if "incident" in path else COLUMNS


def post(path: str, body: Any, api: FakeApi | None = None) -> Reply:
    async def run() -> Reply:
        async with served(api or FakeApi()) as server:
            return await ask(server.url, "POST", path, json=body)

    return asyncio.run(run())


@pytest.mark.parametrize("path", PATHS)
def test_each_type_has_its_path(path: str) -> None:
    type_, more, planned = PATHS[path]
    api = FakeApi()
    reply = post(path, {"filter": WHERE, "throttle": 5, "priority": -1, **more}, api)
    assert reply.status == 200
    assert reply.json()["batchOperationKey"] == "17"
    assert reply.json()["batchOperationType"] == type_
    asked = msgspec.json.decode(api.calls[0][1])
    assert (asked["type"], asked["filter"], asked["throttle"]) == (type_, chosen(path), 5)
    assert asked.get("retries", 0) == more.get("retries", 0)
    assert {name: asked.get(name) for name in PLANS if name in asked} == (
        {planned: PLANS[planned]} if planned else {}
    )
    preview = post(path, {"filter": WHERE, "dryRun": True, **more}).json()
    assert preview["batchOperationKey"] is None and preview["preview"]["items"] == 3


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    "body",
    [{}, {"filter": WHERE, "colour": 1}, {"filter": 7, "migrationPlan": 7, "moveInstructions": 7}],
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


@pytest.mark.parametrize("path", [path for path in PATHS if "instances" in path])
def test_a_filter_that_is_empty_or_of_unknown_fields_is_refused(path: str) -> None:
    for filter_, field in (({}, "filter"), ({"processId": "order"}, "processId")):
        api = FakeApi()
        reply = post(path, {"filter": filter_, **PATHS[path][1]}, api)
        assert (reply.status, reply.json()["fields"]) == (400, {"field": field})
        assert api.calls == []


def test_all_that_is_known_is_listed() -> None:
    page = post("/v2/batch-operations/listing", {"filter": {"state": "ACTIVE"}}).json()
    (found,) = page["items"]
    shown = sample(BatchOperationPage)
    assert found["operationsTotalCount"] == shown.items[0].operations_total_count
    assert found["startDate"] == "2030-01-02T12:00:00Z"
    assert found["errors"] == msgspec.to_builtins(shown.items[0].errors)
    assert found["filter"] and page["page"]["endCursor"] == shown.page.end_cursor
    items = post("/v2/batch-operation-items/listing", {"page": {"limit": 3}}).json()
    assert items["items"][0]["itemKey"] == "7" and items["page"]["hasMoreTotalItems"]
