"""The OpenAPI document tells of every endpoint and every shape."""

import asyncio
import inspect
from types import ModuleType
from typing import Any

import msgspec
import pytest
from tests.gateway.fake_api import FakeApi, Reply, ask, served

from holdfast.gateway import shapes
from holdfast.gateway.batch import shapes as batch_shapes
from holdfast.gateway.content import shapes as content_shapes
from holdfast.gateway.distribution import shapes as distribution_shapes
from holdfast.gateway.http.endpoints import ENDPOINTS
from holdfast.gateway.journal import shapes as journal_shapes
from holdfast.gateway.processes import shapes as process_shapes
from holdfast.gateway.tasks import shapes as task_shapes

NOT_ON_THE_WIRE = (shapes.Shape, shapes.Question, process_shapes.NewMessage)


def get(path: str) -> Reply:
    async def run() -> Reply:
        async with served(FakeApi()) as server:
            return await ask(server.url, "GET", path)

    return asyncio.run(run())


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    reply = get("/openapi/openapi.json")
    assert reply.headers["content-type"] == "application/json"
    return reply.json()


def test_the_document_is_also_at_the_folder_itself(document: dict[str, Any]) -> None:
    assert get("/openapi").json() == document


def test_every_endpoint_is_listed_once(document: dict[str, Any]) -> None:
    listed = [(verb.upper(), path) for path, verbs in document["paths"].items() for verb in verbs]
    assert sorted(listed) == sorted((each.method, each.path) for each in ENDPOINTS)
    assert len({each.name for each in ENDPOINTS}) == len(ENDPOINTS)


@pytest.mark.parametrize(
    "module",
    [
        shapes,
        task_shapes,
        process_shapes,
        distribution_shapes,
        batch_shapes,
        content_shapes,
        journal_shapes,
    ],
)
def test_every_shape_is_listed(document: dict[str, Any], module: ModuleType) -> None:
    every = {
        kind
        for _, kind in inspect.getmembers(module, inspect.isclass)
        if issubclass(kind, shapes.Shape) and kind not in NOT_ON_THE_WIRE
    }
    listed = set(document["components"]["schemas"])
    # some are sent or answered with a few fields more
    missing = [each for each in every if not listed & {each.__name__, *_extended(each)}]
    assert missing == []


def _extended(kind: type) -> list[str]:
    return [each.__name__ for each in kind.__subclasses__()]


def test_raw_fields_are_any_json(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]
    assert schemas["NewTask"]["properties"]["payload"] == {}
    assert schemas["ActivatedJob"]["properties"]["payload"] == {}
    assert schemas["TaskOutcome"]["properties"]["result"] == {}
    assert schemas["NewProcessInstance"]["properties"]["variables"] == {}


def test_every_reference_leads_somewhere(document: dict[str, Any]) -> None:
    text = msgspec.json.encode(document).decode()
    names = {part.partition('"')[0] for part in text.split('"#/components/schemas/')[1:]}
    assert names <= set(document["components"]["schemas"])


def test_an_operation_names_its_parameter_its_body_and_its_answers(
    document: dict[str, Any],
) -> None:
    operation = document["paths"]["/v2/schedules/{schedule_id}"]["put"]
    assert [each["name"] for each in operation["parameters"]] == ["schedule_id"]
    body = operation["requestBody"]["content"]["application/json"]["schema"]
    assert body == {"$ref": "#/components/schemas/NewSchedule"}
    assert set(operation["responses"]) == {"200", "503", "default"}
    assert operation["responses"]["503"]["headers"].keys() == {"Retry-After"}
    assert "application/problem+json" in operation["responses"]["default"]["content"]
    assert "204" in document["paths"]["/v2/tasks/{task_key}/cancellation"]["post"]["responses"]
