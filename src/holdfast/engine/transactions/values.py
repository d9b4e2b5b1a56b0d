"""The words of transactions: what the home says, and what the other partitions answer.

The home of a transaction is the partition that decides it. The others take part: they prepare what
they are to do, vote, and do it when they hear that it is committed.
"""

from enum import IntEnum, StrEnum
from typing import Any

import msgspec

from holdfast.engine.jobs.values import JobIntent, Lease
from holdfast.engine.messages.values import MessageIntent
from holdfast.engine.processes.values import InstanceIntent
from holdfast.errors import Code
from holdfast.records import Value, ValueType, partition_of


class TransactionIntent(IntEnum):
    """Commands and events of a transaction. The numbers are on disk."""

    BEGIN = 0  # from the client to the home
    BEGUN = 1
    PREPARE = 2  # from the home to a partition that takes part
    PREPARED = 3  # there: the operations are reserved
    VOTE = 4  # back to the home
    VOTED = 5
    COMMITTED = 6  # at the home: all operations are executed
    ABORTED = 7  # at the home: no operation is executed
    DECIDE = 8  # from the home to a partition that prepared
    APPLIED = 9  # there: the reserved operations are executed in this step
    RELEASED = 10  # there: the reservations are released
    ACKNOWLEDGE = 11  # back to the home
    ACKNOWLEDGED = 12
    EXPIRE = 13  # the home's own due time
    FORGOTTEN = 14


class TransactionState(StrEnum):
    """Where a transaction stands, as its home has it."""

    OPEN = "OPEN"
    COMMITTED = "COMMITTED"
    ABORTED = "ABORTED"


TRANSITIONS: dict[tuple[TransactionState | None, str], TransactionState | None] = {
    (None, "BEGUN"): TransactionState.OPEN,
    (None, "COMMITTED (all on the home)"): None,
    (None, "ABORTED (refused by the home)"): None,
    (TransactionState.OPEN, "VOTED"): TransactionState.OPEN,
    (TransactionState.OPEN, "COMMITTED"): TransactionState.COMMITTED,
    (TransactionState.OPEN, "ABORTED"): TransactionState.ABORTED,
    (TransactionState.COMMITTED, "ACKNOWLEDGED"): TransactionState.COMMITTED,
    (TransactionState.ABORTED, "ACKNOWLEDGED"): TransactionState.ABORTED,
    (TransactionState.COMMITTED, "FORGOTTEN"): None,
    (TransactionState.ABORTED, "FORGOTTEN"): None,
}
"""The life of a transaction at its home; None: nothing of it is in the state."""


SUBMIT = (ValueType.JOB, JobIntent.CREATE)
COMPLETE = (ValueType.JOB, JobIntent.COMPLETE)
START = (ValueType.PROCESS_INSTANCE, InstanceIntent.CREATE)
PUBLISH = (ValueType.MESSAGE, MessageIntent.PUBLISH)
KINDS = {SUBMIT: "submit", COMPLETE: "complete", START: "start", PUBLISH: "publish"}
"""What a transaction may consist of."""


RESERVED_KEY, RESERVED_MESSAGE, RESERVED_JOB, PROMISED = "key:", "message:", "job:", "new:"
"""What names begin with that are reserved: of idempotency keys, message ids and jobs.

What will be made is promised by its key. The key is told with the commit, so a client that asks
for it knows that the transaction is committed: it is there in a moment.
"""


