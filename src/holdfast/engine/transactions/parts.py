"""What is asked of a partition that takes part in a transaction that another one decides.

A part is checked by doing it and taking it back. Then what it needs is reserved, so that it can be
done later whatever happens: keys are given out, names are taken, jobs are out of reach. Nothing
waits for another transaction: what is reserved already is refused.
"""

from holdfast.engine.kernel import Turn
from holdfast.engine.parcels.commands import send
from holdfast.engine.state import EngineState
from holdfast.engine.transactions.operations import (
    PartitionOperations,
    do_all,
    refusals,
    reserved,
    unreservable,
)
from holdfast.engine.transactions.values import (
    Acknowledgement,
    Preparation,
    RefusedOperation,
    TransactionDecision,
    TransactionIntent,
    Vote,
)
from holdfast.errors import Code
from holdfast.limits import TRANSACTIONS_OPEN_MAX
from holdfast.records import Record, ValueType, partition_of

TRANSACTION = ValueType.TRANSACTION


def prepare(turn: Turn[EngineState], command: Record) -> None:
    """Reserves what a part needs, and says so to the home; or says every reason why not."""
    asked: Preparation = command.value
    part = PartitionOperations(asked.places, asked.operations)
    refused = _full(turn) or unreservable(turn, part) or refusals(turn, part, asked.claims)
    keys: tuple[int, ...] = ()
    if not refused:
        prepared = reserved(turn, part)
        turn.event(TRANSACTION, TransactionIntent.PREPARED, command.key, prepared)
        keys = tuple([each.key for each in prepared.operations])
    vote = Vote(turn.partition, keys, refused)
    send(turn, _home(command), TRANSACTION, TransactionIntent.VOTE, command.key, vote)


def _full(turn: Turn[EngineState]) -> tuple[RefusedOperation, ...]:
    if turn.state.transactions.counts.prepared < TRANSACTIONS_OPEN_MAX:
        return ()
    reason = (
        f"Expected at most {TRANSACTIONS_OPEN_MAX} prepared transactions on partition"
        f" {turn.partition}, but there are as many"
    )
    return (RefusedOperation(-1, Code.RESOURCE_EXHAUSTED, reason),)


def decide(turn: Turn[EngineState], command: Record) -> None:
    """The home has decided: what was reserved is done in this step, or is free again."""
    decision: TransactionDecision = command.value
    stored = turn.state.transactions.prepared.get(command.key)
    failed: tuple[RefusedOperation, ...] = ()
    if stored is None:
        assert not decision.is_committed, "a transaction is committed that was not prepared"
    elif decision.is_committed:
        turn.event(TRANSACTION, TransactionIntent.APPLIED, command.key, decision)
        operations = stored.part.operations
        _, failed = do_all(turn, PartitionOperations(tuple(range(len(operations))), operations))
    else:
        turn.event(TRANSACTION, TransactionIntent.RELEASED, command.key, decision)
    heard = Acknowledgement(turn.partition, failed)
    send(turn, _home(command), TRANSACTION, TransactionIntent.ACKNOWLEDGE, command.key, heard)


def _home(command: Record) -> int:
    return partition_of(command.key)
