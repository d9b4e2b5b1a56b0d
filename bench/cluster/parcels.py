"""How long parcels for a partition wait for its next owner, as a client sees it.

A transaction over two partitions is decided when a parcel has gone from its home to the other one
and another has come back. So it is sent to a home that lives on when the other's owner is killed.
"""

import asyncio
import time
from itertools import count, islice
from uuid import uuid4

from bench.harness import UnmeasurableError
from bench.ours.cluster import OurCluster
from holdfast.client.remote import RemoteApi
from holdfast.engine.transactions.values import TransactionState
from holdfast.errors import HoldfastError
from holdfast.gateway.tasks.shapes import NewTask
from holdfast.gateway.transactions.shapes import TransactionRequest, TransactionStep
from holdfast.records.keys import partition_for

AGAIN_SECONDS = 0.02
TYPE = "parcels"


def home_beside(cluster: OurCluster, partition: int) -> tuple[str, int]:
    """A partition of another owner than this one's, and the address of that owner."""
    owners = cluster.owners()
    for each, owner in sorted(owners.items()):
        if owner != owners[partition]:
            return cluster.members[owner].url, each
    raise UnmeasurableError(f"one member owns all partitions: {owners}")


def committed(url: str, home: int, partition: int, partitions: int) -> float:
    """When a transaction over two partitions, with the first as its home, is known to be done."""
    return asyncio.run(_commit(url, home, partition, partitions))


async def _commit(url: str, home: int, partition: int, partitions: int) -> float:
    id_ = uuid4().hex
    keys = [*_keys(id_, home, partitions, 2), *_keys(id_, partition, partitions, 1)]
    steps = [TransactionStep(submit=NewTask(TYPE, key=key)) for key in keys]
    api = RemoteApi(url)
    try:
        while True:
            try:
                done = await api.transactions.commit(TransactionRequest(steps, id_))
            except HoldfastError:  # the same id finds out what became of it
                await asyncio.sleep(AGAIN_SECONDS)
                continue
            assert done.state is TransactionState.COMMITTED, done
            return time.monotonic()
    finally:
        await api.close()


def _keys(id_: str, partition: int, partitions: int, number: int) -> list[str]:
    """Keys that are placed on a partition; it is the home of a transaction that has most there."""
    candidates = (f"{id_}-{each}" for each in count())
    placed = (each for each in candidates if partition_for(each, partitions) == partition)
    return list(islice(placed, number))
