"""What other domains call: distribute a command, or wait until a queue of them has drained."""

from collections.abc import Iterable

import msgspec

from holdfast.engine.distribution.state import StoredDistribution
from holdfast.engine.distribution.values import (
    Continuation,
    Distribution,
    DistributionIntent,
    Sending,
    Targets,
)
from holdfast.engine.kernel import Command, Turn
from holdfast.engine.kernel.domain import Dispatch
from holdfast.engine.state import EngineState
from holdfast.limits import NAME_CHARS_MAX
from holdfast.records import Delivery, ValueType

DISTRIBUTION = ValueType.DISTRIBUTION

_encode = msgspec.msgpack.Encoder().encode


def distribute(
    turn: Turn[EngineState],
    command: Command,
    *,
    to: Iterable[int] | None = None,
    in_queue: str = "",
) -> None:
    """Sends a command to all other partitions, or to those named, until each has acknowledged it.

    The command's key names the distribution: one that this turn made, so that the order of keys is
    the order in which things were distributed. In a queue each partition takes one command after
    the other, in that order and each once; a partition that is dark delays nobody but itself.
    Where there is no other partition, nothing is written.
    """
    assert not turn.is_distributed, "what was distributed is not distributed again"
    assert (command.value_type, command.intent) in turn.tables.distributed, (
        "it has no on_distributed"
    )
    assert turn.distributed_key < command.key <= turn.last_key(), "a distribution has a new key"
    _check_queue(in_queue)
    everywhere = range(1, turn.state.partitions + 1)
    asked = set(everywhere if to is None else to)
    assert asked <= set(everywhere), f"partitions {sorted(asked - set(everywhere))} do not exist"
    targets = sorted(asked - {turn.partition})
    if not targets:
        return
    turn.distributed_key = command.key
    distributions = turn.state.distributions
    waiting = [each for each in targets if distributions.must_wait(in_queue, each)]
    sent = tuple(sorted(set(targets).difference(waiting)))
    new = Distribution(
        in_queue, command.value_type, command.intent, _encode(command.value), command.claims, sent
    )
    turn.event(DISTRIBUTION, DistributionIntent.STARTED, command.key, new)
    if waiting:
        turn.event(DISTRIBUTION, DistributionIntent.ENQUEUED, command.key, Targets(tuple(waiting)))
    send(turn, command.key, sent)


def after_queue(turn: Turn[EngineState], command: Command, queue: str) -> None:
    """Writes a command once all that stand in a queue now are done with; at once if none do."""
    _check_queue(queue)
    assert queue, "what stands in no queue has no end"
    distributions = turn.state.distributions
    everywhere = range(1, turn.state.partitions + 1)
    if distributions.is_drained(queue, turn.last_key(), everywhere):
        turn.command(command.value_type, command.intent, command.key, command.value, command.claims)
        return
    value = Continuation(
        queue, command.value_type, command.intent, command.key, _encode(command.value),
        command.claims,
    )  # fmt: skip
    intent = DistributionIntent.CONTINUATION_REQUESTED
    turn.event(DISTRIBUTION, intent, turn.new_key(), value)


def send(turn: Turn[EngineState], key: int, partitions: Iterable[int]) -> None:
    """The effect for a distribution whose turn has come: it goes out once the step is durable."""
    stored = turn.state.distributions.active.get(key)
    assert stored is not None, "what is sent is being distributed"
    open_ = tuple(each for each in partitions if not _is_closed(turn, each))
    if open_:
        turn.effect(sending(turn.tables, key, stored, open_))


def sending(
    tables: Dispatch,
    key: int,
    stored: StoredDistribution,
    partitions: tuple[int, ...],
    attempt: int = 1,
) -> Sending:
    """A distribution as it goes to these partitions."""
    command = Command(
        ValueType(stored.value_type),
        tables.intent(stored.value_type, stored.intent),
        key,
        tables.decode_value(stored.value_type, stored.intent, stored.value),
        stored.claims,
        Delivery(stored.queue, attempt),
    )
    return Sending(partitions, command, len(stored.value))


def _is_closed(turn: Turn[EngineState], partition: int) -> bool:
    return turn.state.distributions.line(partition).closed_until_ms > turn.now_ms


def _check_queue(queue: str) -> None:
    assert len(queue) <= NAME_CHARS_MAX and "\0" not in queue, f"{queue!r} is no name of a queue"
