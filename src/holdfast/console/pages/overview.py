"""The overview: what got done, what waits, what is stuck, and how far everything is behind."""

import asyncio
import time
from collections import Counter, deque
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

from holdfast.console.live import Produce, event
from holdfast.console.numbers import NodeNumbers, NumberSamples, numbers_of
from holdfast.console.page import ConsolePage, PageAsk, PageReply, PageStream
from holdfast.console.rendering import OfferedPages, Templates
from holdfast.engine.identity.values import Permission, ResourceType
from holdfast.gateway.access.needs import one
from holdfast.gateway.cluster.shapes import ClusterStatus
from holdfast.gateway.rest.common import RestApi
from holdfast.limits import CONSOLE_HISTORY_SAMPLES, CONSOLE_TICK_MS

_READ_SYSTEM = one(ResourceType.SYSTEM, Permission.READ)
_TEMPLATE = "overview.html"
_TYPES_SHOWN = 12
_APART_S_MIN = CONSOLE_TICK_MS / 2_000
_PAUSE_S_MAX = 5 * CONSOLE_TICK_MS / 1_000  # of nobody looking: what is older is another story


class WorkRow(NamedTuple):
    """Jobs of one type."""

    type: str
    waiting: int
    running: int
    incidents: int
    workers: int


class Sampled(NamedTuple):
    """A reading, and when it was made by a clock that only goes forward."""

    seconds: float
    numbers: NodeNumbers


@dataclass
class OverviewHistory:
    """The last readings, while somebody looks."""

    samples: "deque[Sampled]" = field(
        default_factory=lambda: deque[Sampled](maxlen=CONSOLE_HISTORY_SAMPLES)
    )

    def add(self, seconds: float, numbers: NodeNumbers) -> None:
        if self.samples:
            age = seconds - self.samples[-1].seconds
            if age > _PAUSE_S_MAX:
                self.samples.clear()
            elif age < _APART_S_MIN:  # a page was opened between two ticks
                return
        self.samples.append(Sampled(seconds, numbers))

    def rates(self, name: str) -> list[float]:
        """How fast a number grew, per second, from one reading to the next."""
        return [
            max(getattr(new.numbers, name) - getattr(old.numbers, name), 0.0)
            / max(new.seconds - old.seconds, 0.001)
            for old, new in pairwise(self.samples)
        ]

    def values(self, name: str) -> list[float]:
        return [float(getattr(each.numbers, name)) for each in self.samples]


async def _read(api: RestApi, history: OverviewHistory) -> dict[str, Any]:
    """What the page shows now."""
    metrics, health, topology = await asyncio.gather(  # each waits for other processes
        api.node.metrics(), api.node.health(), api.node.topology()
    )
    samples = NumberSamples(metrics)
    numbers = numbers_of(samples)
    history.add(time.monotonic(), numbers)
    return {
        "numbers": numbers,
        "history": history,
        "work": _work(samples),
        "health": health,
        "topology": topology,
        "behind": _behind(await api.cluster.status()) if topology.members else {},
        "away": [each for each in topology.partitions if not each.is_reached],
    }


def _behind(status: ClusterStatus) -> dict[str, int]:
    """How many records a member misses of the partitions that it stands by for, as far as told."""
    found: Counter[str] = Counter()
    for partition in status.partitions:
        for replica in partition.replicas:
            if replica.member != partition.owner and replica.lag is not None:
                found[replica.member] += replica.lag
    return found


def _work(samples: NumberSamples) -> list[WorkRow]:
    waiting, running, incidents, workers = (
        samples.by(f"holdfast_{name}", "type")
        for name in ("jobs_waiting", "jobs_running", "incidents_open", "workers")
    )
    types = {*waiting, *running, *incidents, *workers}
    rows = [
        WorkRow(each, waiting[each], running[each], incidents[each], workers[each])
        for each in types
    ]
    rows.sort(key=lambda row: (-row.incidents, -row.waiting, -row.running, row.type))
    return rows[:_TYPES_SHOWN]


async def show(ask: PageAsk) -> PageReply:
    """The page as of now; the live feed goes on from there."""
    if not await ask.may(_READ_SYSTEM):
        return await ask.show(_TEMPLATE, is_permitted=False)
    found = await _read(ask.api, ask.feeds.kept(OverviewHistory))
    return await ask.show(_TEMPLATE, is_permitted=True, **found)


async def live(ask: PageAsk) -> PageStream:
    """The numbers, read once a second for all tabs whose visitors may open the same pages."""
    offered = await ask.templates.offered(ask)
    history = ask.feeds.kept(OverviewHistory)
    make = partial(_producer, ask.api, ask.templates, offered, history)
    name = f"overview {offered.paths}"  # the numbers are links to what their visitors may see
    return PageStream(ask.feeds.feed(name, make, CONSOLE_TICK_MS, is_kept=False).listen())


def _producer(
    api: RestApi, templates: Templates, offered: OfferedPages, history: OverviewHistory
) -> Produce:
    async def produce() -> bytes | None:
        found = await _read(api, history)
        return event("numbers", templates.live(_TEMPLATE, "numbers", found, offered))

    return produce


PAGES = (
    ConsolePage("/console", "Overview", show, group="Work"),
    ConsolePage("/console/live", "Live numbers", live, _READ_SYSTEM),
)
