"""Coordination in a real etcd keeps the contract, as 3.4 and as 3.5 serve it."""

import asyncio
import itertools

import pytest
from bench.peers.etcd import EtcdServer
from tests.sequence.coordination_contract import STORIES, Story

from holdfast.sequence.api import Coordination
from holdfast.sequence.opening import open_coordination

_clusters = itertools.count(1)


@pytest.mark.xdist_group("etcd")
@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
def test_the_contract(story: Story, shared_etcd: EtcdServer) -> None:
    cluster, starts = next(_clusters), itertools.count(1)
    opened: list[Coordination] = []

    async def join(member: str) -> Coordination:
        opened.append(
            open_coordination(f"{shared_etcd.url}/c{cluster}", f"{member}-{next(starts)}")
        )
        return opened[-1]

    async def play() -> None:
        try:
            await story(join)
        finally:
            for each in opened:
                await each.close()

    asyncio.run(play())
