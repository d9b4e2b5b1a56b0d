"""What partitions, people and time ask of distributions."""

from collections.abc import Iterable

from holdfast.engine.distribution.distributing import send, sending
from holdfast.engine.distribution.state import StoredDistribution
from holdfast.engine.distribution.values import (
    ContinuationRef,
    Decision,
    DistributionFinished,
    DistributionIntent,
    Postponement,
    Refusal,
    Resending,
    Targets,
)
from holdfast.engine.kernel import Turn
from holdfast.engine.state import EngineState
from holdfast.errors import Code
from holdfast.limits import RESEND_BYTES_MAX
from holdfast.records import Record, ValueType
from holdfast.records.keys import NO_KEY

DISTRIBUTION = ValueType.DISTRIBUTION


# --- partitions answer ------------------------------------------------------------------------


def acknowledge(turn: Turn[EngineState], command: Record) -> None:
    """Partitions are done with a command; what waited behind it goes to them now."""
    told: Targets = command.value
    known = _pending(turn, command.key, told.partitions)
    if not known:
        return _unknown(turn, command, told.partitions)
    _settle(turn, command.key, DistributionIntent.ACKNOWLEDGED, Targets(known))
    for partition in known:
        hear(turn, partition)


def refuse(turn: Turn[EngineState], command: Record) -> None:
    """A command threw at a partition. It stays pending: people can see why, and decide."""
    told: Refusal = command.value
    if turn.state.distributions.flight(told.partition, command.key) is None:
        return _unknown(turn, command, (told.partition,))
    turn.event(DISTRIBUTION, DistributionIntent.REFUSED, command.key, told)
    hear(turn, told.partition)


def postpone(turn: Turn[EngineState], command: Record) -> None:
    """A partition is behind and had no room: nothing is sent to it for a while."""
    told: Postponement = command.value
    distributions = turn.state.distributions
    keys = tuple(key for key in told.keys if distributions.flight(told.partition, key))
    if not keys:
        named = ", ".join(map(str, told.keys))
        reason = (
            f"Expected one of the distributions {named} to be in flight to partition"
            f" {told.partition}, but none is"
        )
        return turn.reject(command, Code.NOT_FOUND, reason)
    until_ms = turn.now_ms + told.pause_ms
    value = Postponement(told.partition, keys, told.pause_ms, until_ms)
    turn.event(DISTRIBUTION, DistributionIntent.POSTPONED, NO_KEY, value)


def hear(turn: Turn[EngineState], partition: int) -> None:
    """A partition gave a sign of life: what it did not answer is due at once.

    Unless it is behind: then it is known to be there, and has said when it has room.
    """
    distributions = turn.state.distributions
    line = distributions.line(partition)
    if line.lost and line.closed_until_ms <= turn.now_ms:
        lost = tuple(key for key, flight in distributions.flights(partition) if flight.is_lost)
        value = Resending(partition, lost)
        turn.event(DISTRIBUTION, DistributionIntent.RESUMED, NO_KEY, value)


# --- time and people ask ----------------------------------------------------------------------


def redistribute(turn: Turn[EngineState], command: Record) -> None:
    """Sends again what is due at a partition, as much as a step may hold; the rest stays due."""
    partition = command.value.partition
    distributions = turn.state.distributions
    keys: list[int] = []
    attempts: list[int] = []
    size_bytes = 0
    for key, flight in list(distributions.flights(partition)):
        if flight.due_ms > turn.now_ms:
            continue
        stored = distributions.active.get(key)
        assert stored is not None, "what is in flight is being distributed"
        size_bytes += len(stored.value)
        if keys and size_bytes > RESEND_BYTES_MAX:
            break
        keys.append(key)
        attempts.append(flight.attempts + 1)
        turn.effect(sending(turn.tables, key, stored, (partition,), flight.attempts + 1))
    value = Resending(partition, tuple(keys), tuple(attempts))
    turn.event(DISTRIBUTION, DistributionIntent.REDISTRIBUTED, NO_KEY, value)


def resume(turn: Turn[EngineState], command: Record) -> None:
    """A partition can be reached again: all that is in flight to it is due at once."""
    asked: Resending = command.value
    keys = tuple(key for key, _ in turn.state.distributions.flights(asked.partition))
    if not keys:
        reason = f"Expected distributions to partition {asked.partition}, but there are none"
        return turn.reject(command, Code.NOT_FOUND, reason)
    value = Resending(asked.partition, keys)
    turn.event(DISTRIBUTION, DistributionIntent.RESUMED, NO_KEY, value)


