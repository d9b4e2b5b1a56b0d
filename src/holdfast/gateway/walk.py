"""Lists over all partitions: page by page, in the order of the keys."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

from holdfast.engine.kernel.others import others
from holdfast.engine.kernel.query import Query
from holdfast.gateway.access.asking import Asked
from holdfast.records import partition_of
from holdfast.records.keys import key_of

T = TypeVar("T")


class WalkedRows(Protocol[T]):
    """Some of what a partition has, and behind which key to go on; 0 if there is no more."""

    @property
    def items(self) -> Sequence[T]: ...

    @property
    def next_after(self) -> int: ...


Ask = Callable[[int, int], Query[Any]]
"""Makes the query for what is behind a key, so many at the most."""


async def walk(asked: Asked, after: int, limit: int, ask: Ask) -> tuple[list[Any], int]:
    """Items behind a key, and the key of the last if there may be more; 0 if there are not.

    Each query looks at a bounded number of rows, so a list that finds little keeps nobody waiting.
    """
    found: list[Any] = []
    partition = max(partition_of(after), 1)
    while partition <= asked.count:
        await others()  # a partition that is here answers without a turn for anybody else
        rows: WalkedRows[Any] = await asked.ask(partition, ask(after, limit - len(found)))
        found += rows.items
        after = rows.next_after
        if len(found) == limit:
            return found, after
        if not after:
            partition += 1
            after = key_of(partition, 0)
    return found, 0
