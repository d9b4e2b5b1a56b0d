"""What has to hold for the distributions of a partition, at any time and at the end."""

from collections import Counter
from typing import Any, NamedTuple

from distribution_cluster import Cluster, Node

from holdfast.engine.distribution.values import DistributionIntent
from holdfast.engine.due.dates import DueKind
from holdfast.engine.families import Tag
from holdfast.records import Record, RecordKind, ValueType

# Written down here anew, and not taken from the engine: seconds after each sending.
PAUSES = (10, 20, 40, 80, 160, 300)
SETTLED = {
    DistributionIntent.ACKNOWLEDGED,
    DistributionIntent.SKIPPED,
    DistributionIntent.CANCELED,
}

_TAG_AT, _DUE_KIND_AT = 2, 11  # behind the partition; behind that, the tag and eight bytes of time


def pause_ms(attempt: int) -> int:
    return PAUSES[min(attempt, len(PAUSES)) - 1] * 1_000


# --- the end ----------------------------------------------------------------------------------


def check_end(cluster: Cluster) -> None:
    """Nothing is left of any distribution but how far each queue has come."""
    for node in cluster.nodes.values():
        check_rows(node.view.distributions, node.view.due)
        left = Counter(Tag(raw[_TAG_AT]).name for raw, _ in node.dump() if _is_left(raw))
        assert not left, f"partition {node.number}: left behind: {dict(left)}"
        origins = [row for row, _ in node.view.distributions._received.scan()]
        assert len(origins) == len(set(origins)), "more than one row for a queue"
        check_replay(node)


def check_now(cluster: Cluster) -> None:
    """What holds before the end too."""
    for node in cluster.nodes.values():
        check_rows(node.view.distributions, node.view.due)
        check_replay(node)


def check_replay(node: Node) -> None:
    """What is read from the log alone is what happened."""
    assert node.replayed().state.dump() == node.dump(), "replay is not what happened"


def _is_left(raw: bytes) -> bool:
    if raw[_TAG_AT] == Tag.DUE:
        return raw[_DUE_KIND_AT] == DueKind.DISTRIBUTION
    return Tag.DISTRIBUTIONS <= raw[_TAG_AT] <= Tag.CONTINUATIONS


# --- at any time ------------------------------------------------------------------------------


def check_rows(state: Any, due: Any) -> None:
    """Every row of what is distributed fits to every other."""
    active = dict(state.active.scan())
    pending = {row for row, _ in state._pending.scan()}
    flights = {(key, partition): each for (partition, key), each in state._flights.scan()}
    queued = {(key, partition): queue for (queue, partition, key), _ in state._queued.scan()}
    assert state.count() == len(active)
    assert {key for key, _ in pending} == set(active), "pending, or over"
    assert flights.keys() <= pending and queued.keys() <= pending
    assert pending == flights.keys() | queued.keys(), "in flight, or waiting"
    for (key, partition), queue in queued.items():
        assert active[key].queue == queue
        if queue:
            is_head = state.head(queue, partition) == key
            assert is_head == ((key, partition) in flights), "the head of a queue is in flight"
        else:
            assert (key, partition) not in flights
    for (queue, _, key), _ in state._continuations.scan():
        heads = [state.head(queue, partition) for _, partition in pending]
        assert any(head is not None and head < key for head in heads), "it waits for nothing"
    lines = dict(state.lines())
    assert lines.keys() == {partition for _, partition in pending}
    due_rows = {row for row, _ in due._rows.scan() if row[1] == DueKind.DISTRIBUTION}
    wanted = {(line.due_ms, DueKind.DISTRIBUTION, each) for each, line in lines.items()}
    assert due_rows == {row for row in wanted if row[0]}
    for partition, line in lines.items():
        here = {key: each for (key, to), each in flights.items() if to == partition}
        assert line.pending == sum(to == partition for _, to in pending)
        assert line.in_flight == len(here)
        assert line.unordered == sum(not active[key].queue for key in here)
        assert line.lost == sum(each.is_lost for each in here.values())
        assert bool(line.due_ms) == bool(here)
        assert all(line.due_ms <= each.due_ms for each in here.values()), "nobody looks in time"
        assert all(line.closed_until_ms <= each.due_ms for each in here.values()), "it is closed"


