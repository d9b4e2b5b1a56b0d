"""Distributions over plain HTTP, as a program in any language asks a real node in memory."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import pytest
from tests.gateway.distribution.dark_partitions import deploy, go_dark, happened
from tests.gateway.fake_api import Reply, ask

from holdfast.engine.distribution.values import Decision, DistributionIntent
from holdfast.gateway.http import HttpServer
from holdfast.gateway.processes import definitions
from holdfast.testing import MemoryNode

UNKNOWN = "2251799813999999"
ELSEWHERE = str(9 << 51)
Ask = Callable[..., Awaitable[Reply]]


def talk(story: Callable[[MemoryNode, Ask], Awaitable[None]]) -> None:
    """Tells a story to a node of three partitions."""

    async def run() -> None:
        node = await MemoryNode(partitions=3).start()
        server = HttpServer(node.gateway)
        await server.start()
        try:
            await story(node, partial(ask, server.url))
        finally:
            await server.close()
            await node.close()

    asyncio.run(run())


def test_what_is_stuck_is_found_and_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(definitions, "DEPLOYMENT_WAIT_MS", 1)

    async def story(node: MemoryNode, ask: Ask) -> None:
        dark = go_dark(monkeypatch, 2, 3)
        first, second = [each.process_definition_key for each in await deploy(node, "a", "b")]
        found = await ask("POST", "/v2/distributions/search", json={"target": 3, "limit": 1})
        assert found.json()["after"] == first
        (item,) = found.json()["items"]
        assert item["distributionKey"] == first
        assert [each["state"] for each in item["targets"]] == ["IN_FLIGHT", "IN_FLIGHT"]
        shown = await ask("GET", f"/v2/distributions/{second}")
        assert shown.json()["targets"][0] == {
            "partition": 2, "state": "WAITING", "attempts": 0, "nextAttempt": None,
            "refusal": None, "behind": first,
        }  # fmt: skip

        path = f"/v2/distributions/{first}"
        skipped = await ask("POST", f"{path}/skip", json={"partition": 2, "by": "ann"})
        body = {"by": "ann", "reason": "by mistake"}
        canceled = await ask("POST", f"{path}/cancellation", json=body)
        assert (skipped.status, canceled.status) == (204, 204)
        decisions = happened(node, 1, DistributionIntent.SKIPPED, DistributionIntent.CANCELED)
        assert [each.value for each in decisions] == [
            Decision("ann", "", (2,)), Decision("ann", "by mistake", (3,)),
        ]  # fmt: skip

        dark.clear()
        resumed = await ask("POST", "/v2/distributions/resumption", json={"partition": 2})
        assert resumed.json() == {"count": 1}

    talk(story)


SEARCH, SKIP, CANCEL, RESUME = "search", "{key}/skip", "{key}/cancellation", "resumption"


@pytest.mark.parametrize(
    ("path", "body", "found"),
    [
        (SEARCH, {"limit": 0}, "Expected a whole number of at least 1 in limit"),
        (SEARCH, {"limit": 1_000_000}, "Expected a whole number of at most 10000 in limit"),
        (SEARCH, {"target": 4}, "Expected target from 1 to 3, but found 4"),
        (SEARCH, {"target": "2"}, "in target"),
        (SEARCH, {"after": "soon"}, "Expected the key of a distribution, but found 'soon'"),
        (SEARCH, {"colour": "red"}, "Expected no field colour: it is unknown"),
        (SKIP, {"partition": 0, "by": "ann"}, "Expected a whole number of at least 1 in partition"),
        (SKIP, {"partition": 4, "by": "ann"}, "Expected partition from 1 to 3, but found 4"),
        (SKIP, {"partition": 2, "by": ""}, "Expected a name of who decides"),
        (SKIP, {"partition": 2, "by": "a\nb"}, "Expected a name of who decides"),
        (SKIP, {"partition": 2}, "Expected a field by, but there is none"),
        (SKIP, {"by": "ann"}, "Expected a field partition, but there is none"),
        (
            SKIP,
            {"partition": 2, "by": "ann", "force": True},
            "Expected no field force: it is unknown",
        ),
        (CANCEL, {"by": ""}, "Expected a name of who decides"),
        (CANCEL, {}, "Expected a field by, but there is none"),
        (CANCEL, {"by": "ann", "partition": 2}, "Expected no field partition: it is unknown"),
        (RESUME, {"partition": 4}, "Expected partition from 1 to 3, but found 4"),
        (RESUME, {"partition": -1}, "Expected a whole number of at least 1 in partition"),
        (RESUME, {"partition": 1.5}, "in partition"),
        (RESUME, {}, "Expected a field partition, but there is none"),
        (RESUME, {"partition": 2, "key": "1"}, "Expected no field key: it is unknown"),
    ],
)
def test_a_wrong_body_is_refused_with_its_field(
    path: str, body: dict[str, Any], found: str
) -> None:
    async def story(node: MemoryNode, ask: Ask) -> None:
        reply = await ask("POST", f"/v2/distributions/{path.format(key=UNKNOWN)}", json=body)
        assert (reply.status, reply.json()["code"]) == (400, "INVALID_ARGUMENT")
        assert found in reply.json()["detail"]
        if found.startswith(("Expected limit", "Expected target", "Expected partition")):
            assert reply.json()["fields"] == {"field": found.split()[1]}

    talk(story)


@pytest.mark.parametrize(("key", "status"), [(UNKNOWN, 404), (ELSEWHERE, 404), ("nine", 400)])
def test_a_key_that_is_unknown_or_none_is_told_apart(key: str, status: int) -> None:
    async def story(node: MemoryNode, ask: Ask) -> None:
        for method, path, body in (
            ("GET", "", None),
            ("POST", "/skip", {"partition": 2, "by": "ann"}),
            ("POST", "/cancellation", {"by": "ann"}),
        ):
            reply = await ask(method, f"/v2/distributions/{key}{path}", json=body)
            assert reply.status == status, reply.content
            assert reply.headers["content-type"] == "application/problem+json"
            assert key in reply.json()["detail"]

    talk(story)
