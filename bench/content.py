"""Content distribution: a publisher, many subscribers, and what the slow ones cost the others."""

import asyncio
import secrets
import statistics
import time
import tracemalloc
from collections.abc import Callable, Coroutine, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

from bench.harness import Figure, Measure, Run, benchmark, fixed, remove
from bench.ours.content import PUBLISHER, Farm
from bench.peers.api import measured
from bench.peers.nats import Nats
from bench.peers.redis_streams import RedisStreams
from holdfast.content.messages import PackageAction
from holdfast.content.publisher.offset_map import OffsetMap, QueueEntry

SUBSCRIBERS = 100
PACKAGE_BYTES = 8_192
PACKAGES = 10_000  # of the large story
ROUND_PACKAGES = 1_000  # of a round
KEEPING_UP = 250  # packages from one announcement of all subscribers to the next
LATE_SECONDS = 2.0
VIEWS_SECONDS = 0.001
ENTRY_BYTES = 100

Story = Callable[[Farm], Coroutine[Any, Any, float]]
Told = Callable[[Story], Measure]


@benchmark("content")
def content(run: Run) -> Iterator[Figure]:
    with ExitStack() as stack:
        loop = stack.enter_context(asyncio.Runner())

        def told(story: Story) -> Measure:
            return lambda: loop.run(_farm(run.folder("content"), story))

        yield from _deliveries(stack, told, run.scaled(ROUND_PACKAGES))
        yield from _costs(told, run.scaled(ROUND_PACKAGES))
        yield from _many(told, run.scaled(PACKAGES))


def _deliveries(stack: ExitStack, told: Told, count: int) -> Iterator[Figure]:
    """Packages to all subscribers, beside peers with as many readers."""
    redis = measured(
        stack, RedisStreams(),
        lambda peer: peer.deliveries_per_second(count, SUBSCRIBERS, PACKAGE_BYTES),
    )  # fmt: skip
    nats = measured(
        stack, Nats(),
        lambda peer: peer.deliveries_per_second(count, SUBSCRIBERS, PACKAGE_BYTES),
    )  # fmt: skip
    delivered = f"packages of 8 KB delivered to {SUBSCRIBERS} subscribers"
    imported = f"packages of 8 KB imported by {SUBSCRIBERS} subscribers into memory"
    for name, against, goal, keep, peer in (
        (f"{delivered}, Redis", "Redis Streams with as many readers", ">= 3", False, redis),
        (f"{delivered}, NATS", "NATS JetStream with as many readers", ">= 10", False, nats),
        (imported, "Redis Streams, whose readers keep nothing", ">= 1", True, redis),
    ):
        story = partial(_deliveries_per_second, count=count, keep=keep)
        yield Figure(name, against, goal, "deliveries/s", ours=told(story), peer=peer)


def _costs(told: Told, count: int) -> Iterator[Figure]:
    """Processor time: what many subscribers, or a stalled one, make more expensive."""
    yield Figure(
        name=f"processor time to publish a package, {SUBSCRIBERS} subscribers",
        against="1 subscriber",
        goal="<= 1.1",
        unit="us",
        ours=told(lambda farm: _publishing_us(farm, SUBSCRIBERS, count)),
        peer=told(lambda farm: _publishing_us(farm, 1, count)),
    )
    yield Figure(
        name="processor time of a delivery beside a stalled subscriber",
        against="without one",
        goal="<= 1.02",
        unit="us",
        ours=told(lambda farm: _delivery_us(farm, count, stalled=True)),
        peer=told(lambda farm: _delivery_us(farm, count, stalled=False)),
    )


