"""Distributions: see what has not arrived and why, give it up, wait for its end."""

import asyncio
from collections.abc import Collection, Sequence

from holdfast.engine.distribution.queries import (
    CountInFlight,
    FindDistribution,
    FindUnfinished,
    FoundDistribution,
    ListDistributions,
)
from holdfast.engine.distribution.values import (
    Decision,
    DistributionFinished,
    DistributionIntent,
    Resending,
)
from holdfast.engine.kernel import Command
from holdfast.errors import NotFound
from holdfast.gateway import checks
from holdfast.gateway.access.asking import Asked
from holdfast.gateway.distribution.api import DistributionApi
from holdfast.gateway.distribution.shapes import (
    DistributionCancellation,
    DistributionPage,
    DistributionQuery,
    DistributionSkip,
    DistributionView,
    TargetState,
    TargetView,
)
from holdfast.gateway.walk import walk
from holdfast.limits import PAGE_ITEMS_MAX
from holdfast.partitions import EffectTopic
from holdfast.records import ValueType, partition_of
from holdfast.records.keys import NO_KEY

_DISTRIBUTION = ValueType.DISTRIBUTION


class DistributionService(DistributionApi):
    """What can be asked about distributions."""

    def __init__(self, asked: Asked) -> None:
        self._asked = asked

    # --- questions ----------------------------------------------------------------------------

    async def page(self, query: DistributionQuery) -> DistributionPage:
        """Distributions that have not finished, in the order of their keys."""
        limit = checks.within(query.limit, 1, PAGE_ITEMS_MAX, "limit")
        if query.target is not None:
            checks.within(query.target, 1, self._asked.count, "target")
        start = 0 if query.after is None else self._key(query.after)
        found, last = await walk(
            self._asked, start, limit,
            lambda after, left: ListDistributions(after, left, query.queue, query.target),
        )  # fmt: skip
        return DistributionPage([_view(each) for each in found], str(last) if last else None)

    async def get(self, distribution_key: str) -> DistributionView:
        key = self._key(distribution_key)
        found = await self._asked.ask(partition_of(key), FindDistribution(key))
        if found is None:
            raise NotFound(f"No distribution with key {key} is pending", key=key)
        return _view(found)

    # --- decisions ----------------------------------------------------------------------------

    async def skip(self, distribution_key: str, skip: DistributionSkip) -> None:
        checks.within(skip.partition, 1, self._asked.count, "partition")
        decision = Decision(
            checks.name(skip.by, "name of who decides"),
            checks.shortened(skip.reason),
            (skip.partition,),
        )
        await self._decide(distribution_key, DistributionIntent.SKIP, decision)

    async def cancel(self, distribution_key: str, cancellation: DistributionCancellation) -> None:
        by = checks.name(cancellation.by, "name of who decides")
        decision = Decision(by, checks.shortened(cancellation.reason))
        await self._decide(distribution_key, DistributionIntent.CANCEL, decision)

    async def resume(self, partition: int) -> int:
        checks.within(partition, 1, self._asked.count, "partition")
        in_flight = await self._asked.ask_all(CountInFlight(partition))
        command = Command(_DISTRIBUTION, DistributionIntent.RESUME, NO_KEY, Resending(partition))
        origins = [origin for origin, flying in enumerate(in_flight, 1) if flying]
        await asyncio.gather(*self._asked.submit_all({each: [command] for each in origins}))
        return sum(in_flight)

    async def _decide(
        self, distribution_key: str, intent: DistributionIntent, decision: Decision
    ) -> None:
        key = self._key(distribution_key)
        command = Command(_DISTRIBUTION, intent, key, decision)
        (reply,) = await self._asked.submit(partition_of(key), [command])
        if error := reply.error():
            raise error

    # --- the end of a distribution ------------------------------------------------------------

    async def finished(self, keys: Sequence[int], wait_ms: int) -> bool:
        """Waits until all of these have finished, or for so long; says whether they have."""
        left, news = set(keys), asyncio.Event()

        def tell(effect: DistributionFinished | None) -> None:
            if effect is not None:
                left.discard(effect.key)
            news.set()

        stops = [
            self._asked.follow(EffectTopic(DistributionFinished, key, partition_of(key)), tell)
            for key in left
        ]
        try:
            async with asyncio.timeout(wait_ms / 1000):
                while left:
                    news.clear()
                    left &= await self._unfinished(left)
                    if left:
                        await news.wait()
        except TimeoutError:
            return False
        finally:
            for stop in stops:
                stop()
        return True

    async def _unfinished(self, keys: Collection[int]) -> set[int]:
        groups: dict[int, list[int]] = {}
        for key in keys:
            groups.setdefault(partition_of(key), []).append(key)
        found: set[int] = set()
        for partition, group in groups.items():
            found.update(await self._asked.ask(partition, FindUnfinished(tuple(group))))
        return found

    # --- views --------------------------------------------------------------------------------

    def _key(self, text: str) -> int:
        return checks.key_from(text, self._asked.count, "distribution")


def _view(found: FoundDistribution) -> DistributionView:
    started = checks.moment(found.started_ms)
    assert started is not None
    return DistributionView(
        str(found.key),
        partition_of(found.key),
        ValueType(found.value_type).name,
        found.intent,
        found.queue or None,
        started,
        found.size_bytes,
        [
            TargetView(
                each.partition, TargetState(each.state), each.attempts, checks.moment(each.due_ms),
                each.refusal or None, behind=str(each.behind) if each.behind else None,
            )
            for each in found.targets
        ],
    )  # fmt: skip
