"""Transactions over the members of a cluster, while members are lost and partitions move."""

import asyncio
from collections import Counter

from tests.cluster.simulated import NAMES, PARTITIONS, SimulatedCluster, play

from holdfast.client.patience import patient
from holdfast.errors import Code, HoldfastError
from holdfast.gateway.tasks.shapes import NewTask
from holdfast.gateway.transactions.shapes import (
    TransactionQuery,
    TransactionRequest,
    TransactionResult,
    TransactionStep,
)
from holdfast.records import partition_for

_PASSING = (
    Code.UNAVAILABLE, Code.UNKNOWN, Code.MOVED, Code.RESOURCE_EXHAUSTED, Code.DEADLINE_EXCEEDED,
)  # fmt: skip


def request(number: int, size: int = 3) -> TransactionRequest:
    """Tasks with keys of their own, which are on several partitions."""
    steps = [TransactionStep(submit=NewTask("mail", key=key)) for key in keys(number, size)]
    return TransactionRequest(steps, f"t{number}", timeout_ms=10_000)


def keys(number: int, size: int = 3) -> list[str]:
    return [f"{number}-{n}" for n in range(size)]


async def commit(cluster: SimulatedCluster, number: int) -> TransactionResult:
    """Asks one member after another with the same id, until it is known what became of it."""
    for attempt in range(200):
        up = [name for name in NAMES if name in cluster.members]
        name = up[(number + attempt) % len(up)]
        try:
            async with asyncio.timeout(30):
                return await cluster.gateway(name).transactions.commit(request(number))
        except TimeoutError:
            continue
        except HoldfastError as error:
            if error.code not in _PASSING:
                raise
        await asyncio.sleep(0.1)
    raise AssertionError("nobody knows what became of it")


def test_a_client_that_commits_at_one_member_reads_it_at_another() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.start_all()
        assert len({partition_for(each, PARTITIONS) for each in keys(1, 8)}) > 1
        for number, name in enumerate(NAMES):
            done = await cluster.gateway(name).transactions.commit(request(number, 8))
            assert done.state == "COMMITTED"
            for other in NAMES:
                reading = patient(cluster.gateway(other), 5)
                for key in done.keys:
                    assert (await reading.tasks.get(key)).type == "mail"

    play(story)


def test_transactions_are_whole_though_members_are_lost() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.start_all()
        told: dict[int, TransactionResult] = {}

        async def client(numbers: range) -> None:
            for number in numbers:
                told[number] = await commit(cluster, number)
                await asyncio.sleep(0.05)

        clients = [asyncio.ensure_future(client(range(each, 90, 3))) for each in range(3)]
        for victim in NAMES:
            await asyncio.sleep(0.3)
            await cluster.kill(victim)
            await asyncio.sleep(1)
            await cluster.start(victim)
            await cluster.settled()
        await asyncio.gather(*clients)
        gateway = cluster.gateway("a")
        async with asyncio.timeout(600):
            while (await gateway.transactions.page(TransactionQuery())).items:  # noqa: ASYNC110
                await asyncio.sleep(1)
        states = Counter(each.state for each in told.values())
        assert states["COMMITTED"] > 60, states
        for number, result in told.items():
            again = await gateway.tasks.submit([NewTask("mail", key=each) for each in keys(number)])
            if result.state == "COMMITTED":
                assert [each.task_key for each in again] == result.keys
                assert not any(each.created for each in again)
            else:
                assert all(each.created for each in again), "nothing of it was done"

    play(story)