class TransactionOperation(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A command of a transaction."""

    partition: int  # where it is done
    value_type: int
    intent: int
    key: int  # of the job that is completed; 0 for what is made
    value: bytes  # encoded


class RefusedOperation(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Why an operation cannot be done."""

    operation: int  # its place in the transaction; -1: the transaction as a whole
    code: Code
    reason: str
    key: int = 0  # the existing object, or the one that the reason names


class NewTransaction(Value, frozen=True, tag=140):
    """A whole transaction: BEGIN and BEGUN."""

    operations: tuple[TransactionOperation, ...]
    timeout_ms: int
    # With BEGUN: in whose name it is done at the other partitions, and until when it may be open.
    claims: dict[str, Any] | None = None
    due_ms: int = 0


class Preparation(Value, frozen=True, tag=141):
    """What a partition must reserve: PREPARE. The home is the partition of the key."""

    operations: tuple[TransactionOperation, ...]
    places: tuple[int, ...]  # of the operations in the transaction
    claims: dict[str, Any] | None = None


class ReservedJob(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The lease of a worker whose job is reserved: it is put back if the transaction aborts."""

    job: int
    lease_key: int
    lease: Lease
    reserved_by: int  # the lease in its place, which no worker knows


class PreparedPart(Value, frozen=True, tag=142):
    """What a partition has reserved, so that a commit cannot fail: PREPARED."""

    operations: tuple[TransactionOperation, ...]  # with keys, leases and versions as they will be
    names: tuple[str, ...]  # reserved names
    held: tuple[ReservedJob, ...]
    last_key: int  # the last key that was given out


class Vote(Value, frozen=True, tag=143):
    """The vote of a partition: VOTE and VOTED."""

    partition: int
    keys: tuple[int, ...] = ()  # of its operations, in their order
    refused: tuple[RefusedOperation, ...] = ()  # if there are any, it votes no


class TransactionOutcome(Value, frozen=True, tag=144):
    """How a transaction ended: COMMITTED and ABORTED."""

    operations: int  # how many it has
    partitions: tuple[int, ...]  # on which they are
    begun_ms: int
    keys: tuple[int, ...] = ()  # with COMMITTED: of what its operations made, in their order
    refused: tuple[RefusedOperation, ...] = ()  # with ABORTED: every reason that is known
    told: tuple[int, ...] = ()  # the partitions that receive and acknowledge it


class TransactionDecision(Value, frozen=True, tag=145):
    """What the home decided: DECIDE, APPLIED and RELEASED.

    Everything that is done with APPLIED has the same source position. A reader as of some positions
    shows it if they include the decision.
    """

    is_committed: bool
    home: int
    position: int  # of COMMITTED or ABORTED on the home's log


class Acknowledgement(Value, frozen=True, tag=146):
    """A partition has executed the decision: ACKNOWLEDGE(D)."""

    partition: int
    failed: tuple[RefusedOperation, ...] = ()  # though it was reserved: only by a bug


class TransactionRef(Value, frozen=True, tag=147):
    """Only the transaction itself: EXPIRE and FORGOTTEN."""


class TransactionAnswer(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The answer to BEGIN, and to later questions. Its key is the transaction's."""

    state: TransactionState
    keys: tuple[int, ...] = ()
    refused: tuple[RefusedOperation, ...] = ()


_I = TransactionIntent
TRANSACTION_VALUES: dict[TransactionIntent, type[msgspec.Struct]] = {
    _I.BEGIN: NewTransaction,
    _I.BEGUN: NewTransaction,
    _I.PREPARE: Preparation,
    _I.PREPARED: PreparedPart,
    _I.VOTE: Vote,
    _I.VOTED: Vote,
    _I.COMMITTED: TransactionOutcome,
    _I.ABORTED: TransactionOutcome,
    _I.DECIDE: TransactionDecision,
    _I.APPLIED: TransactionDecision,
    _I.RELEASED: TransactionDecision,
    _I.ACKNOWLEDGE: Acknowledgement,
    _I.ACKNOWLEDGED: Acknowledgement,
    _I.EXPIRE: TransactionRef,
    _I.FORGOTTEN: TransactionRef,
}


# --- effects ----------------------------------------------------------------------------------


class TransactionDecided(msgspec.Struct, frozen=True, gc=False):
    """A transaction is committed or aborted; the waiting client is told."""

    key: int
    state: TransactionState

    @property
    def about(self) -> int:
        return self.key

    @property
    def partition(self) -> int:
        return partition_of(self.key)
