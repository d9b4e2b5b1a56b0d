"""What can be asked of the distributions that a partition has started."""

from itertools import islice

import msgspec

from holdfast.engine.distribution.state import StoredDistribution
from holdfast.engine.kernel.query import Query, questions
from holdfast.engine.reader import Reader
from holdfast.limits import QUERY_ROWS_MAX


class _Answer(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What all answers have in common."""


class FoundTarget(_Answer, frozen=True):
    """A partition that has not acknowledged a distribution."""

    partition: int
    state: str  # WAITING, IN_FLIGHT, POSTPONED or REFUSED
    attempts: int = 0
    due_ms: int = 0
    refusal: str = ""
    behind: int = 0  # the distribution at the head of the queue


class FoundDistribution(_Answer, frozen=True):
    """A command that is being distributed."""

    key: int
    value_type: int
    intent: str
    queue: str
    started_ms: int
    size_bytes: int
    targets: list[FoundTarget]


class DistributionRows(_Answer, frozen=True):
    """Some distributions, and behind which key to go on; 0 if there are no more."""

    items: list[FoundDistribution]
    next_after: int = 0


class ListDistributions(Query[DistributionRows], frozen=True):
    """Distributions that have not finished behind a key; a bounded look."""

    after: int
    limit: int
    queue: str | None = None
    target: int | None = None


def list_distributions(reader: Reader, query: ListDistributions) -> DistributionRows:
    state = reader.state.distributions
    items: list[FoundDistribution] = []
    key = looked_at = 0
    for key, stored in islice(state.active.scan(start=query.after + 1), QUERY_ROWS_MAX):
        looked_at += 1
        if query.queue not in (None, stored.queue):
            continue
        if query.target is not None and not state.is_pending(key, query.target):
            continue
        items.append(_found(reader, key, stored))
        if len(items) == query.limit:
            return DistributionRows(items, key)
    return DistributionRows(items, key if looked_at == QUERY_ROWS_MAX else 0)


class FindDistribution(Query[FoundDistribution | None], frozen=True):
    """A distribution that has not finished."""

    key: int


def find_distribution(reader: Reader, query: FindDistribution) -> FoundDistribution | None:
    stored = reader.state.distributions.active.get(query.key)
    return None if stored is None else _found(reader, query.key, stored)


def _found(reader: Reader, key: int, stored: StoredDistribution) -> FoundDistribution:
    pending = reader.state.distributions.pending_at(key)
    intent = reader.domains.intent(stored.value_type, stored.intent).name
    return FoundDistribution(
        key, stored.value_type, intent, stored.queue, stored.started_ms, len(stored.value),
        [_target(reader, key, stored, each) for each in pending],
    )  # fmt: skip


def _target(reader: Reader, key: int, stored: StoredDistribution, partition: int) -> FoundTarget:
    state = reader.state.distributions
    flight = state.flight(partition, key)
    if flight is None:
        behind = state.head(stored.queue, partition) if stored.queue else None
        return FoundTarget(partition, "WAITING", behind=behind or 0)
    how = "IN_FLIGHT"
    if flight.is_refused:
        how = "REFUSED"
    elif state.line(partition).closed_until_ms > reader.now_ms:
        how = "POSTPONED"
    return FoundTarget(partition, how, flight.attempts, flight.due_ms, flight.refusal)


class FindUnfinished(Query[list[int]], frozen=True):
    """Those of some distributions that have not finished."""

    is_settled = False  # its answer is only to be waited for
    keys: tuple[int, ...]


def find_unfinished(reader: Reader, query: FindUnfinished) -> list[int]:
    active = reader.state.distributions.active
    return [key for key in query.keys if active.get(key) is not None]


class CountInFlight(Query[int], frozen=True):
    """How many are on their way to a partition."""

    partition: int


def count_in_flight(reader: Reader, query: CountInFlight) -> int:
    return reader.state.distributions.line(query.partition).in_flight


QUERIES = questions(list_distributions, find_distribution, find_unfinished, count_in_flight)
