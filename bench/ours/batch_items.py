"""Items for batch operations: tasks that wait for a person, and instances that wait for a worker.

They are made by a node in this process, through its gateway, in the folder that another node then
runs on: each of them is really there, on its partition.
"""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from holdfast.client.process import resource_of
from holdfast.config import Config
from holdfast.gateway.processes.shapes import NewProcessInstance
from holdfast.gateway.tasks.shapes import ActivationRequest, JobFailure, NewTask
from holdfast.model.dsl import Process
from holdfast.node import LocalNode

PARTITIONS = 8
AT_ONCE = 1_000  # by one request, which goes to one partition

Keys = dict[str, np.ndarray]  # by task type or process id


def make_items(folder: Path, tasks: Mapping[str, int], instances: Mapping[str, int]) -> Keys:
    """A node's folder with so many of each; their keys, in order."""
    return asyncio.run(_make(folder, tasks, instances))


async def _make(folder: Path, tasks: Mapping[str, int], instances: Mapping[str, int]) -> Keys:
    config = Config(log_level="error", partitions=PARTITIONS)
    node = await LocalNode.open(folder, config)
    keys: dict[str, list[int]] = {}
    try:
        for type_, count in tasks.items():
            keys[type_] = await _dead_letters(node, type_, count)
        for process_id, count in instances.items():
            await node.gateway.processes.deploy([resource_of(Process(process_id).task("never"))])
            keys[process_id] = await _instances(node, process_id, count)
    finally:
        await node.close()
    return {name: np.sort(np.array(each, np.int64)) for name, each in keys.items()}


async def _dead_letters(node: LocalNode, type_: str, count: int) -> list[int]:
    """Tasks that were tried once, failed, and have no retries."""
    gateway, keys = node.gateway, list[int]()
    while left := count - len(keys):
        groups = _groups(left)
        await asyncio.gather(
            *(gateway.tasks.submit([NewTask(type_, retries=0)] * group) for group in groups)
        )
        wanted = sum(groups)
        while wanted:
            jobs = await gateway.jobs.activate(ActivationRequest([type_], "bench", wanted, 60_000))
            await gateway.jobs.fail([JobFailure(job.job_key, job.lease, "broken") for job in jobs])
            keys += [int(job.job_key) for job in jobs]
            wanted -= len(jobs)
    return keys


async def _instances(node: LocalNode, process_id: str, count: int) -> list[int]:
    """Instances that have a job which nobody takes."""
    keys: list[int] = []
    while left := count - len(keys):
        new = [[NewProcessInstance(process_id, keep_ms=0)] * group for group in _groups(left)]
        for receipts in await asyncio.gather(*map(node.gateway.instances.start, new)):
            keys += [int(each.process_instance_key) for each in receipts]
    return keys


def _groups(count: int) -> Sequence[int]:
    """How many go to each partition next, evenly."""
    each = min(AT_ONCE, -(-count // PARTITIONS))
    return [min(each, count - at) for at in range(0, min(count, each * PARTITIONS), each)]
