"""Examples of the values of transactions."""

from enum import IntEnum

import msgspec

from holdfast.engine.jobs.values import Lease
from holdfast.engine.transactions.values import (
    Acknowledgement,
    NewTransaction,
    Preparation,
    PreparedPart,
    RefusedOperation,
    ReservedJob,
    TransactionDecision,
    TransactionIntent,
    TransactionOperation,
    TransactionOutcome,
    TransactionRef,
    Vote,
)
from holdfast.errors import Code
from holdfast.records import ValueType

_I = TransactionIntent
SUBMIT = TransactionOperation(2, 1, 0, 0, b"\x93")
COMPLETE = TransactionOperation(1, 1, 2, 77, b"\x93")
REFUSED = RefusedOperation(1, Code.NOT_FOUND, "there is none", 77)
LEASE = Lease("worker", 1_700_000_000_000, "a", 0, (77,))
DECISION = TransactionDecision(True, 1, 42)

TRANSACTION_EXAMPLES: dict[tuple[ValueType, IntEnum], msgspec.Struct] = {
    (ValueType.TRANSACTION, intent): value
    for intent, value in {
        _I.BEGIN: NewTransaction((SUBMIT, COMPLETE), 30_000),
        _I.BEGUN: NewTransaction((SUBMIT,), 30_000, {"sub": "ada"}, 1_700_000_030_000),
        _I.PREPARE: Preparation((SUBMIT,), (0,), {"sub": "ada"}),
        _I.PREPARED: PreparedPart((SUBMIT,), ("key:k",), (ReservedJob(77, 5, LEASE, 9),), 10),
        _I.VOTE: Vote(2, (), (REFUSED,)),
        _I.VOTED: Vote(2, (10,)),
        _I.COMMITTED: TransactionOutcome(2, (1, 2), 1_700_000_000_000, (10, 77), (), (2,)),
        _I.ABORTED: TransactionOutcome(2, (1, 2), 1_700_000_000_000, (), (REFUSED,)),
        _I.DECIDE: DECISION,
        _I.APPLIED: DECISION,
        _I.RELEASED: TransactionDecision(False, 1, 43),
        _I.ACKNOWLEDGE: Acknowledgement(2),
        _I.ACKNOWLEDGED: Acknowledgement(2, (REFUSED,)),
        _I.EXPIRE: TransactionRef(),
        _I.FORGOTTEN: TransactionRef(),
    }.items()
}
