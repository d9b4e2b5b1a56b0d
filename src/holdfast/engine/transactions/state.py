"""The transactions of a partition: those it decides, and what it has reserved for others."""

import msgspec

from holdfast.engine.due.dates import DueDates, DueKind
from holdfast.engine.families import Tag
from holdfast.engine.transactions.values import (
    NewTransaction,
    PreparedPart,
    RefusedOperation,
    TransactionOutcome,
    TransactionState,
    Vote,
)
from holdfast.limits import TRANSACTION_KEPT_MS
from holdfast.records.keys import NO_KEY
from holdfast.state import PartitionState
from holdfast.state.keys import TEXT, U64

_replace = msgspec.structs.replace


class StoredTransaction(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A transaction at its home."""

    new: NewTransaction | None  # None: it is decided, and its content is needed no more
    begun_ms: int
    votes: tuple[Vote, ...] = ()
    outcome: TransactionOutcome | None = None
    state: TransactionState = TransactionState.OPEN
    decided_ms: int = 0
    waiting_for: tuple[int, ...] = ()  # partitions that have not acknowledged the decision
    failed: tuple[RefusedOperation, ...] = ()
    due_ms: int = 0


class StoredPart(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What this partition has reserved for a transaction that another one decides."""

    part: PreparedPart
    prepared_ms: int


class TransactionCounts(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """How many rows there are: most partitions have none, and need not look."""

    open: int = 0  # at their home, not decided
    prepared: int = 0


class Transactions:
    """Everything a partition knows about transactions."""

    def __init__(self, state: PartitionState, due: DueDates) -> None:
        self._due = due
        self.known = state.family(Tag.TRANSACTIONS, U64, StoredTransaction)
        self.prepared = state.family(Tag.TRANSACTIONS_PREPARED, U64, StoredPart)
        self._names = state.family(Tag.TRANSACTION_NAMES, TEXT, int)  # -> who reserved it
        self._counts = state.family(Tag.TRANSACTION_COUNTS, U64, TransactionCounts)  # one row
        self._cached: TransactionCounts | None = None
        state.when_undone(self._forget)

    def _forget(self) -> None:
        self._cached = None

    # --- what can be asked --------------------------------------------------------------------

    @property
    def counts(self) -> TransactionCounts:
        """How many are open and how many are prepared here."""
        counts = self._cached
        if counts is None:
            counts = self._cached = self._counts.get(NO_KEY) or TransactionCounts()
        return counts

    def reserver(self, kind: str, name: str | int) -> int | None:
        """The transaction for which something is reserved here; mostly there is none."""
        return self._names.get(f"{kind}{name}") if self.counts.prepared else None

    def oldest_ms(self) -> int | None:
        """When the oldest one began or was prepared that has not ended here."""
        if not (self.counts.open or self.counts.prepared):
            return None
        began = [row.begun_ms for _, row in self.known.scan() if row.outcome is None]
        began += [row.prepared_ms for _, row in self.prepared.scan()]
        return min(began, default=None)

    # --- what appliers change: the home -------------------------------------------------------

    def begin(self, key: int, new: NewTransaction, now_ms: int) -> None:
        self.known.insert(key, StoredTransaction(new, now_ms, due_ms=new.due_ms))
        self._due.add(new.due_ms, DueKind.TRANSACTION, key)
        self._count(opened=1)

    def vote(self, key: int, vote: Vote) -> None:
        row = self._row(key)
        self.known.put(key, _replace(row, votes=(*row.votes, vote)))

    def decide(
        self, key: int, outcome: TransactionOutcome, state: TransactionState,
        waiting_for: tuple[int, ...], now_ms: int,
    ) -> None:  # fmt: skip
        """The transaction has ended; one that is nowhere but here leaves nothing."""
        row = self.known.get(key)
        if row is None:
            return
        self._due.remove(row.due_ms, DueKind.TRANSACTION, key)
        decided = StoredTransaction(
            None, row.begun_ms, (), outcome, state, now_ms, waiting_for
        )  # fmt: skip
        self.known.put(key, self._kept(key, decided, now_ms))
        self._count(opened=-1)

    def acknowledge(
        self, key: int, partition: int, failed: tuple[RefusedOperation, ...], now_ms: int
    ) -> None:
        row = self._row(key)
        left = tuple(each for each in row.waiting_for if each != partition)
        heard = _replace(row, waiting_for=left, failed=(*row.failed, *failed))
        self.known.put(key, self._kept(key, heard, now_ms))

    def _kept(self, key: int, row: StoredTransaction, now_ms: int) -> StoredTransaction:
        """Once nobody waits for it, it is kept for those that ask again."""
        if row.waiting_for:
            return row
        due_ms = now_ms + TRANSACTION_KEPT_MS
        self._due.add(due_ms, DueKind.TRANSACTION, key)
        return _replace(row, due_ms=due_ms)

    def forget(self, key: int) -> None:
        row = self._row(key)
        self._due.remove(row.due_ms, DueKind.TRANSACTION, key)
        self.known.delete(key)

    # --- what appliers change: the others -----------------------------------------------------

    def reserve(self, key: int, part: PreparedPart, now_ms: int) -> None:
        self.prepared.insert(key, StoredPart(part, now_ms))
        for name in part.names:
            self._names.insert(name, key)
        self._count(prepared=1)

    def end(self, key: int) -> PreparedPart:
        """Nothing is reserved for the transaction any more."""
        row = self.prepared.get(key)
        assert row is not None, f"transaction {key} is not prepared here"
        self.prepared.delete(key)
        for name in row.part.names:
            self._names.delete(name)
        self._count(prepared=-1)
        return row.part

    def _count(self, *, opened: int = 0, prepared: int = 0) -> None:
        counts = self.counts
        new = TransactionCounts(counts.open + opened, counts.prepared + prepared)
        assert new.open >= 0 and new.prepared >= 0
        if new == TransactionCounts():
            self._counts.delete(NO_KEY)
        else:
            self._counts.put(NO_KEY, new)
        self._cached = new

    def _row(self, key: int) -> StoredTransaction:
        row = self.known.get(key)
        assert row is not None, f"an event names transaction {key}, which is not in the state"
        return row
