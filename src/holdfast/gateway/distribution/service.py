"""Distributions: see what has not arrived and why, give it up, wait for its end."""

import asyncio

from holdfast.clock import Clock
from holdfast.engine.distribution.state import Distributions as State
from holdfast.engine.distribution.state import StoredDistribution
from holdfast.engine.distribution.values import (
    Decision,
    DistributionFinished,
    DistributionIntent,
)
from holdfast.engine.kernel import Command
from holdfast.engine.partition import TABLES
from holdfast.errors import NotFound
from holdfast.gateway import checks
from holdfast.gateway.access.asking import Asked
from holdfast.gateway.distribution.shapes import (
    DistributionCancellation,
    DistributionPage,
    DistributionQuery,
    DistributionSkip,
    DistributionView,
    TargetState,
    TargetView,
)
from holdfast.gateway.post import Post
from holdfast.limits import PAGE_ITEMS_MAX
from holdfast.metrics import DistributionGauges
from holdfast.records import ValueType, partition_of


class Distributions:
    """What can be asked about distributions."""

    def __init__(self, runner: Asked, post: Post, clock: Clock) -> None:
        self._runner = runner
        self._post = post
        self._clock = clock
        self._partitions = len(runner.processors)
        self._waiting: dict[int, asyncio.Future[None]] = {}  # for the end of a distribution

    # --- questions ----------------------------------------------------------------------------

    async def distributions(self, query: DistributionQuery) -> DistributionPage:
        """Distributions that have not finished, in the order of their keys."""
        limit = checks.within(query.limit, 1, PAGE_ITEMS_MAX, "limit")
        if query.target is not None:
            checks.within(query.target, 1, self._partitions, "target")
        after = 0 if query.after is None else self._key(query.after)
        await self._runner.settled()
        items: list[DistributionView] = []
        for partition in range(max(partition_of(after), 1), self._partitions + 1):
            state = self._state(partition)
            for key, stored in state.active.scan(start=after + 1):
                if query.queue not in (None, stored.queue) or not (
                    query.target is None or state.is_pending(key, query.target)
                ):
                    continue
                items.append(self._view(key, stored))
                if len(items) == limit:
                    return DistributionPage(items, items[-1].distribution_key)
            after = 0
        return DistributionPage(items)

    async def distribution(self, distribution_key: str) -> DistributionView:
        key = self._key(distribution_key)
        await self._runner.settled()
        stored = self._state(partition_of(key)).active.get(key)
        if stored is None:
            raise NotFound(f"Expected a distribution with key {key}, but none is pending", key=key)
        return self._view(key, stored)

    def gauges(self) -> DistributionGauges:
        """How much is on its way, by partition."""
        everywhere = range(1, self._partitions + 1)
        active = {partition: self._state(partition).count() for partition in everywhere}
        pending, in_flight = dict.fromkeys(everywhere, 0), dict.fromkeys(everywhere, 0)
        for partition in everywhere:
            for target, line in self._state(partition).lines():
                pending[target] += line.pending
                in_flight[target] += line.in_flight
        return DistributionGauges(active, pending, in_flight)

    # --- decisions ----------------------------------------------------------------------------

    async def skip(self, distribution_key: str, skip: DistributionSkip) -> None:
        checks.within(skip.partition, 1, self._partitions, "partition")
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
        checks.within(partition, 1, self._partitions, "partition")
        await self._runner.settled()
        self._post.reached(partition)
        states = map(self._state, range(1, self._partitions + 1))
        return sum(state.line(partition).in_flight for state in states)

    async def _decide(
        self, distribution_key: str, intent: DistributionIntent, decision: Decision
    ) -> None:
        key = self._key(distribution_key)
        command = Command(ValueType.DISTRIBUTION, intent, key, decision)
        (reply,) = await self._runner.submit(partition_of(key), [command])
        if error := reply.error():
            raise error

    # --- the end of a distribution ------------------------------------------------------------

    async def finished(self, keys: list[int], wait_ms: int) -> bool:
        """Waits until all of these have finished, or for so long; says whether they have."""
        open_ = [key for key in keys if self._state(partition_of(key)).active.get(key)]
        if not open_:
            return True
        loop = asyncio.get_running_loop()
        futures = {self._waiting.setdefault(key, loop.create_future()) for key in open_}
        _, missing = await asyncio.wait(futures, timeout=wait_ms / 1000)
        return not missing

    def ended(self, effect: DistributionFinished) -> None:
        future = self._waiting.pop(effect.key, None)
        if future is not None and not future.done():
            future.set_result(None)

    # --- views --------------------------------------------------------------------------------

    def _key(self, text: str) -> int:
        return checks.key_from(text, self._partitions, "distribution")

    def _state(self, partition: int) -> State:
        return self._runner.processors[partition].view.distributions

    def _view(self, key: int, stored: StoredDistribution) -> DistributionView:
        state = self._state(partition_of(key))
        started = checks.moment(stored.started_ms)
        assert started is not None
        return DistributionView(
            str(key),
            partition_of(key),
            ValueType(stored.value_type).name,
            TABLES.intent(stored.value_type, stored.intent).name,
            stored.queue or None,
            started,
            len(stored.value),
            [self._target(state, key, stored, each) for each in state.pending_at(key)],
        )

    def _target(
        self, state: State, key: int, stored: StoredDistribution, partition: int
    ) -> TargetView:
        flight = state.flight(partition, key)
        if flight is None:
            behind = state.head(stored.queue, partition) if stored.queue else None
            return TargetView(
                partition, TargetState.WAITING, 0, behind=str(behind) if behind else None
            )
        how = TargetState.IN_FLIGHT
        if flight.is_refused:
            how = TargetState.REFUSED
        elif state.line(partition).closed_until_ms > self._clock.now_ms():
            how = TargetState.POSTPONED
        next_attempt = checks.moment(flight.due_ms)
        return TargetView(partition, how, flight.attempts, next_attempt, flight.refusal or None)
