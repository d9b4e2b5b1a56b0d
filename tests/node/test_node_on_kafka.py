"""A node whose log is kept by a real broker: engine and content run on it as on any journal."""

import asyncio

import msgspec
import pytest
from bench.peers.kafka import KafkaServer
from tests.kafka_server import open_kafka_journal
from tests.node.test_node_content import package

from holdfast.clock import SystemClock
from holdfast.engine.jobs.values import JobState
from holdfast.errors import HoldfastError
from holdfast.gateway.processes.shapes import NewProcessInstance, Resource
from holdfast.gateway.shapes import ListScope
from holdfast.gateway.tasks.shapes import ActivationRequest, JobCompletion, NewTask, TaskQuery
from holdfast.model.bpmn import write_bpmn
from holdfast.model.dsl import Process
from holdfast.testing import MemoryNode

pytestmark = pytest.mark.xdist_group("kafka")

PARTITIONS = 2
PROCESS = Process("order").task("pack").wait("paid", message="paid", key="id")


async def node_on(url: str) -> MemoryNode:
    """A node that has nothing but the log."""
    journal = open_kafka_journal(url)
    return await MemoryNode(partitions=PARTITIONS, clock=SystemClock(), journal=journal).start()


async def complete(node: MemoryNode, kind: str, count: int) -> list[str]:
    """Completes jobs of a type; their keys."""
    done: list[str] = []
    while len(done) < count:
        request = ActivationRequest([kind], jobs_max=count - len(done), wait_ms=5_000)
        jobs = await node.gateway.jobs.activate(request)
        assert jobs, "nobody has work"
        ends = [JobCompletion(job.job_key, job.lease, msgspec.Raw(b'"done"')) for job in jobs]
        answers = await node.gateway.jobs.complete(ends)
        assert all(answer.code is None for answer in answers)
        done += [job.job_key for job in jobs]
    return done


def dumps(node: MemoryNode) -> list[list[tuple[bytes, bytes]]]:
    return [node.dump(partition) for partition in range(1, PARTITIONS + 1)]


def test_tasks_processes_and_content_come_back_from_the_log_alone(kafka_url: str) -> None:
    async def story() -> None:
        node = await node_on(kafka_url)
        submitting = (node.gateway.tasks.submit([NewTask("mail")]) for _ in range(40))
        receipts = [receipt for (receipt,) in await asyncio.gather(*submitting)]
        completed = await complete(node, "mail", 30)
        file = Resource("order.bpmn", write_bpmn(PROCESS.definition()).decode())
        await node.gateway.processes.deploy([file])
        starts = [
            NewProcessInstance("order", variables=msgspec.Raw(b'{"id":"%d"}' % n)) for n in range(4)
        ]
        await node.gateway.instances.start(starts)
        await complete(node, "pack", 4)
        published = [await node.node.content.publish(package(number)) for number in range(10)]
        await node.node.runner.settled()
        before = dumps(node)
        await node.close()

        again = await node_on(kafka_url)
        assert dumps(again) == before
        for receipt in receipts:
            view = await again.gateway.tasks.get(receipt.task_key)
            is_done = receipt.task_key in completed
            assert view.state == (JobState.COMPLETED if is_done else JobState.WAITING)
        ended = await again.gateway.tasks.page(TaskQuery("mail", scope=ListScope.ENDED))
        assert sorted(each.task_key for each in ended.items) == sorted(completed)
        details = await again.gateway.tasks.details(completed[0])
        assert (details.payload, details.result) == (msgspec.Raw(b"null"), msgspec.Raw(b'"done"'))
        assert sorted(await complete(again, "mail", 10)) == sorted(
            {each.task_key for each in receipts} - set(completed)
        )
        await again.node.content.running()
        assert (await again.node.content.publish(package(10))).number == published[-1].number + 1
        await again.close()

    asyncio.run(story())


def test_a_second_node_takes_the_partitions_and_the_first_says_that_they_moved(
    kafka_url: str,
) -> None:
    async def story() -> None:
        first = await node_on(kafka_url)
        await first.gateway.tasks.submit([NewTask("mail")])
        second = await node_on(kafka_url)
        for _ in range(4):
            with pytest.raises(HoldfastError) as refused:
                await first.gateway.tasks.submit([NewTask("mail")])
            assert refused.value.code in ("MOVED", "UNAVAILABLE")
        await asyncio.gather(*(second.gateway.tasks.submit([NewTask("mail")]) for _ in range(8)))
        assert len(await complete(second, "mail", 9)) == 9
        await first.close()
        await second.close()

    asyncio.run(story())


@pytest.mark.soak
def test_a_node_goes_on_when_its_broker_was_away(kafka: KafkaServer, kafka_url: str) -> None:
    async def story() -> None:
        node = await node_on(kafka_url)
        acknowledged: list[str] = []
        stopping = False

        async def load() -> None:
            number = 0
            while not stopping:
                number += 1
                task = NewTask("mail", key=f"task-{number}")
                while True:
                    try:
                        (receipt,) = await node.gateway.tasks.submit([task])
                        break
                    except HoldfastError:
                        await asyncio.sleep(0.1)
                acknowledged.append(receipt.task_key)

        loading = [asyncio.create_task(load())]
        for _ in range(3):
            before = len(acknowledged)
            for _ in range(3_000):
                if len(acknowledged) > before + 50:
                    break
                await asyncio.sleep(0.02)
            assert len(acknowledged) > before + 50
            kafka.kill()
            await asyncio.sleep(2)
            kafka.launch()
            await asyncio.to_thread(kafka.wait_until_ready)
        before = len(acknowledged)
        for _ in range(3_000):
            if len(acknowledged) > before + 50:
                break
            await asyncio.sleep(0.02)
        stopping = True
        await asyncio.gather(*loading)
        assert len(acknowledged) > before + 50
        assert len(set(acknowledged)) == len(acknowledged)
        assert sorted(await complete(node, "mail", len(acknowledged))) == sorted(acknowledged)
        await node.close()

    asyncio.run(story())
