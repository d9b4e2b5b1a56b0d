"""State is written behind: what cannot be written yet is waited for, not tried again and again."""

import asyncio
from types import SimpleNamespace
from typing import Any

from holdfast.engine.kernel.behind import WriteBehind


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
