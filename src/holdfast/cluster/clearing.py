"""Frees what this member keeps of partitions that it is no replica of any more.

Where there are more members than a partition has replicas, partitions leave members when others
join. Their log and their rows are given up here, a few partitions at a time.
"""

import asyncio
from collections.abc import Callable
from typing import Protocol

from holdfast.errors import HoldfastError
from holdfast.journal.cluster.leaving import Leaving, is_named
from holdfast.limits import CLUSTER_LEFT_MAX, CLUSTER_TEND_MS
from holdfast.logs import log
from holdfast.sequence.api import Chain, Replica


class StateRows(Protocol):
    """The part of a node that has the rows of partitions."""

    def has_rows(self, partition: int) -> bool: ...

    async def remove_rows(self, partition: int) -> None: ...


class Clearing:
    """Looks from time to time; etcd is asked only about partitions that seem to be left."""

    def __init__(
        self,
        replica: Replica,
        partitions: int,
        leaving: Leaving,
        chain: Callable[[int], Chain],
        rows: StateRows,
        is_used: Callable[[int], bool],
        can_act: Callable[[], bool],
    ) -> None:
        """`is_used`: a partition is open or a standby here, or about to be."""
        self._replica = replica
        self._partitions = range(1, partitions + 1)
        self._leaving = leaving
        self._chain = chain
        self._rows = rows
        self._is_used = is_used
        self._can_act = can_act
        self._clear: set[int] = set()  # partitions of which there is nothing

    async def run(self) -> None:
        """Clears from time to time, until it is cancelled."""
        while True:
            await asyncio.sleep(CLUSTER_TEND_MS / 1_000)
            await self.clear()

    async def clear(self) -> None:
        """Gives up a few partitions; what fails is tried the next time."""
        count = 0
        for partition in self._partitions:
            if count == CLUSTER_LEFT_MAX or not self._can_act():
                return
            if is_named(self._chain(partition), self._replica) or self._is_used(partition):
                self._clear.discard(partition)
            elif self._has_anything(partition):
                count += 1
                await self._leave(partition)

    def _has_anything(self, partition: int) -> bool:
        if self._leaving.has_entries(partition):
            return True
        if partition not in self._clear and not self._rows.has_rows(partition):
            self._clear.add(partition)
        return partition not in self._clear

    async def _leave(self, partition: int) -> None:
        async def remove_rows() -> None:
            await self._rows.remove_rows(partition)

        try:
            if await self._leaving.leave(partition, remove_rows):
                log.info("partition removed from this disk", partition=partition)
        except HoldfastError as error:
            log.info("partition not removed", partition=partition, why=error.message)