def skip(turn: Turn[EngineState], command: Record) -> None:
    """A person gives a distribution up for some partitions; what waits behind it goes on."""
    asked: Decision = command.value
    known = _pending(turn, command.key, asked.partitions)
    if not known:
        return _unknown(turn, command, asked.partitions)
    decision = Decision(asked.by, asked.reason, known)
    _settle(turn, command.key, DistributionIntent.SKIPPED, decision)


def cancel(turn: Turn[EngineState], command: Record) -> None:
    """A person gives a distribution up wherever it is pending."""
    asked: Decision = command.value
    known = tuple(turn.state.distributions.pending_at(command.key))
    if not known:
        return _unknown(turn, command, ())
    decision = Decision(asked.by, asked.reason, known)
    _settle(turn, command.key, DistributionIntent.CANCELED, decision)


def go_on(turn: Turn[EngineState], command: Record) -> None:
    """A queue has drained: the command that waited for it is written."""
    queue: str = command.value.queue
    stored = turn.state.distributions.continuation(queue, command.key)
    if stored is None:
        reason = f"Expected continuation {command.key} of queue {queue!r}, but there is none"
        return turn.reject(command, Code.NOT_FOUND, reason)
    turn.event(DISTRIBUTION, DistributionIntent.CONTINUED, command.key, command.value)
    value_type, intent, tables = stored.value_type, stored.intent, turn.tables
    turn.command(
        ValueType(value_type),
        tables.intent(value_type, intent),
        stored.key,
        tables.decode_value(value_type, intent, stored.value),
        stored.claims,
    )
    _continue(turn, queue)


# --- what they share --------------------------------------------------------------------------


def _pending(turn: Turn[EngineState], key: int, partitions: Iterable[int]) -> tuple[int, ...]:
    is_pending = turn.state.distributions.is_pending
    return tuple(each for each in dict.fromkeys(partitions) if is_pending(key, each))


def _unknown(turn: Turn[EngineState], command: Record, partitions: tuple[int, ...]) -> None:
    where = f" at partition {' or '.join(map(str, partitions))}" if partitions else ""
    reason = f"Expected distribution {command.key} to be pending{where}, but it is not"
    turn.reject(command, Code.NOT_FOUND, reason)


def _settle(
    turn: Turn[EngineState], key: int, intent: DistributionIntent, ended: Targets | Decision
) -> None:
    """Ends a distribution at some partitions, and lets go what waited for that."""
    distributions = turn.state.distributions
    stored = distributions.active.get(key)
    assert stored is not None, "what is pending is being distributed"
    left = [each for each in ended.partitions if distributions.flight(each, key)]
    turn.event(DISTRIBUTION, intent, key, ended)
    if isinstance(ended, Decision):
        _tell_given_up(turn, key, stored, ended.partitions)
    if not distributions.pending_at(key):
        turn.event(DISTRIBUTION, DistributionIntent.FINISHED, key, Targets())
        turn.effect(DistributionFinished(key))
    followers: dict[int, list[int]] = {}
    for partition in left:
        following = distributions.head(stored.queue, partition)
        if following is not None:
            followers.setdefault(following, []).append(partition)
    for following, partitions in followers.items():
        value = Targets(tuple(partitions))
        turn.event(DISTRIBUTION, DistributionIntent.DISTRIBUTING, following, value)
        send(turn, following, partitions)
    if stored.queue:
        _continue(turn, stored.queue)


def _tell_given_up(
    turn: Turn[EngineState], key: int, stored: StoredDistribution, partitions: tuple[int, ...]
) -> None:
    """Tells the command's domain that nothing will come from these partitions."""
    distributed = turn.tables.distributed.get((stored.value_type, stored.intent))
    if distributed is not None and distributed.on_given_up is not None:
        distributed.on_given_up(turn, key, partitions)


def _continue(turn: Turn[EngineState], queue: str) -> None:
    """Writes the command that waits longest for a queue, if all before it are done with."""
    key = turn.state.distributions.first_continuation(queue)
    everywhere = range(1, turn.state.partitions + 1)
    if key is not None and turn.state.distributions.is_drained(queue, key, everywhere):
        turn.command(DISTRIBUTION, DistributionIntent.CONTINUE, key, ContinuationRef(queue))
