"""The recent requests of a partition: their column families and what can be asked of them.

Answers are numbered in the order in which they were given, and are forgotten in that order: when
their time is over, or when there are too many. One due date stands for all of them.
"""

import msgspec

from holdfast.engine.due.dates import DueDates, DueKind
from holdfast.engine.families import Tag
from holdfast.engine.requests.values import Answered
from holdfast.limits import REQUEST_KEPT_MS
from holdfast.records.keys import NO_KEY
from holdfast.state import PartitionState
from holdfast.state.keys import TEXT, U64

_DUE_MS = REQUEST_KEPT_MS // 8  # answers that end within one such span are forgotten together


class Kept(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One answer in the order of forgetting."""

    id: str
    until_ms: int


class AnswerLine(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The numbers of the answers that are kept: from `first` up to `next`."""

    first: int = 0
    next: int = 0
    due_ms: int = 0  # when to look whether the first is to be forgotten; 0: there is none

    def __len__(self) -> int:
        return self.next - self.first


class Requests:
    """Everything a partition knows about the requests that it was asked."""

    def __init__(self, state: PartitionState, due: DueDates) -> None:
        self._due = due
        self.answers = state.family(Tag.REQUESTS, TEXT, Answered)
        self._order = state.family(Tag.REQUESTS_KEPT, U64, Kept)
        self._line = state.family(Tag.REQUEST_LINE, U64, AnswerLine)  # one row
        self.open = state.family(Tag.REQUESTS_OPEN, TEXT, int)  # id -> position of the command
        self._waiting = state.family(Tag.REQUESTS_WAITING, U64, str)  # and the other way round
        self._is_any_waiting: bool | None = None  # remembered: it is asked for every leftover
        state.when_undone(self._forget)

    def _forget(self) -> None:
        self._is_any_waiting = None

    # --- what can be asked --------------------------------------------------------------------

    def waiting(self, position: int) -> str | None:
        """The request of a command that is on the log and not processed yet."""
        return self._waiting.get(position) if self._any_waiting() else None

    def open_at(self, id_: str) -> int | None:
        """The position of a request's command that is on the log and not processed yet."""
        return self.open.get(id_) if self._any_waiting() else None

    def _any_waiting(self) -> bool:
        """Mostly none is: a look into memory instead of one into the store for every request."""
        if self._is_any_waiting is None:
            self._is_any_waiting = next(iter(self._waiting.scan()), None) is not None
        return self._is_any_waiting

    def line(self) -> AnswerLine:
        """The answers that are kept."""
        return self._line.get(NO_KEY) or AnswerLine()

    def outdated(self, now_ms: int, count_max: int, rows_max: int) -> int:
        """The number of the first answer that stays; at most so many are before it."""
        line = self.line()
        number = line.first
        while number < line.next and number - line.first < rows_max:
            kept = self._order.get(number)
            assert kept is not None, "answers are numbered without gaps"
            if kept.until_ms > now_ms and line.next - number <= count_max:
                break
            number += 1
        return number

    # --- what appliers change -----------------------------------------------------------------

    def wait(self, id_: str, position: int) -> None:
        self.open.insert(id_, position)
        self._waiting.insert(position, id_)
        self._is_any_waiting = True

    def keep(self, answered: Answered, now_ms: int) -> None:
        """The request was answered, and is not open any more."""
        if answered.position >= 0:
            self.open.delete(answered.id)
            self._waiting.delete(answered.position)
            self._is_any_waiting = None
        line = self.line()
        self.answers.put(answered.id, answered)
        self._order.insert(line.next, Kept(answered.id, now_ms + REQUEST_KEPT_MS))
        due_ms = line.due_ms or self._watch(now_ms + REQUEST_KEPT_MS)
        self._line.put(NO_KEY, AnswerLine(line.first, line.next + 1, due_ms))

    def purge(self, before: int) -> None:
        """Removes the answers up to a number."""
        line = self.line()
        for number in range(line.first, before):
            kept = self._order.get(number)
            assert kept is not None, "answers are numbered without gaps"
            self.answers.delete(kept.id)
            self._order.delete(number)
        self._due.remove(line.due_ms, DueKind.REQUESTS, NO_KEY)
        first = self._order.get(before)
        due_ms = 0 if first is None else self._watch(first.until_ms)
        self._line.put(NO_KEY, AnswerLine(before, line.next, due_ms))

    def _watch(self, until_ms: int) -> int:
        due_ms = -(-until_ms // _DUE_MS) * _DUE_MS
        self._due.add(due_ms, DueKind.REQUESTS, NO_KEY)
        return due_ms
