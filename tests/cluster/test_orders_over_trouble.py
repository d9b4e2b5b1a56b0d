"""Orders in virtual time: tasks, processes and messages, whatever members go through."""

import asyncio
from collections.abc import Awaitable, Callable
from random import Random
from typing import Any, TypeVar

import msgspec
import pytest
from tests.cluster.simulated import NAMES, PARTITIONS, SimulatedCluster, play

from holdfast.client.process import resource_of
from holdfast.engine.jobs.values import JobState
from holdfast.errors import Moved, Unavailable, Unknown
from holdfast.gateway.access.asking import requesting
from holdfast.gateway.processes.shapes import NewMessage, NewProcessInstance
from holdfast.gateway.service import Gateway
from holdfast.gateway.tasks.shapes import ActivationRequest, JobCompletion, NewTask
from holdfast.model.dsl import Process
from holdfast.testing.disk import SimulatedDisk

T = TypeVar("T")

PROCESS = Process("order").task("pack").wait("paid", message="payment", key="order").end()


class Shop:
    """Starts orders, does their jobs and publishes their payments, until all have ended."""

    def __init__(self, cluster: SimulatedCluster, seed: int) -> None:
        self.cluster = cluster
        self.dice = Random(seed)
        self.instances: dict[str, str] = {}  # by order
        self.tasks: dict[str, str] = {}  # by key
        self.done: set[str] = set()
        self.is_over = False

    async def persist(self, what: str, ask: Callable[[Gateway], Awaitable[T]]) -> T:
        """Asks members, with one id, until one answers, as a client does."""
        while True:
            name = self.dice.choice(sorted(self.cluster.members))
            try:
                with requesting(what):
                    return await ask(self.cluster.gateway(name))
            except (Unavailable, Unknown, Moved):
                await asyncio.sleep(0.05)

    async def order(self, number: int) -> None:
        name = f"order {number}"
        variables = msgspec.Raw(msgspec.json.encode({"order": name}))
        new = NewProcessInstance("order", variables=variables)
        (started,) = await self.persist(f"start {name}", lambda each: each.instances.start([new]))
        self.instances[name] = started.process_instance_key
        task = NewTask("mail")  # without a key: the request's id alone tells it apart
        (receipt,) = await self.persist(f"task {name}", lambda each: each.tasks.submit([task]))
        self.tasks[name] = receipt.task_key
        message = NewMessage("payment", name, ttl_ms=3_600_000)
        await self.persist(f"pay {name}", lambda each: each.messages.publish(message))

    async def work(self) -> None:
        """A worker that goes from member to member; its leases are short, for jobs may be lost."""
        request = ActivationRequest(["pack", "mail"], wait_ms=200, lease_ms=2_000)
        while not self.is_over:
            name = self.dice.choice(sorted(self.cluster.members))
            try:
                jobs = await self.cluster.gateway(name).jobs.activate(request)
                if jobs:
                    done = [JobCompletion(job.job_key, job.lease) for job in jobs]
                    await self.cluster.gateway(name).jobs.complete(done)
            except (Unavailable, Unknown, Moved, KeyError):
                await asyncio.sleep(0.05)

    async def ended(self) -> None:
        """Waits until every order and every task has ended, once."""
        for key in self.instances.values():
            await self.until(lambda each, key=key: each.instances.get(key), "COMPLETED")
        for key in self.tasks.values():
            await self.until(lambda each, key=key: each.tasks.get(key), JobState.COMPLETED)
        self.is_over = True

    async def until(self, ask: Callable[[Gateway], Awaitable[Any]], state: object) -> None:
        async with asyncio.timeout(120):
            while (await self.persist("look", ask)).state != state:  # noqa: ASYNC110
                await asyncio.sleep(0.05)


async def trouble(cluster: SimulatedCluster, dice: Random, turns: int) -> None:
    """One thing after another happens to the members, two of which always run."""
    for _ in range(turns):
        name = dice.choice(NAMES)
        what = dice.choice(["kill", "drain", "reset", "cut", "etcd", "wipe"])
        if what in ("kill", "wipe"):
            await cluster.kill(name)
            await asyncio.sleep(dice.uniform(0, 3))
            if what == "wipe":
                cluster.disks[name] = SimulatedDisk()
            await cluster.start(name)
        elif what == "drain":
            await cluster[name].set_draining(True)
            await asyncio.sleep(dice.uniform(0, 2))
            await cluster[name].set_draining(False)
        elif what == "reset":
            cluster.transports[name].reset_all()
        elif what == "cut":
            other = dice.choice([each for each in NAMES if each != name])
            cluster.network.cut(name, other)
            await asyncio.sleep(dice.uniform(0, 3))
            cluster.network.heal()
        else:
            cluster.etcd.cut_off()
            await asyncio.sleep(dice.uniform(0, 3))
            cluster.etcd.reconnect()
        if what in ("kill", "wipe", "cut"):
            await cluster.until(lambda: len(cluster.owners()) == PARTITIONS)
            await cluster.settled()


def orders_over(seed: int, turns: int) -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.start_all()
        shop = Shop(cluster, seed)
        resource = resource_of(PROCESS)
        await shop.persist("deploy", lambda each: each.processes.deploy([resource]))
        working = asyncio.ensure_future(shop.work())
        happening = asyncio.ensure_future(trouble(cluster, Random(seed), turns))
        number = 0
        while not happening.done():
            await shop.order(number)
            number += 1
            await asyncio.sleep(0.1)
        await happening
        await shop.ended()
        await working

    play(story, seed)


def test_orders_are_done_once_whatever_happens_to_the_members() -> None:
    orders_over(0, turns=6)


@pytest.mark.soak
def test_orders_are_done_once_whatever_happens_for_long() -> None:
    for seed in range(100, 200):
        print(f"seed {seed}", end="\r")
        orders_over(seed, turns=20)