def _many(told: Told, count: int) -> Iterator[Figure]:
    """What many packages take: time to look at them, memory, and to get to everybody."""
    yield Figure(
        name=f"the queues of {SUBSCRIBERS} subscribers, each with {count:,} packages",
        against="1 ms",
        goal="<= 1",
        unit="s",
        ours=told(lambda farm: _views_seconds(farm, count)),
        peer=fixed(VIEWS_SECONDS),
    )
    yield Figure(
        name=f"memory of an entry in a queue of {count:,}",
        against=f"{ENTRY_BYTES} B",
        goal="<= 1",
        unit="B",
        ours=lambda: _entry_bytes(count),
        peer=fixed(ENTRY_BYTES),
        rounds_max=1,
        warm_up=False,
    )
    yield Figure(
        name=f"how late {SUBSCRIBERS - 2} subscribers have {count:,} packages, p99;"
        " one is far behind, one stalled",
        against=f"{LATE_SECONDS:g} s",
        goal="<= 1",
        unit="s",
        ours=told(lambda farm: _late_seconds(farm, count)),
        peer=fixed(LATE_SECONDS),
        rounds_max=1,
        warm_up=False,
    )


async def _farm(folder: Path, story: Story) -> float:
    farm = await Farm.open(folder, PACKAGE_BYTES)
    try:
        return await story(farm)
    finally:
        await farm.close()
        remove(folder)


def _healthy(farm: Farm, count: int, *, keep: bool = True) -> list[str]:
    names = [f"edge-{number}" for number in range(count)]
    for name in names:
        farm.subscribe(name, keeps=keep)
    return names


async def _deliveries_per_second(farm: Farm, count: int, *, keep: bool) -> float:
    """From the first package until the last subscriber has the last."""
    names = _healthy(farm, SUBSCRIBERS, keep=keep)
    await farm.publish(1)
    await farm.delivered(names)
    begun = time.perf_counter()
    await farm.publish(count)
    await farm.delivered(names)
    return count * SUBSCRIBERS / (time.perf_counter() - begun)


async def _publishing_us(farm: Farm, subscribers: int, count: int) -> float:
    """The publisher alone: its subscribers are on other machines, and keep up."""
    spent = 0.0
    for first in range(0, count + KEEPING_UP, KEEPING_UP):
        await farm.announce(subscribers, first)
        begun = time.process_time()
        await farm.publish(KEEPING_UP)
        if first:  # the first ones warm up
            spent += time.process_time() - begun
    return 1e6 * spent / count


async def _delivery_us(farm: Farm, count: int, *, stalled: bool) -> float:
    names = _healthy(farm, SUBSCRIBERS - 1)
    if stalled:
        farm.subscribe("stalled", stalled=True)
    await farm.publish(1)
    await farm.delivered(names)
    begun = time.process_time()
    await farm.publish(count)
    await farm.delivered(names)
    return 1e6 * (time.process_time() - begun) / (count * len(names))


async def _views_seconds(farm: Farm, count: int) -> float:
    await farm.publish(count)
    await farm.announce(SUBSCRIBERS, 0)
    await farm.service.queues(PUBLISHER)  # what is old is read once
    begun = time.perf_counter()
    queues = await farm.service.queues(PUBLISHER)
    seconds = time.perf_counter() - begun
    assert [each.length for each in queues] == [count] * SUBSCRIBERS, "a queue is not whole"
    return seconds


def _entry_bytes(count: int) -> float:
    """By what the interpreter holds more with the entries than without."""
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        packages = OffsetMap(0)
        for number in range(count):
            packages.append(
                QueueEntry(
                    number, number + 1, secrets.token_hex(16), PackageAction.ADD,
                    [f"/pages/page-{number}"], PACKAGE_BYTES, 1_700_000_000_000 + number,
                )
            )  # fmt: skip
        after, _ = tracemalloc.get_traced_memory()
        assert len(packages) == count, "entries were dropped"
        return (after - before) / count
    finally:
        tracemalloc.stop()


async def _late_seconds(farm: Farm, count: int) -> float:
    """The story: half is published, one more joins and has to catch up, one never moves."""
    names = _healthy(farm, SUBSCRIBERS - 2)
    farm.subscribe("stalled", stalled=True)
    watching = asyncio.create_task(farm.watch(names))
    await farm.publish(count // 2)
    farm.subscribe("far behind")
    await farm.publish(count - count // 2)
    await farm.delivered([*names, "far behind"])
    watching.cancel()
    return statistics.quantiles(farm.late, n=100)[98]
