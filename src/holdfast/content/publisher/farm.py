"""All subscribers of a publisher in one view."""

from collections import Counter
from collections.abc import Sequence

from holdfast.content.messages import SubscriberProgress
from holdfast.content.publisher.state import ContentState, KnownPublisher
from holdfast.content.publisher.topology import KnownSubscriber
from holdfast.content.publisher.views import FarmSummary, QueueState, SubscriberSummary
from holdfast.limits import CONTENT_BLOCKED_ATTEMPTS


def queue_state(length: int, retries: int) -> QueueState:
    """What happens with a queue of a length, whose head was tried so often.

    >>> [queue_state(*each).value for each in ((0, 0), (7, 2), (7, 3))]
    ['IDLE', 'RUNNING', 'BLOCKED']
    """
    if length == 0:
        return QueueState.IDLE
    return QueueState.BLOCKED if retries >= CONTENT_BLOCKED_ATTEMPTS else QueueState.RUNNING


def summary_of(
    state: ContentState,
    publisher: KnownPublisher,
    subscriber: KnownSubscriber,
    progress: SubscriberProgress,
    lag: int,
    now_ms: int,
) -> SubscriberSummary:
    """A subscriber, with what follows from what it said."""
    said = subscriber.discovery
    is_dead = subscriber.is_dead(now_ms)
    pair = subscriber.name, publisher.name
    return SubscriberSummary(
        subscriber.name, publisher.name,
        QueueState.DEAD if is_dead else queue_state(lag, progress.retries),
        lag, progress.offset, progress.number, progress.retries, progress.reason,
        progress.failing_since_ms, len(state.errors.of(*pair)), said.ready, said.editable,
        said.retries_max, subscriber.heard_ms, said.store_id, said.host, said.imported,
        said.imported_bytes, said.import_ms, max(progress.cleared, state.cleared_to(*pair)),
        subscriber.is_doubled(now_ms), max(publisher.number - progress.number - lag, 0),
    )  # fmt: skip


def farm_of(
    publisher: KnownPublisher, subscribers: Sequence[SubscriberSummary], delay_ms: int
) -> FarmSummary:
    """The one view of all of them."""
    alive = sorted(
        (each for each in subscribers if each.state is not QueueState.DEAD),
        key=lambda each: each.lag,
    )
    states = Counter(each.state for each in subscribers)
    return FarmSummary(
        publisher.name, publisher.number, publisher.offset, publisher.distributed,
        len(subscribers), {each.value: states[each] for each in QueueState},
        sum(each.ready for each in alive),
        _percentile(alive, 50), _percentile(alive, 99), alive[-1].lag if alive else 0,
        alive[-1].name if alive else None,
        [each for each in subscribers if each.retries or each.failed or each.is_doubled],
        [each.name for each in subscribers if each.state is QueueState.DEAD], delay_ms,
    )  # fmt: skip


def _percentile(by_lag: Sequence[SubscriberSummary], percent: int) -> int:
    """The lag that so many percent of them do not exceed."""
    if not by_lag:
        return 0
    return by_lag[(len(by_lag) * percent + 99) // 100 - 1].lag


def warnings_of(state: ContentState, now_ms: int, count_max: int = 10) -> list[str]:
    """What somebody should look at: queues that are blocked, names that are used twice."""
    found: list[str] = []
    for each in state.topology.known.values():
        if each.is_dead(now_ms):
            continue
        if each.is_doubled(now_ms):
            found.append(
                f"Two stores are used by subscribers named {each.name}; give one of them another"
                " name"
            )
        found += [
            f"Subscriber {each.name} of {publisher} is blocked behind offset {progress.offset}"
            f" after {progress.retries} attempts: {progress.reason}"
            for publisher, progress in each.of.items()
            if each.is_blocked(publisher)
        ]
    more = len(found) - count_max
    return found if more <= 0 else [*found[:count_max], f"{more} more subscribers need attention"]
