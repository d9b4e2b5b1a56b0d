"""Transactions among members that move their partitions, crash and lose their connections."""

import asyncio
from collections import Counter
from typing import Any

import msgspec
from tests.engine.transaction_logs import check_logs, check_state

from holdfast.errors import Code, HoldfastError
from holdfast.gateway.processes.shapes import NewMessage
from holdfast.gateway.tasks.shapes import ActivationRequest, JobCompletion, NewTask
from holdfast.gateway.transactions.shapes import (
    TransactionQuery,
    TransactionRequest,
    TransactionResult,
    TransactionStep,
)

from .simulated import PARTITIONS, QUIET_SECONDS, SimulatedCluster

TRANSACTIONS = 40
KEYS = 12  # fewer than transactions want: some meet


class TransactingCluster(SimulatedCluster):
    """Members whose clients have transactions done, and workers that complete jobs with them."""

    async def commit(self, number: int) -> TransactionResult:
        """One transaction over a few partitions, sent again with its id until it is known."""
        random = self.random
        steps = [
            TransactionStep(submit=_task(f"tx{number}-{n}", f"key-{random.randrange(KEYS * 8)}"))
            for n in range(random.randint(1, 4))
        ]
        if random.random() < 0.5:
            variables = msgspec.Raw(f'{{"t":"tx{number}-m"}}'.encode())
            new = NewMessage("m", str(random.randrange(9)), variables, f"id-{number}", 3_600_000)
            steps.append(TransactionStep(publish=new))
        return await self.done(TransactionRequest(steps, f"t{number}", timeout_ms=20_000))

    async def done(self, request: TransactionRequest) -> TransactionResult:
        return await self.persistently(lambda gateway: gateway.transactions.commit(request))

    async def hand_on(self, name: str, over: asyncio.Event) -> None:
        """A worker: each job is completed together with a message that says so."""
        ask = ActivationRequest(["work"], name, 3, 20_000, 1_000)
        while not over.is_set():
            for job in await self.persistently(lambda gateway: gateway.jobs.activate(ask)):
                text = f"tx-{name}-{job.job_key}-{job.attempt}-{job.lease}"
                done = JobCompletion(job.job_key, job.lease, msgspec.Raw(f'"{text}"'.encode()))
                variables = msgspec.Raw(f'{{"t":"{text}"}}'.encode())
                told = NewMessage("done", job.job_key, variables, None, 3_600_000)
                steps = [TransactionStep(complete=done), TransactionStep(publish=told)]
                await self.done(TransactionRequest(steps, text, timeout_ms=20_000))

    async def persistently(self, ask: Any) -> Any:
        """As for everything else; a transaction may take a while to be decided."""
        while True:
            try:
                async with asyncio.timeout(60):
                    return await ask(self.any_gateway())
            except TimeoutError:
                pass
            except HoldfastError as error:
                if error.code not in _PASSING:
                    raise
            await asyncio.sleep(self.random.uniform(0.05, 0.5))

    async def checked(self) -> Counter[str]:
        """Whatever was told is so; nothing is left over; what is replayed is what is live."""
        logs = {each: await self.records(each) for each in range(1, PARTITIONS + 1)}
        known = check_logs(logs)
        for partition, placement in self.placements.items():
            live = self.members[placement.member].runner.processor(partition)
            check_state(live.view, live.state.dump())
        await self._check_states()
        return Counter(each.state for each in known)


_PASSING = frozenset(
    {Code.UNAVAILABLE, Code.UNKNOWN, Code.MOVED, Code.RESOURCE_EXHAUSTED, Code.DEADLINE_EXCEEDED}
)


def _task(text: str, key: str) -> NewTask:
    return NewTask("work", msgspec.Raw(f'"{text}"'.encode()), key=key, window_ms=86_400_000)


async def transacting(seed: int) -> Counter[str]:
    """All of it with one seed; what happened."""
    cluster = TransactingCluster(seed)
    await cluster.start()
    loop, over = asyncio.get_running_loop(), asyncio.Event()
    told: list[TransactionResult] = []

    async def client(numbers: range) -> None:
        for number in numbers:
            told.append(await cluster.commit(number))
            await asyncio.sleep(cluster.random.uniform(0, 1.5))

    clients = [loop.create_task(client(range(each, TRANSACTIONS, 3))) for each in range(3)]
    workers = [loop.create_task(cluster.hand_on(f"w{each}", over)) for each in range(2)]
    await cluster.trouble()
    await cluster.settle()
    async with asyncio.timeout(QUIET_SECONDS):
        await asyncio.gather(*clients)
        over.set()
        await asyncio.gather(*workers)
        while (await cluster.persistently(_unfinished)).items:  # noqa: ASYNC110 - virtual time
            await asyncio.sleep(1)
    await asyncio.sleep(600)  # whatever is sent again has come
    await cluster.settle()
    decided = await cluster.checked()
    states = Counter(each.state for each in told)
    assert sum(states.values()) == TRANSACTIONS
    assert states["COMMITTED"] <= decided["COMMITTED"]
    for member in cluster.members.values():
        await member.crash(cluster.network)
    return cluster.moves + decided


def _unfinished(gateway: Any) -> Any:
    return gateway.transactions.page(TransactionQuery())
