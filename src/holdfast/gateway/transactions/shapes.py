"""The shapes of the API about transactions."""

from datetime import datetime

from holdfast.engine.transactions.values import TransactionState
from holdfast.gateway.numbers import Limit, TransactionMs
from holdfast.gateway.processes.shapes import NewMessage, NewProcessInstance
from holdfast.gateway.shapes import Question, Shape
from holdfast.gateway.tasks.shapes import JobCompletion, NewTask
from holdfast.limits import TRANSACTION_MS


class TransactionStep(Question, frozen=True):
    """One operation of a transaction: exactly one of these."""

    submit: NewTask | None = None
    complete: JobCompletion | None = None
    start: NewProcessInstance | None = None
    publish: NewMessage | None = None


class TransactionRequest(Question, frozen=True):
    """A whole transaction."""

    operations: list[TransactionStep]
    # a repeated request with the same id and operations gets the first answer
    id: str | None = None
    # a job whose partition decides it: jobs of processes can be completed there only; None: one
    # where jobs are completed, if there are any, with most of the operations
    home_job: str | None = None
    timeout_ms: TransactionMs = TRANSACTION_MS  # until it is decided; then it is aborted


class RefusedStep(Shape, frozen=True):
    """Why an operation could not be done."""

    operation: int  # its place among the operations, from 0; -1: the transaction as a whole
    code: str
    reason: str
    key: str | None = None  # the existing object, or the one that the reason names


class TransactionResult(Shape, frozen=True):
    """The outcome of a transaction."""

    transaction_key: str
    state: TransactionState  # COMMITTED: all of it is done; ABORTED: nothing of it
    # COMMITTED: of each operation the key of what it made, or of the job that it completed
    keys: list[str]
    refused: list[RefusedStep]  # ABORTED: every reason that is known


class TransactionPart(Shape, frozen=True):
    """One operation, without its payload."""

    kind: str  # submit, complete, start or publish
    partition: int
    key: str | None = None  # of the job that is completed


class TransactionView(Shape, frozen=True):
    """A transaction that is not finished on all partitions, or finished recently."""

    transaction_key: str
    partition: int  # its home, which decides it
    state: TransactionState
    begun: datetime
    decided: datetime | None
    timeout_ms: int | None  # while it is open
    partitions: list[int]  # that its operations are on
    missing: list[int]  # that have not voted; once it is decided, that have not acknowledged it
    operations: list[TransactionPart]  # while it is open, where one transaction is shown
    refused: list[RefusedStep]
    failed: list[RefusedStep]  # though it was reserved: a bug of holdfast


class TransactionQuery(Question, frozen=True):
    """Which transactions to list."""

    limit: Limit = 100
    after: str | None = None


class TransactionPage(Shape, frozen=True):
    """Transactions that are not finished on all partitions, in the order of their keys."""

    items: list[TransactionView]
    after: str | None = None
