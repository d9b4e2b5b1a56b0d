"""How a partition takes a command that is distributed: as the first to see it, or from another."""

from holdfast.engine.distribution.commands import hear
from holdfast.engine.distribution.values import CommandTaken, DistributionIntent, QueueReceipt
from holdfast.engine.kernel import CommandHandler, Distributed, Turn
from holdfast.engine.state import EngineState
from holdfast.errors import Code
from holdfast.limits import DISTRIBUTIONS_MAX
from holdfast.records import Record, ValueType, partition_of


def distributing(distributed: Distributed) -> CommandHandler:
    """One handler of the two functions that a distributed command has."""

    def handle(turn: Turn[EngineState], command: Record) -> None:
        if command.delivery is not None:
            _take(turn, command, distributed.on_distributed)
        elif turn.state.distributions.count() >= DISTRIBUTIONS_MAX:
            reason = (
                f"Expected fewer than {DISTRIBUTIONS_MAX} distributions on partition"
                f" {turn.partition}, but other partitions have not acknowledged so many"
            )
            turn.reject(command, Code.RESOURCE_EXHAUSTED, reason)
        else:
            distributed.on_new(turn, command)

    return handle


def _take(turn: Turn[EngineState], command: Record, on_distributed: CommandHandler) -> None:
    """A command of another partition. It is acknowledged, however it ends, unless it throws.

    In a queue one that came before is not done again. Not even if it lost its way for so long that
    others of the queue have overtaken it: then it would be done out of order.
    """
    assert command.delivery is not None
    origin, queue = partition_of(command.key), command.delivery.queue
    assert origin != turn.partition, "a partition does not distribute to itself"
    turn.is_distributed = True
    turn.effect(CommandTaken(command.key, turn.partition))
    last = turn.state.distributions.received(origin, queue) if queue else 0
    if command.key <= last:
        reason = f"Expected a key after {last} in queue {queue!r}, but {command.key} came again"
        turn.reject(command, Code.ALREADY_EXISTS, reason)
    else:
        if queue:
            receipt = QueueReceipt(queue)
            turn.event(ValueType.DISTRIBUTION, DistributionIntent.RECEIVED, command.key, receipt)
        on_distributed(turn, command)
    hear(turn, origin)