# --- time -------------------------------------------------------------------------------------


class _Flight(NamedTuple):
    due_ms: int
    attempts: int


class Timekeeper:
    """Walks over a log and checks that what is sent again is sent when it is due."""

    def __init__(self, node: Node) -> None:
        self._downtimes = node.downtimes
        self._flights: dict[tuple[int, int], _Flight] = {}  # (key, partition)
        self._closed_ms: dict[int, int] = {}  # partitions that are behind
        self._pending: Counter[int] = Counter()  # by partition: who has all is not behind
        self.resent = 0
        for record in node.records():
            if record.kind is RecordKind.EVENT and record.value_type == ValueType.DISTRIBUTION:
                self._follow(record, record.value, record.timestamp_ms)
        assert not self._flights, "what is in flight at the end was not sent again"

    def _follow(self, record: Record, value: Any, now_ms: int) -> None:
        intent = DistributionIntent(record.intent)
        if intent in (DistributionIntent.STARTED, DistributionIntent.ENQUEUED):
            self._pending.update(value.partitions)
        if intent in (DistributionIntent.STARTED, DistributionIntent.DISTRIBUTING):
            for partition in value.partitions:
                self._send(record.key, partition, now_ms)
        elif intent in SETTLED:
            for partition in value.partitions:
                flight = self._flights.pop((record.key, partition), None)
                assert flight is None or now_ms <= max(self._moments(flight.due_ms)), "too late"
                self._pending[partition] -= 1
                if not self._pending[partition]:
                    self._closed_ms.pop(partition, None)
        elif intent == DistributionIntent.REDISTRIBUTED:
            self._closed_ms.pop(value.partition, None)
            for key, attempt in zip(value.keys, value.attempts, strict=True):
                self._resend(key, value.partition, attempt, now_ms)
        elif intent == DistributionIntent.RESUMED:
            self._closed_ms.pop(value.partition, None)
            for key in value.keys:
                self._flights[key, value.partition] = _Flight(now_ms, 0)
        elif intent == DistributionIntent.POSTPONED:
            self._postpone(value.partition, value.keys, value.until_ms)

    def _send(self, key: int, partition: int, now_ms: int) -> None:
        closed_ms = self._closed_ms.get(partition, 0)
        is_closed = closed_ms > now_ms
        flight = _Flight(closed_ms, 0) if is_closed else _Flight(now_ms + pause_ms(1), 1)
        self._flights[key, partition] = flight

    def _resend(self, key: int, partition: int, attempt: int, now_ms: int) -> None:
        flight = self._flights[key, partition]
        assert attempt == flight.attempts + 1, "an attempt was not counted"
        is_in_time = now_ms in self._moments(flight.due_ms)
        assert is_in_time, f"due at {flight.due_ms}, sent at {now_ms}"
        self._flights[key, partition] = _Flight(now_ms + pause_ms(attempt), attempt)
        self.resent += 1

    def _postpone(self, partition: int, keys: tuple[int, ...], until_ms: int) -> None:
        self._closed_ms[partition] = until_ms
        for (key, to), flight in self._flights.items():
            if to == partition and key in keys:
                self._flights[key, to] = _Flight(until_ms, max(flight.attempts - 1, 0))
            elif to == partition:
                due_ms = max(flight.due_ms, until_ms)
                self._flights[key, to] = _Flight(due_ms, flight.attempts)

    def _moments(self, due_ms: int) -> list[int]:
        """When it may be sent: when it is due, or as soon as the partition is up."""
        moments = [due_ms]
        for begin_ms, end_ms in self._downtimes:
            if begin_ms <= moments[-1] <= end_ms:
                moments.append(end_ms)
        return moments
