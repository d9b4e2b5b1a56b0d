"""Faults that are planted in members, each of which the simulation must find."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import pytest
from tests.journal.cluster.test_cluster_simulation import EarlyOwner

from holdfast.engine.requests.commands import Remembering
from holdfast.journal import Append, Appended
from holdfast.journal.cluster import sending
from holdfast.journal.cluster.journal import ClusterJournal
from holdfast.journal.cluster.receiving import Receiving
from holdfast.journal.cluster.replica import ReplicaRules
from holdfast.journal.cluster.taker import TakeOver


def acknowledges_without_a_quorum(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(sending, "OwnerRange", EarlyOwner)


def takes_appends_after_a_promise(patch: pytest.MonkeyPatch) -> None:
    """The fence does not bind: an owner that was taken over goes on being answered."""
    patch.setattr(ReplicaRules, "is_bound", lambda self, epoch: False)


def closes_a_range_without_copying_its_tail(patch: pytest.MonkeyPatch) -> None:
    """The shortest answer of the quorum is taken for the tail: nobody lacks anything of it."""
    choose = TakeOver.choose

    def chosen(self: TakeOver) -> dict[str, int]:
        for topic in choose(self):
            self.tail[topic] = min(each.get(topic, 0) for each in self._holding.values())
        return self.tail

    patch.setattr(TakeOver, "choose", chosen)


def applies_what_is_not_acknowledged(patch: pytest.MonkeyPatch) -> None:
    """A replica takes what it receives for acknowledged: standbys apply it, readers read it."""
    appending = Receiving.appending

    def received(self: Receiving, member: str, message: Any) -> None:
        appending(self, member, message)
        for each in message.stretches:
            end = each.number + len(each.entries)
            self._positions.reached(each.partition, each.epoch, each.topic, end)

    patch.setattr(Receiving, "appending", received)


def answers_before_the_append_is_acknowledged(patch: pytest.MonkeyPatch) -> None:
    """Replies, parcels and all other effects leave when a step was sent, not when it is durable."""
    append_many = ClusterJournal.append_many

    async def appended(self: ClusterJournal, appends: Sequence[Append]) -> list[Any]:
        owned = self._sending.owned
        firsts = [
            owned[each.partition].next(each.topic) if each.partition in owned else 0
            for each in appends
        ]
        outcomes: list[Any] = await append_many(self, appends)
        for at, outcome in enumerate(outcomes):
            if isinstance(outcome, asyncio.Future):
                first, count = firsts[at], len(appends[at].entries)
                outcome.add_done_callback(lambda done: done.cancelled() or done.exception())
                outcomes[at] = Appended(first, first + count)
        return outcomes

    patch.setattr(ClusterJournal, "append_many", appended)


def forgets_requests(patch: pytest.MonkeyPatch) -> None:
    """A request that is sent again is done again."""
    patch.setattr(Remembering, "known", lambda self, state, tables, id_, command: None)


Plant: TypeAlias = Callable[[pytest.MonkeyPatch], None]

PLANTED: list[Plant] = [
    acknowledges_without_a_quorum,
    takes_appends_after_a_promise,
    closes_a_range_without_copying_its_tail,
    applies_what_is_not_acknowledged,
    answers_before_the_append_is_acknowledged,
    forgets_requests,
]
