"""Whole stories through the gateways of two members: nobody sees where a partition is."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.partitions.members import Cluster, until

from holdfast.client.process import resource_of
from holdfast.engine.jobs.values import JobState
from holdfast.errors import Unavailable
from holdfast.gateway.processes.shapes import NewMessage, NewProcessInstance, ProcessInstanceQuery
from holdfast.gateway.service import Gateway
from holdfast.gateway.shapes import ListScope
from holdfast.gateway.tasks.shapes import (
    ActivationRequest,
    JobCompletion,
    NewTask,
    TaskQuery,
)
from holdfast.limits import BULK_ITEMS_MIN
from holdfast.model.dsl import Process
from holdfast.records import partition_of

WAIT_MS = 20_000


@pytest.fixture(params=["unix", "simulated"])
def cluster(request: pytest.FixtureRequest, tmp_path: Path) -> Cluster:
    return Cluster(request.param, tmp_path)


def gateways(cluster: Cluster) -> list[Gateway]:
    return [member.gateway for member in cluster.members.values()]


async def work_off(gateway: Gateway, type_: str, count: int) -> list[str]:
    """Does so many jobs, wherever they are; their keys."""
    keys: list[str] = []
    while len(keys) < count:
        request = ActivationRequest([type_], jobs_max=2, wait_ms=WAIT_MS)
        jobs = await gateway.jobs.activate(request)
        assert jobs, f"{len(keys)} of {count} jobs came"
        done = [
            JobCompletion(job.job_key, job.lease, msgspec.Raw(b'{"by":"%b"}' % type_.encode()))
            for job in jobs
        ]
        assert all(answer.code is None for answer in await gateway.jobs.complete(done))
        keys += [job.job_key for job in jobs]
    return keys


def test_a_worker_of_one_member_does_the_tasks_of_all(cluster: Cluster) -> None:
    async def story(cluster: Cluster) -> None:
        a, b = gateways(cluster)
        keyed = [NewTask("mail", key=f"order {number}") for number in range(12)]
        receipts = await a.tasks.submit(keyed)
        keys = [receipt.task_key for receipt in receipts]
        assert {partition_of(int(key)) for key in keys} == {1, 2, 3, 4}
        again = await b.tasks.submit(keyed)
        assert [receipt.task_key for receipt in again] == keys
        results = asyncio.ensure_future(a.tasks.results(keys, WAIT_MS))
        assert sorted(await work_off(b, "mail", 12)) == sorted(keys)
        outcomes = await results
        while any(each.state is not JobState.COMPLETED for each in outcomes):
            outcomes = await a.tasks.results(keys, WAIT_MS)
        assert [bytes(each.result) for each in outcomes] == [b'{"by":"mail"}'] * 12  # pyright: ignore

    cluster.play(story)


def test_what_ended_is_listed_and_shown_by_every_member_wherever_it_ended(
    cluster: Cluster,
) -> None:
    async def story(cluster: Cluster) -> None:
        a, b = gateways(cluster)
        receipts = await a.tasks.submit([NewTask("mail", key=f"order {n}") for n in range(12)])
        keys = [receipt.task_key for receipt in receipts]
        await work_off(b, "mail", 12)
        pages = [await each.tasks.page(TaskQuery(scope=ListScope.ENDED)) for each in (a, b)]
        assert pages[0] == pages[1]
        assert sorted(each.task_key for each in pages[0].items) == sorted(keys)
        times = [each.finished for each in pages[0].items if each.finished]
        assert len(times) == 12 and times == sorted(times, reverse=True)
        for key in keys:
            assert await a.tasks.details(key) == await b.tasks.details(key)

    cluster.play(story)


def test_a_worker_that_waits_gets_a_task_that_is_made_elsewhere(cluster: Cluster) -> None:
    async def story(cluster: Cluster) -> None:
        a, b = gateways(cluster)
        for waiting, submitting in ((a, b), (b, a)):
            request = ActivationRequest(["mail"], wait_ms=WAIT_MS)
            asked = asyncio.ensure_future(waiting.jobs.activate(request))
            await asyncio.sleep(0.05)
            (receipt,) = await submitting.tasks.submit([NewTask("mail")])
            (job,) = await asked
            assert job.job_key == receipt.task_key
            await waiting.jobs.complete([JobCompletion(job.job_key, job.lease)])

    cluster.play(story)


def test_what_may_go_anywhere_stays_with_the_member_that_took_it(cluster: Cluster) -> None:
    async def story(cluster: Cluster) -> None:
        for gateway, own in zip(gateways(cluster), ({1, 3}, {2, 4}), strict=True):
            receipts = [(await gateway.tasks.submit([NewTask("mail")]))[0] for _ in range(6)]
            assert {partition_of(int(each.task_key)) for each in receipts} <= own

    cluster.play(story)


def test_many_at_once_go_to_the_other_processes_of_the_machine_in_turn(cluster: Cluster) -> None:
    async def story(cluster: Cluster) -> None:
        a, _ = gateways(cluster)
        await a.processes.deploy([resource_of(Process("order").task("pack").end())])

        async def submitted(count: int) -> list[str]:
            return [each.task_key for each in await a.tasks.submit([NewTask("mail")] * count)]

        async def started(count: int) -> list[str]:
            receipts = await a.instances.start([NewProcessInstance("order")] * count)
            return [each.process_instance_key for each in receipts]

        async def reached(submit: Callable[[int], Awaitable[list[str]]], count: int) -> set[int]:
            """Where four submissions go, each to one partition."""
            wheres = [{partition_of(int(key)) for key in await submit(count)} for _ in range(4)]
            assert [len(where) for where in wheres] == [1] * 4
            return set[int]().union(*wheres)

        for submit in (submitted, started):
            assert await reached(submit, BULK_ITEMS_MIN) == {1, 2, 3, 4}
            assert await reached(submit, BULK_ITEMS_MIN - 1) == {1, 3}
        await cluster.members["b"].links.close()
        await until(lambda: not cluster.members["a"].links["b"].is_up)
        assert await reached(submitted, BULK_ITEMS_MIN) == {1, 3}  # what is away is left out

    cluster.play(story)


def test_in_a_cluster_many_at_once_stay_with_the_member_that_took_them(tmp_path: Path) -> None:
    """Its members are on machines of their own."""

    async def story(cluster: Cluster) -> None:
        a, _ = gateways(cluster)
        many = [NewTask("mail")] * BULK_ITEMS_MIN
        keys = [each.task_key for _ in range(4) for each in await a.tasks.submit(many)]
        assert {partition_of(int(key)) for key in keys} == {1, 3}

    Cluster("simulated", tmp_path, wait_ms=WAIT_MS).play(story)


def test_lists_have_the_tasks_of_all_members(cluster: Cluster) -> None:
    async def story(cluster: Cluster) -> None:
        a, b = gateways(cluster)
        keys = {each.task_key for each in await a.tasks.submit(tasks(20))}
        for gateway in (a, b):
            found: list[str] = []
            page = await gateway.tasks.page(TaskQuery(limit=3))
            while page.items:
                found += [task.task_key for task in page.items]
                if page.after is None:
                    break
                page = await gateway.tasks.page(TaskQuery(limit=3, after=page.after))
            assert (len(found), set(found)) == (20, keys)

    cluster.play(story)


def tasks(count: int) -> Sequence[NewTask]:
    return [NewTask("mail", key=str(number)) for number in range(count)]


def test_a_process_is_deployed_everywhere_and_its_messages_find_it(cluster: Cluster) -> None:
    """Deployments are distributed, messages go by parcel: both cross members."""

    async def story(cluster: Cluster) -> None:
        a, b = gateways(cluster)
        process = Process("order").task("pack").wait("paid", message="payment", key="order").end()
        await b.processes.deploy([resource_of(process)])
        orders = [f"order {number}" for number in range(8)]
        new = [
            NewProcessInstance("order", variables=msgspec.Raw(json.dumps({"order": each}).encode()))
            for each in orders
        ]
        started = [
            receipt.process_instance_key
            for each, gateway in zip(new, [a, b] * 4, strict=True)
            for receipt in await gateway.instances.start([each])
        ]
        assert {partition_of(int(key)) % 2 for key in started} == {0, 1}
        assert len(await work_off(a, "pack", 8)) == 8
        for order, gateway in zip(orders, [b, a] * 4, strict=True):
            await gateway.messages.publish(NewMessage("payment", order, ttl_ms=60_000))
        outcomes: list[Any] = []

        async def are_over() -> bool:
            outcomes[:] = await b.tasks.results(started, WAIT_MS)
            return all(each.state is JobState.COMPLETED for each in outcomes)

        async with asyncio.timeout(60):
            while not await are_over():  # noqa: ASYNC110 - a condition with a deadline
                await asyncio.sleep(0.01)
        assert (await a.instances.page(ProcessInstanceQuery())).items == []

    cluster.play(story)


def test_a_member_that_is_away_takes_only_its_own_work_with_it(cluster: Cluster) -> None:
    async def story(cluster: Cluster) -> None:
        a, _ = gateways(cluster)
        receipts = await a.tasks.submit(tasks(12))
        own = [each.task_key for each in receipts if partition_of(int(each.task_key)) % 2]
        await cluster.members["b"].close()
        await until(lambda: not cluster.members["a"].links["b"].is_up)
        assert sorted(await work_off(a, "mail", len(own))) == sorted(own)
        await cluster.start("b")

    cluster.play(story)


def test_a_report_about_jobs_of_a_member_that_is_away_is_taken_for_the_others(
    cluster: Cluster,
) -> None:
    async def story(cluster: Cluster) -> None:
        a, _ = gateways(cluster)
        await a.tasks.submit([NewTask("mail", key=f"order {number}") for number in range(12)])
        jobs = []
        while len(jobs) < 12:
            jobs += await a.jobs.activate(ActivationRequest(["mail"], jobs_max=12, wait_ms=WAIT_MS))
        done = [JobCompletion(job.job_key, job.lease) for job in jobs]
        await cluster.members["b"].close()
        await until(lambda: not cluster.members["a"].links["b"].is_up)
        answers = {answer.key: answer.code for answer in await a.jobs.complete(done)}
        for key, code in answers.items():
            is_here = partition_of(int(key)) in (1, 3)
            assert code == (None if is_here else "UNAVAILABLE"), key
        gone = [each for each in done if answers[each.job_key] is not None]
        with pytest.raises(Unavailable):  # nobody has any of these
            await a.jobs.complete(gone)

    cluster.play(story)
