"""What a program gives an embedded node is checked: all that is written can be read again."""

import asyncio
from typing import Any

import msgspec
import pytest

from holdfast.engine.batch.values import BatchOperationType
from holdfast.errors import HoldfastError
from holdfast.gateway.batch.shapes import BatchChange, BatchRetry, NewBatchOperation
from holdfast.gateway.content.shapes import (
    NewAnnouncement,
    NewPackage,
    ProgressNote,
    SnapshotNote,
    StatusNote,
    TopicQuery,
)
from holdfast.gateway.processes.shapes import NewMessage, NewProcessInstance, Resource
from holdfast.gateway.tasks.shapes import (
    ActivationRequest,
    HeldJob,
    JobCompletion,
    JobError,
    JobFailure,
    NewSchedule,
    NewTask,
    RetryBackoff,
)
from holdfast.model.bpmn import write_bpmn
from holdfast.model.dsl import Process
from holdfast.testing import MemoryNode, run

WRONG: list[Any] = [1.0, 1.5, True, None, "1", b"1", [1], float("nan"), 2**70, -(2**70), "\ud800"]
JOB = Process("p").task("work")


async def started() -> tuple[MemoryNode, str, str]:
    """A node with a job in a worker's hands: its key and lease."""
    node = await MemoryNode().start()
    file = Resource("p.bpmn", write_bpmn(JOB.definition()).decode())
    await node.gateway.processes.deploy([file])
    await node.gateway.tasks.submit([NewTask("held")])
    (job,) = await node.gateway.jobs.activate(ActivationRequest(["held"]))
    return node, job.job_key, job.lease


def questions(job: str, lease: str) -> dict[str, tuple[Any, Any]]:
    """Each shape that is asked with, right in all fields, and how it is asked."""
    return {
        "task": (NewTask("t"), lambda api, each: api.tasks.submit([each])),
        "backoff": (
            RetryBackoff(),
            lambda api, each: api.tasks.submit([NewTask("t", backoff=each)]),
        ),
        "activation": (ActivationRequest(["t"]), lambda api, each: api.jobs.activate(each)),
        "completion": (JobCompletion(job, lease), lambda api, each: api.jobs.complete([each])),
        "failure": (JobFailure(job, lease, "no"), lambda api, each: api.jobs.fail([each])),
        "error": (JobError(job, lease, "no"), lambda api, each: api.jobs.throw([each])),
        "held": (HeldJob(job, lease), lambda api, each: api.jobs.release([each])),
        "schedule": (
            NewSchedule(NewTask("t"), interval_ms=1_000),
            lambda api, each: api.schedules.put("s", each),
        ),
        "instance": (NewProcessInstance("p"), lambda api, each: api.instances.start([each])),
        "message": (NewMessage("m", "k"), lambda api, each: api.messages.publish(each)),
        "batch": (
            NewBatchOperation(
                type=BatchOperationType.RETRY_TASK, filter=msgspec.Raw(b'{"type": "t"}')
            ),
            lambda api, each: api.batches.create(each),
        ),
        "package": (
            NewPackage("site", "p", "DELETE", ["/a"]),
            lambda api, each: api.content.publish(each),
        ),
        "announcement": (
            NewAnnouncement("edge", "store", progress=[ProgressNote("site")]),
            lambda api, each: api.content.announce(each),
        ),
        "status": (
            StatusNote("edge", "site", 0, "IMPORTED"),
            lambda api, each: api.content.report([each]),
        ),
        "snapshot": (
            SnapshotNote("edge", "c", "content/snapshots/c", [ProgressNote("site")]),
            lambda api, each: api.content.snapshot_taken(each),
        ),
        "topic": (TopicQuery("packages", 0), lambda api, each: api.content.read(each)),
        "change": (BatchChange(), lambda api, each: api.batches.change("5", each)),
        "retry": (BatchRetry(), lambda api, each: api.batches.retry("5", each)),
    }


@pytest.mark.parametrize("name", questions("1", "1"))
def test_no_value_of_a_wrong_type_keeps_the_node_from_starting_again(name: str) -> None:
    async def story() -> None:
        node, job, lease = await started()
        right, ask = questions(job, lease)[name]
        accepted: list[str] = []
        for field in right.__struct_fields__:
            for wrong in WRONG:
                try:
                    asked = msgspec.structs.replace(right, **{field: wrong})
                    async with asyncio.timeout(5):
                        await ask(node.gateway, asked)
                    accepted.append(f"{field}={wrong!r}")
                except (HoldfastError, TimeoutError):
                    continue
                except (TypeError, ValueError, AttributeError, KeyError, OverflowError):
                    continue  # refused as well, in Python's words
        assert node.node.runner.failure is None
        (receipt,) = await node.gateway.tasks.submit([NewTask("t")])
        await node.crash()
        try:
            await node.restart()
        except HoldfastError as error:
            raise AssertionError(f"{error.message}\nof these: {accepted}") from error
        assert (await node.gateway.tasks.get(receipt.task_key)).state == "WAITING"
        for topic in ("packages", "statuses", "discoveries", "events"):
            await node.gateway.content.read(TopicQuery(topic, 0))
        await node.gateway.content.publishers()
        await node.close()

    run(story())
