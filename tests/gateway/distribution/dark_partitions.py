"""A node of several partitions some of which can go dark, and what tests ask of it."""

from collections.abc import Sequence

import pytest

from holdfast.engine.distribution.values import DistributionIntent
from holdfast.engine.kernel import Command
from holdfast.engine.kernel.runner import TOPIC
from holdfast.engine.partition import DISPATCH
from holdfast.gateway.distribution.shapes import DistributionQuery, DistributionView, TargetView
from holdfast.gateway.processes.shapes import ProcessDefinition, Resource
from holdfast.model.bpmn import write_bpmn
from holdfast.model.dsl import Process
from holdfast.records import Record, ValueType
from holdfast.runtime.post import Post
from holdfast.testing import MemoryNode

DISTRIBUTION, PROCESS = ValueType.DISTRIBUTION, ValueType.PROCESS


def go_dark(monkeypatch: pytest.MonkeyPatch, *partitions: int) -> set[int]:
    """Nothing that is sent reaches these partitions, until they are taken out of the set."""
    dark, submit = set(partitions), Post._submit

    def drop(post: Post, partition: int, commands: Sequence[Command], size_bytes: int) -> None:
        if partition not in dark:
            submit(post, partition, commands, size_bytes)

    monkeypatch.setattr(Post, "_submit", drop)
    return dark


def resource(process_id: str) -> Resource:
    source = write_bpmn(Process(process_id).task("send").definition()).decode()
    return Resource(f"{process_id}.bpmn", source)


async def deploy(node: MemoryNode, *process_ids: str) -> list[ProcessDefinition]:
    return await node.gateway.processes.deploy([resource(each) for each in process_ids])


async def pending(node: MemoryNode, **query: int | str) -> list[DistributionView]:
    return (await node.gateway.distributions.page(DistributionQuery(**query))).items  # type: ignore[arg-type]


async def only_target(node: MemoryNode) -> TargetView:
    """Of the only distribution, the only partition that does not have it."""
    (view,) = await pending(node)
    (target,) = view.targets
    return target


def deployed_on(node: MemoryNode) -> dict[int, list[str]]:
    """The processes that each partition knows, in the order in which they came."""
    return {
        partition: [stored.process_id for _, stored in processor.view.processes.definitions.scan()]
        for partition, processor in node.node.runner.processors.items()
    }


def records(node: MemoryNode, partition: int) -> list[Record]:
    """The whole log of a partition."""
    found: list[Record] = []
    while entries := node.journal.read_now(TOPIC, partition, len(found), 1_000_000):
        found += DISPATCH.codec.decode_many([entry.payload for entry in entries])
    return found


def happened(node: MemoryNode, partition: int, *intents: DistributionIntent) -> list[Record]:
    """What the log of a partition tells of distributions, in these words only if there are any."""
    return [
        record
        for record in records(node, partition)
        if record.value_type == DISTRIBUTION and (not intents or record.intent in intents)
    ]


async def metrics(node: MemoryNode) -> dict[str, float]:
    """Numbers about distribution by their names without what they all begin with."""
    lines = (await node.gateway.node.metrics()).decode().splitlines()
    found = (line.removeprefix("holdfast_").split() for line in lines if line[:1] != "#")
    return {name: float(value) for name, value in found if name.startswith("distribution")}
