"""State is written behind: what cannot be written yet is waited for, not tried again and again."""

import asyncio
from collections import Counter
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pytest

from holdfast.engine.kernel.behind import WriteBehind
from holdfast.state import PartitionState, Progress
from holdfast.state.keys import U64
from holdfast.state.memory import MemoryStore


def test_a_partition_whose_step_is_under_way_waits_though_it_has_many_rows() -> None:
    async def story() -> None:
        under_way: Any = SimpleNamespace(
            partition=1, state=SimpleNamespace(undo_log=["a change"]), progress=None
        )
        lives: Any = SimpleNamespace(processors={1: under_way}, standing={}, writing=None)
        work: Any = SimpleNamespace(changed={1: 100})
        halt: Any = SimpleNamespace(meets_damage=lambda do: do(), reason="")
        behind = WriteBehind(lives, work, halt, lambda error: None)
        behind.rows_max = 10
        behind.soon()
        assert lives.writing is None and work.changed == {1: 100}
        assert behind._timer is not None, "it is looked at again"
        behind.stop()

    asyncio.run(story())


class CountingStore(MemoryStore):
    """Notes of which partitions each write is, and with how many rows."""

    def __init__(self) -> None:
        super().__init__()
        self.writes: list[dict[int, int]] = []

    def write_batch(self, batch: Any) -> None:
        rows = Counter(int.from_bytes(key[:2], "big") for key in batch.changes)
        self.writes.append({partition: count - 1 for partition, count in rows.items()})  # progress
        super().write_batch(batch)


def behind_with(rows: dict[int, int], store: CountingStore) -> tuple[WriteBehind, Any]:
    """Partitions that have changed so many rows each."""
    processors = {}
    for partition, count in rows.items():
        state = PartitionState(store, partition)
        family = state.family(1, U64, int)
        for key in range(count):
            family.insert(key, key)
        state.commit()
        processors[partition] = SimpleNamespace(
            partition=partition, state=state, progress=Progress()
        )
    lives: Any = SimpleNamespace(processors=processors, standing={}, writing=None, store=store)
    work: Any = SimpleNamespace(changed=dict(rows))
    halt: Any = SimpleNamespace(meets_damage=lambda do: do(), reason="")
    return WriteBehind(lives, work, halt, lambda error: pytest.fail(str(error))), lives


@pytest.mark.parametrize(
    ("rows_max", "writes"),
    [
        (10, [{2: 15}, {1: 10, 3: 8}]),  # until there are few enough: the largest first
        (20, [{2: 15}]),
        (40, []),
    ],
)
def test_a_write_has_no_more_rows_than_others_can_wait_for(
    rows_max: int, writes: list[dict[int, int]]
) -> None:
    async def story() -> None:
        store = CountingStore()
        behind, lives = behind_with({1: 10, 2: 15, 3: 8}, store)
        behind.rows_max, behind.slice_rows = rows_max, 4
        behind.soon()
        while lives.writing is not None:
            assert store.writes == writes[: len(store.writes)], "a part was written"
            await asyncio.sleep(0)
        behind.stop()
        assert store.writes == writes

    with patch("holdfast.engine.kernel.behind.STORE_WRITE_ROWS", 20):
        asyncio.run(story())


def test_before_a_snapshot_all_that_has_changed_is_written_in_slices() -> None:
    async def story() -> None:
        store = CountingStore()
        behind, lives = behind_with({1: 10, 2: 15, 3: 8}, store)
        behind.slice_rows = 4
        await behind.write_most()
        assert lives.writing is None and store.writes == [{2: 15}, {1: 10, 3: 8}]
        behind.stop()

    with patch("holdfast.engine.kernel.behind.STORE_WRITE_ROWS", 20):
        asyncio.run(story())
