"""What is asked of the home of a transaction: the partition that decides it.

The home reserves nothing for itself: its own operations are done in the step that decides, and if
they cannot be done any more the transaction is aborted. A transaction that is nowhere else is
therefore one step.
"""

from collections.abc import Iterable

from holdfast.engine.kernel import Turn
from holdfast.engine.parcels.commands import send
from holdfast.engine.state import EngineState
from holdfast.engine.transactions.operations import do_all, part_of, refusals
from holdfast.engine.transactions.state import StoredTransaction
from holdfast.engine.transactions.values import (
    KINDS,
    Acknowledgement,
    NewTransaction,
    Preparation,
    RefusedOperation,
    TransactionAnswer,
    TransactionDecided,
    TransactionDecision,
    TransactionIntent,
    TransactionOperation,
    TransactionOutcome,
    TransactionRef,
    TransactionState,
    Vote,
)
from holdfast.errors import Code
from holdfast.limits import TRANSACTIONS_OPEN_MAX
from holdfast.records import Record, ValueType

TRANSACTION = ValueType.TRANSACTION
_ABORTED, _COMMITTED = TransactionState.ABORTED, TransactionState.COMMITTED


def begin(turn: Turn[EngineState], command: Record) -> None:
    """A whole transaction: done at once if all of it is here, else prepared everywhere."""
    new: NewTransaction = command.value
    partitions = _partitions(new.operations)
    wrong = [each for each in new.operations if (each.value_type, each.intent) not in KINDS]
    if wrong or not partitions or partitions[-1] > turn.state.partitions or partitions[0] < 1:
        reason = "Expected submits, starts, publishes and completes on partitions that are there"
        return turn.reject(command, Code.INVALID_ARGUMENT, f"{reason}, but found something else")
    others = [each for each in partitions if each != turn.partition]
    if others and turn.state.transactions.counts.open >= TRANSACTIONS_OPEN_MAX:
        reason = f"Expected at most {TRANSACTIONS_OPEN_MAX} open transactions on a partition"
        return turn.reject(command, Code.RESOURCE_EXHAUSTED, f"{reason}, but there are as many")
    key = turn.new_key()
    own, mark, keys = part_of(new.operations, turn.partition), turn.mark(), ()
    if others:
        refused = refusals(turn, own, command.claims)
    else:
        keys, refused = do_all(turn, own, command.claims)
    if refused:
        turn.take_back(mark)
    elif others:
        return _open(turn, command, key, others)
    intent = TransactionIntent.ABORTED if refused else TransactionIntent.COMMITTED
    outcome = TransactionOutcome(
        len(new.operations), partitions, turn.now_ms, () if refused else keys, refused
    )
    turn.event(TRANSACTION, intent, key, outcome)
    state = _ABORTED if refused else _COMMITTED
    turn.effect(TransactionDecided(key, state))
    return turn.answer(TransactionAnswer(state, outcome.keys, refused), key)


def _open(turn: Turn[EngineState], command: Record, key: int, others: list[int]) -> None:
    new: NewTransaction = command.value
    begun = NewTransaction(
        new.operations, new.timeout_ms, command.claims, turn.now_ms + new.timeout_ms
    )
    turn.event(TRANSACTION, TransactionIntent.BEGUN, key, begun)
    for partition in others:
        places, operations = part_of(new.operations, partition)
        value = Preparation(operations, places, command.claims)
        send(turn, partition, TRANSACTION, TransactionIntent.PREPARE, key, value)
    turn.answer(TransactionAnswer(TransactionState.OPEN), key)


def vote(turn: Turn[EngineState], command: Record) -> None:
    """A partition has prepared its part, or says why it cannot; the last vote decides."""
    said: Vote = command.value
    row = turn.state.transactions.known.get(command.key)
    if row is None or row.new is None or any(e.partition == said.partition for e in row.votes):
        reason = f"Expected an open transaction {command.key} without a vote of partition"
        return turn.reject(command, Code.NOT_FOUND, f"{reason} {said.partition}")
    turn.event(TRANSACTION, TransactionIntent.VOTED, command.key, said)
    votes, new = (*row.votes, said), row.new
    if len(votes) < len(set(_partitions(new.operations)) - {turn.partition}):
        return None
    refused = tuple(each for vote in votes for each in vote.refused)
    if refused:
        return _decide(turn, command.key, row, votes, refused=refused)
    mark = turn.mark()
    own = part_of(new.operations, turn.partition)
    own_keys, refused = do_all(turn, own, new.claims)
    if refused:
        turn.take_back(mark)
        return _decide(turn, command.key, row, votes, refused=refused)
    keys = dict(zip(own.places, own_keys, strict=True))
    for each in votes:
        keys |= zip(part_of(new.operations, each.partition).places, each.keys, strict=True)
    in_order = tuple([keys[place] for place in range(len(new.operations))])
    return _decide(turn, command.key, row, votes, keys=in_order)


def expire(turn: Turn[EngineState], command: Record) -> None:
    """Votes are missing for too long, or the outcome was kept for long enough."""
    row = turn.state.transactions.known.get(command.key)
    if row is None or row.waiting_for:
        reason = f"Expected transaction {command.key} to be open or done, but it is not"
        return turn.reject(command, Code.NOT_FOUND, reason)
    if row.new is None:
        turn.event(TRANSACTION, TransactionIntent.FORGOTTEN, command.key, TransactionRef())
        return None
    voted = {each.partition for each in row.votes} | {turn.partition}
    missing = [each for each in _partitions(row.new.operations) if each not in voted]
    reason = (
        f"Expected all partitions to answer within {row.new.timeout_ms} ms, but"
        f" {', '.join(map(str, missing))} did not"
    )
    late = RefusedOperation(-1, Code.DEADLINE_EXCEEDED, reason)
    known = (each for vote in row.votes for each in vote.refused)
    return _decide(turn, command.key, row, row.votes, refused=(*known, late))


def acknowledge(turn: Turn[EngineState], command: Record) -> None:
    """A partition has done what was decided."""
    told: Acknowledgement = command.value
    row = turn.state.transactions.known.get(command.key)
    if row is None or told.partition not in row.waiting_for:
        reason = f"Expected transaction {command.key} to wait for partition {told.partition}"
        return turn.reject(command, Code.NOT_FOUND, f"{reason}, but it does not")
    turn.event(TRANSACTION, TransactionIntent.ACKNOWLEDGED, command.key, told)


def _decide(
    turn: Turn[EngineState], key: int, row: StoredTransaction, votes: Iterable[Vote], *,
    keys: tuple[int, ...] = (), refused: tuple[RefusedOperation, ...] = (),
) -> None:  # fmt: skip
    """Writes the decision, and tells the partitions that may have reserved something."""
    new = row.new
    assert new is not None, "a transaction is decided once"
    partitions = _partitions(new.operations)
    no = {each.partition for each in votes if each.refused}
    told = tuple([each for each in partitions if each != turn.partition and each not in no])
    state = _ABORTED if refused else _COMMITTED
    intent = TransactionIntent.ABORTED if refused else TransactionIntent.COMMITTED
    outcome = TransactionOutcome(len(new.operations), partitions, row.begun_ms, keys, refused, told)
    decision = TransactionDecision(not refused, turn.partition, turn.next_position)
    turn.event(TRANSACTION, intent, key, outcome)
    for partition in told:
        send(turn, partition, TRANSACTION, TransactionIntent.DECIDE, key, decision)
    turn.effect(TransactionDecided(key, state))


def _partitions(operations: Iterable[TransactionOperation]) -> tuple[int, ...]:
    return tuple(sorted({each.partition for each in operations}))
