"""Every operation that the public client documents and that is served here answers with its codes.

What the client documents is read from its sources: a method, a path, and the statuses that it knows
of. The walk asks each operation for what is not there, and with a body that is none.
"""

import asyncio
import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import aiohttp
import camunda_orchestration_sdk.api as api
import pytest
from request_bodies import Bodies
from sdk import UNKNOWN, served
from tests.gateway.fake_tables import FakeTables

from holdfast.gateway.endpoint import Endpoint
from holdfast.gateway.http.endpoints import ENDPOINTS
from holdfast.gateway.http.openapi import openapi_document

DOCUMENT = openapi_document(ENDPOINTS)
KNOWN = {"processDefinitionId": ["order"], "targetProcessDefinitionKey": [UNKNOWN]}
OURS = {
    "set_variables": 404,  # the scope is not there: the documents leave it open
    "pin_clock": 403,  # the node was not started for it
    "reset_clock": 403,
}


def modules(package: ModuleType) -> Iterator[ModuleType]:
    for each in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        if not each.ispkg:
            yield importlib.import_module(each.name)


def shape_of(path: str) -> str:
    """A path without the names of its parameters."""
    return re.sub(r"{\w+}", "{}", path)


def documented() -> dict[tuple[str, str], set[int]]:
    """The statuses of each operation, by method and path."""
    found: dict[tuple[str, str], set[int]] = {}
    for module in modules(api):
        source = inspect.getsource(module)
        method = re.search(r'"method": "(\w+)"', source)
        url = re.search(r'"url":\s*"([^"]+)"', source)
        if method and url:
            statuses = {int(each) for each in re.findall(r"status_code == (\d+)", source)}
            found[method[1].upper(), f"/v2{shape_of(url[1])}"] = statuses
    return found


STATUSES = documented()
SERVED = [each for each in ENDPOINTS if (each.method, shape_of(each.path)) in STATUSES]


def statuses_of(end: Endpoint) -> set[int]:
    return STATUSES[end.method, shape_of(end.path)]


def test_most_of_the_api_is_served() -> None:
    assert len(SERVED) > 80, "otherwise the walk would prove nothing"


@pytest.mark.parametrize("end", SERVED, ids=lambda end: end.name)
def test_success_has_the_documented_status(end: Endpoint) -> None:
    assert end.status in statuses_of(end)


def test_what_is_unknown_and_what_is_wrong_have_the_documented_statuses() -> None:
    async def run() -> None:
        async with (
            served(FakeTables().open) as (_, _, url),
            aiohttp.ClientSession(url, headers={"content-type": "application/json"}) as session,
        ):

            async def status(end: Endpoint, body: Any) -> int:
                path = re.sub(r"{\w+}", UNKNOWN, end.path)
                async with session.request(end.method, path, json=body) as reply:
                    return reply.status

            wrong: list[tuple[str, str, int]] = []
            for end in SERVED:
                valid = None if end.request is None else minimal(end)
                told = await status(end, valid)
                expected = statuses_of(end) | {503}
                if end.parameters and 404 in expected and not end.name.startswith("search_"):
                    expected = {404}
                if told not in expected and told != OURS.get(end.name):
                    wrong.append((end.name, "unknown", told))
                if end.request is not None and 400 in statuses_of(end):
                    told = await status(end, {"nonsense": 1})
                    if told != 400:
                        wrong.append((end.name, "nonsense", told))
            assert wrong == [], wrong

    asyncio.run(run())


def minimal(end: Endpoint) -> Any:
    operation = DOCUMENT["paths"][end.path][end.method.lower()]
    schema = operation["requestBody"]["content"]["application/json"]["schema"]
    body = Bodies(DOCUMENT, KNOWN).least(schema)
    return body | {"requestTimeout": -1} if end.name == "activate_jobs" else body  # do not wait
