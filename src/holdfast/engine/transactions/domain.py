"""The tables of the transactions room."""

from holdfast.engine.due.dates import DueKind
from holdfast.engine.kernel import Domain, Required, WhenDue
from holdfast.engine.state import EngineState
from holdfast.engine.transactions import events, home, parts
from holdfast.engine.transactions.values import (
    TRANSACTION_VALUES,
    TransactionAnswer,
    TransactionDecided,
    TransactionIntent,
    TransactionRef,
)
from holdfast.records import Record, ValueType


def _of_its_operations(state: EngineState, command: Record) -> tuple[Required, ...]:
    """Each operation needs what it needs by itself, where it is done."""
    return ()


_I = TransactionIntent
TRANSACTION: Domain = Domain(
    value_type=ValueType.TRANSACTION,
    intents=TransactionIntent,
    values=TRANSACTION_VALUES,
    commands={
        _I.BEGIN: home.begin,
        _I.PREPARE: parts.prepare,
        _I.VOTE: home.vote,
        _I.DECIDE: parts.decide,
        _I.ACKNOWLEDGE: home.acknowledge,
        _I.EXPIRE: home.expire,
    },
    appliers={
        _I.BEGUN: events.begun,
        _I.PREPARED: events.prepared,
        _I.VOTED: events.voted,
        _I.COMMITTED: events.committed,
        _I.ABORTED: events.aborted,
        _I.APPLIED: events.applied,
        _I.RELEASED: events.released,
        _I.ACKNOWLEDGED: events.acknowledged,
        _I.FORGOTTEN: events.forgotten,
    },
    last_key=events.last_key,
    needs={_I.BEGIN: _of_its_operations},
    answers={_I.BEGIN: TransactionAnswer},
    followed=(TransactionDecided,),
    due={
        DueKind.TRANSACTION: WhenDue(_I.EXPIRE, lambda _: TransactionRef(), is_span=True),
    },
)
