"""Lists about the incidents of one instance do not read those of all others."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from holdfast.clock import SystemClock
from holdfast.gateway.processes.shapes import NewProcessInstance, ProcessInstanceQuery, Resource
from holdfast.gateway.service import Gateway
from holdfast.gateway.tasks.shapes import ActivationRequest, IncidentQuery, JobFailure, NewTask
from holdfast.model.bpmn import write_bpmn
from holdfast.model.dsl import Process, path
from holdfast.testing import MemoryNode

FORKED = Process("p").parallel(path().task("a", retries=0), path().task("b", retries=0))


def inside(story: Callable[[Gateway], Awaitable[None]], monkeypatch: pytest.MonkeyPatch) -> None:
    """The story is told of a node whose incidents cannot be read one after the other."""

    async def run() -> None:
        node = await MemoryNode(partitions=3, clock=SystemClock()).start()
        await node.gateway.processes.deploy(
            [Resource("p.bpmn", write_bpmn(FORKED.definition()).decode())]
        )
        for processor in node.node.runner.processors.values():
            monkeypatch.setattr(processor.view.incidents.open, "scan", refuse)
        try:
            await story(node.gateway)
        finally:
            await node.close()

    asyncio.run(run())


def refuse(*_: Any, **__: Any) -> None:
    raise AssertionError("all incidents of a partition are read")


async def break_all(gateway: Gateway, type_: str, of: set[str] | None = None) -> None:
    """The jobs of a type fail: all, or those of some instances."""
    while jobs := await gateway.jobs.activate(ActivationRequest([type_], "w", 100, 60_000, 0)):
        chosen = [
            JobFailure(job.job_key, job.lease, "no")
            for job in jobs
            if of is None or (job.origin and job.origin.process_instance_key in of)
        ]
        if chosen:
            await gateway.jobs.fail(chosen)


async def start(gateway: Gateway, instances: int) -> list[str]:
    return [
        (await gateway.instances.start([NewProcessInstance("p")]))[0].process_instance_key
        for _ in range(instances)
    ]


def test_incidents_of_one_instance_are_listed_page_by_page(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def story(gateway: Gateway) -> None:
        keys = await start(gateway, 4)
        await break_all(gateway, "a")
        await break_all(gateway, "b")
        for key in keys:
            query = IncidentQuery(process_instance_key=key)
            both = (await gateway.incidents.page(query)).items
            assert {each.process_instance_key for each in both} == {key} and len(both) == 2
            first = await gateway.incidents.page(IncidentQuery(limit=1, process_instance_key=key))
            assert first.items == both[:1]
            rest = IncidentQuery(after=first.after, process_instance_key=key)
            assert (await gateway.incidents.page(rest)).items == both[1:]
            of_a = IncidentQuery("a", process_instance_key=key)
            assert [each.type for each in (await gateway.incidents.page(of_a)).items] == ["a"]
            assert await gateway.look.has_incident(int(key))

    inside(story, monkeypatch)


@pytest.mark.parametrize("key", ["", "x", "0", "7", "9" * 30, "2251799813999999"])
def test_what_is_no_instance_has_no_incidents(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(gateway: Gateway) -> None:
        await gateway.tasks.submit([NewTask("a", retries=0)])
        await break_all(gateway, "a")
        page = await gateway.incidents.page(IncidentQuery(process_instance_key=key))
        assert page.items == []

    inside(story, monkeypatch)


def test_instances_are_listed_with_the_number_of_their_incidents(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def story(gateway: Gateway) -> None:
        numbers = (0, 2, 1, 0, 1, 2, 0, 2, 0)
        expected = dict(zip(await start(gateway, len(numbers)), numbers, strict=True))
        await break_all(gateway, "a", {key for key, number in expected.items() if number})
        await break_all(gateway, "b", {key for key, number in expected.items() if number == 2})
        for limit in (1, 2, 100):
            for broken in (False, True):
                found: dict[str, int] = {}
                page = ProcessInstanceQuery(limit=limit, with_incidents=broken)
                while True:
                    answer = await gateway.instances.page(page)
                    found |= {each.process_instance_key: each.incidents for each in answer.items}
                    if answer.after is None:
                        break
                    page = ProcessInstanceQuery(
                        limit=limit, after=answer.after, with_incidents=broken
                    )
                wanted = {key: n for key, n in expected.items() if n or not broken}
                assert found == wanted and list(found) == sorted(found, key=int)

    inside(story, monkeypatch)
