"""A list that finds little in many rows lets others have their turns, and can be given up."""

import asyncio

import pytest

from holdfast.clock import SystemClock
from holdfast.gateway.tasks.shapes import NewTask, TaskQuery
from holdfast.limits import QUERY_ROWS_MAX
from holdfast.testing import MemoryNode

LOOKS = 4


def test_a_long_list_lets_others_have_their_turns_and_can_be_given_up() -> None:
    async def story() -> None:
        node = MemoryNode(partitions=1, clock=SystemClock())
        await node.start()
        tasks = node.gateway.tasks
        await tasks.submit([NewTask("many")] * (LOOKS * QUERY_ROWS_MAX))
        turns = 0

        async def others() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        other = asyncio.ensure_future(others())
        await asyncio.sleep(0)
        before = turns
        assert (await tasks.page(TaskQuery("rare"))).items == []
        assert turns - before >= LOOKS
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0):
                await tasks.page(TaskQuery("rare"))
        other.cancel()
        await node.close()

    asyncio.run(story())
