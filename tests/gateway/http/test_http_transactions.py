"""Transactions over plain HTTP, as a program in any language asks a real node in memory."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import pytest
from tests.gateway.access.access_node import guarded
from tests.gateway.distribution.dark_partitions import go_dark
from tests.gateway.fake_api import Reply, ask

from holdfast.clock import SystemClock
from holdfast.engine.identity.values import Permission, ResourceType
from holdfast.errors import Forbidden
from holdfast.gateway.http import HttpServer
from holdfast.gateway.processes.shapes import NewMessage
from holdfast.gateway.tasks.shapes import NewTask
from holdfast.gateway.transactions.shapes import TransactionRequest, TransactionStep
from holdfast.records import partition_for
from holdfast.testing import MemoryNode

PARTITIONS = 3
ON = {
    each: next(f"k{n}" for n in range(99) if partition_for(f"k{n}", PARTITIONS) == each)
    for each in (1, 2, 3)
}  # partition -> a key that belongs to it
Ask = Callable[..., Awaitable[Reply]]


def talk(story: Callable[[MemoryNode, Ask], Awaitable[None]]) -> None:
    async def run() -> None:
        node = await MemoryNode(partitions=PARTITIONS, clock=SystemClock()).start()
        server = HttpServer(node.gateway)
        await server.start()
        try:
            await story(node, partial(ask, server.url))
        finally:
            await server.close()
            await node.close()

    asyncio.run(run())


def submit(partition: int, n: int = 0) -> dict[str, Any]:
    return {"submit": {"type": "work", "payload": {"n": n}, "key": ON[partition]}}


def test_all_is_done_or_every_reason_is_told() -> None:
    async def story(node: MemoryNode, ask: Ask) -> None:
        body = {
            "operations": [
                submit(1), submit(2),
                {"publish": {"name": "paid", "correlationKey": ON[3], "messageId": "m"}},
            ],
            "id": "order-7",
        }  # fmt: skip
        done = (await ask("POST", "/v2/transactions", json=body)).json()
        assert done["state"] == "COMMITTED" and done["refused"] == []
        assert [int(each) >> 51 for each in done["keys"]] == [1, 2, 3]
        again = (await ask("POST", "/v2/transactions", json=body)).json()
        assert again == done, "the same id is the same transaction"
        other = (await ask("POST", "/v2/transactions", json={**body, "id": "order-8"})).json()
        assert other["state"] == "ABORTED" and other["keys"] == []
        assert other["refused"][0]["code"] == "ALREADY_EXISTS"
        assert other["refused"][0]["key"] in done["keys"]
        shown = await ask("GET", f"/v2/transactions/{done['transactionKey']}")
        assert shown.json()["partitions"] == [1, 2, 3]
        metrics = (await ask("GET", "/metrics")).content.decode()
        assert 'holdfast_transactions_total{outcome="COMMITTED"} 1.0' in metrics
        assert 'holdfast_transactions_total{outcome="ABORTED"} 1.0' in metrics

    talk(story)


def test_a_stuck_one_is_listed_with_what_it_waits_for(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(node: MemoryNode, ask: Ask) -> None:
        dark = go_dark(monkeypatch, 3)
        steps = [
            submit(1),
            {"publish": {"name": "m", "correlationKey": ON[1]}},
            submit(2),
            submit(3),
        ]
        body = {"operations": steps, "timeoutMs": 300}
        waiting = asyncio.ensure_future(ask("POST", "/v2/transactions", json=body))
        items: list[Any] = []
        async with asyncio.timeout(10):
            while not (items and items[0]["missing"] == [3]):
                items = (await ask("POST", "/v2/transactions/search", json={})).json()["items"]
        [item] = items
        assert (item["state"], item["partition"]) == ("OPEN", 1)
        metrics = (await ask("GET", "/metrics")).content.decode()
        assert 'holdfast_transactions_open{partition="1"} 1.0' in metrics
        assert 'holdfast_transactions_prepared{partition="2"} 1.0' in metrics
        shown = (await ask("GET", f"/v2/transactions/{item['transactionKey']}")).json()
        assert [each["kind"] for each in shown["operations"]] == [
            "submit", "publish", "submit", "submit",
        ]  # fmt: skip
        aborted = (await waiting).json()
        assert aborted["state"] == "ABORTED"
        assert aborted["refused"][0]["code"] == "DEADLINE_EXCEEDED"
        listed = (await ask("POST", "/v2/transactions/search", json={})).json()["items"]
        assert [each["missing"] for each in listed] == [[3]], "it has not heard of the abort"
        dark.clear()

    talk(story)


@pytest.mark.parametrize(
    ("body", "detail"),
    [
        ({"operations": []}, "number of operations"),
        ({"operations": [{}]}, "operation 0 is 0 of them"),
        ({"operations": [{**submit(1), "start": {"processId": "p"}}]}, "operation 0 is 2 of them"),
        (
            {"operations": [submit(1), {"submit": {"type": "a", "key": ""}}]},
            "Operation 1: Expected a key",
        ),
        ({"operations": [submit(1)], "timeoutMs": 0}, "timeoutMs"),
        ({"operations": [{"complete": {"jobKey": "7", "lease": "7"}}]}, "with key 7"),
    ],
)
def test_a_wrong_request_is_refused_with_the_place(body: dict[str, Any], detail: str) -> None:
    async def story(node: MemoryNode, ask: Ask) -> None:
        answer = await ask("POST", "/v2/transactions", json=body)
        assert answer.status in (400, 404)
        assert detail in answer.json()["detail"]

    talk(story)


def test_each_operation_needs_its_own_permission_wherever_it_is_done() -> None:
    async def run() -> None:
        async with guarded() as there:
            ann, bob = await there.machine("ann"), await there.machine("bob")
            await there.let("ann", ResourceType.TASK, "work", Permission.CREATE)
            allowed = [TransactionStep(submit=NewTask("work", key=ON[each])) for each in (1, 1, 2)]
            other = [TransactionStep(submit=NewTask("secret", key=ON[2]))]
            message = [TransactionStep(publish=NewMessage("paid", ON[3]))]
            home = [TransactionStep(submit=NewTask("work")) for _ in range(3)]
            request = TransactionRequest([*home, *other, *message])
            refused = await ann.transactions.commit(request)
            assert refused.state == "ABORTED"
            assert {each.code for each in refused.refused} == {"FORBIDDEN"}
            assert {each.operation for each in refused.refused} <= {3, 4}
            assert (await ann.transactions.commit(TransactionRequest(allowed[1:]))).state == (
                "COMMITTED"
            )
            with pytest.raises(Forbidden):
                await bob.transactions.commit(TransactionRequest(allowed))
            with pytest.raises(Forbidden):
                await ann.transactions.get(refused.transaction_key)

    asyncio.run(run())
