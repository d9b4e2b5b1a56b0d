"""A request that says by which id it will come again is done once."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

from tests.gateway.fake_api import Reply, ask

from holdfast.gateway.http import HttpServer
from holdfast.testing import MemoryNode

Ask = Callable[..., Awaitable[Reply]]
PATH = "/v2/tasks/batch"
TASKS = {"tasks": [{"type": "mail", "payload": number} for number in range(3)]}


def talk(story: Callable[[Ask], Awaitable[None]]) -> None:
    """Tells a story to a node of three partitions."""

    async def run() -> None:
        node = await MemoryNode(partitions=3).start()
        server = HttpServer(node.gateway)
        await server.start()
        try:
            await story(partial(ask, server.url))
        finally:
            await server.close()
            await node.close()

    asyncio.run(run())


def test_what_is_asked_again_with_the_same_id_is_done_once() -> None:
    async def story(ask: Ask) -> None:
        headers = {"Holdfast-Request-Id": "order-1"}
        first = (await ask("POST", PATH, json=TASKS, headers=headers)).json()
        again = (await ask("POST", PATH, json=TASKS, headers=headers)).json()
        assert again == first and all(each["created"] for each in first["tasks"])
        other = (
            await ask("POST", PATH, json=TASKS, headers={"Holdfast-Request-Id": "order-2"})
        ).json()
        plain = (await ask("POST", PATH, json=TASKS)).json()
        keys = [each["taskKey"] for answer in (first, other, plain) for each in answer["tasks"]]
        assert len(set(keys)) == 9
        listed = (await ask("POST", "/v2/tasks/search", json={})).json()["items"]
        assert sorted(each["taskKey"] for each in listed) == sorted(keys)

    talk(story)


def test_an_id_that_is_none_is_refused() -> None:
    async def story(ask: Ask) -> None:
        for wrong in ("", "x" * 1_000):
            found = await ask("POST", PATH, json=TASKS, headers={"Holdfast-Request-Id": wrong})
            assert found.status == 400 and found.json()["code"] == "INVALID_ARGUMENT"

    talk(story)
