"""What a partition sends to another is on its log, whenever it is sent."""

import asyncio
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from holdfast.engine.parcels.values import ParcelIntent
from holdfast.errors import Unknown
from holdfast.gateway.processes.shapes import NewProcessInstance, Resource
from holdfast.journal import Append
from holdfast.model.bpmn import write_bpmn
from holdfast.model.dsl import Process
from holdfast.records import ValueType
from holdfast.testing import MemoryNode, run

PROCESS = Process("visit").wait("come", message="come", key="id")


class HeldLog:
    """A node's log that does not answer until it is let."""

    def __init__(self, node: MemoryNode) -> None:
        self.asked, self.let = asyncio.Event(), asyncio.Event()
        self.is_lost = False
        self._append = node.node.runner._journal.append_many
        node.node.runner._journal.append_many = self._held  # type: ignore[method-assign]

    async def _held(self, appends: Sequence[Append]) -> Any:
        self.asked.set()
        await self.let.wait()
        if self.is_lost:
            self.is_lost = False
            raise Unknown("another member has the partition")
        return await self._append(appends)


@pytest.mark.parametrize("is_lost", [False, True])
def test_a_partition_that_is_reached_gets_nothing_that_its_sender_may_still_lose(
    is_lost: bool,
) -> None:
    async def story() -> None:
        node = MemoryNode(partitions=2)
        await node.start()
        content = write_bpmn(PROCESS.definition()).decode()
        await node.gateway.processes.deploy([Resource("visit.bpmn", content)])
        sent: list[Any] = []
        partitions = node.node.runtime.post._partitions()
        submit = partitions.submit

        def seen(partition: int, commands: Any, size_bytes: int = 0) -> Any:
            is_parcel = commands[0].value_type is ValueType.PARCEL
            sent.extend(
                commands if is_parcel and commands[0].intent is ParcelIntent.RECEIVE else ()
            )
            return submit(partition, commands, size_bytes)

        partitions.submit = seen  # type: ignore[method-assign]
        log = HeldLog(node)
        log.is_lost = is_lost
        starts = [
            NewProcessInstance("visit", variables=msgspec.Raw(b'{"id":"%d"}' % n)) for n in range(8)
        ]
        starting = asyncio.ensure_future(node.gateway.instances.start(starts))
        await log.asked.wait()
        node.node.runtime.post.reached({1, 2})
        await asyncio.sleep(0.1)
        assert not sent
        log.let.set()
        await asyncio.gather(starting, return_exceptions=True)
        await asyncio.sleep(0.1)
        assert bool(sent) != is_lost
        await node.close()

    run(story())
