"""A selection waits for tables that count as the journal does, whose offsets may have gaps."""

from holdfast.engine.kernel.recovery import TOPIC
from holdfast.engine.progress import FindProgress
from holdfast.gateway.tasks.shapes import NewTask
from holdfast.journal.memory import MemoryJournal
from holdfast.testing import MemoryNode, run


def test_how_far_the_tables_have_to_be_is_said_by_the_journal() -> None:
    async def story() -> None:
        node = await MemoryNode(partitions=2, journal=MemoryJournal(gap=lambda: 2)).start()
        await node.gateway.tasks.submit([NewTask("mail", key=str(each)) for each in range(8)])
        ends = {each: node.journal.bounds(TOPIC, each).next for each in (1, 2)}
        assert await node.gateway.batches._positions() == ends
        positions = await node.gateway.batches._asked.ask_all(FindProgress())
        assert all(found.next_position < ends[each] for each, found in enumerate(positions, 1))
        await node.close()

    run(story())
