"""The commands that time itself gives."""

import sys
from collections.abc import Mapping, Sequence

from holdfast.engine.due.dates import Due, DueDates
from holdfast.engine.due.setbacks import Setbacks
from holdfast.engine.kernel import DueCommand, WhenDue
from holdfast.records import ValueType
from holdfast.records.keys import NO_KEY

Kinds = Mapping[int, tuple[ValueType, WhenDue]]
"""What is done when something of a kind is due, as the domains say."""


class DueCommands:
    """Turns what is due into commands; what wakes up together may share one."""

    def __init__(self, dates: DueDates, kinds: Kinds) -> None:
        self._dates = dates
        self._kinds = kinds
        self._setbacks = Setbacks(dates)

    def next_due_ms(self) -> int | None:
        """When there is next something to do."""
        return self._setbacks.next_due_ms() if self._setbacks else self._dates.next_due_ms()

    def put_off(self, command: DueCommand, now_ms: int) -> None:
        """The command was refused: what it stands for rests for a while."""
        self._setbacks.put_off(command.rows, now_ms)

    def clock_jumped(self, before_ms: int, after_ms: int) -> None:
        """Spans, such as leases, that would have ended in between last as long as they had left."""
        for row in self._dates.due(after_ms, sys.maxsize):
            if row[0] > before_ms and self._kinds[row[1]][1].is_span:
                self._setbacks.rest(row, row[0] + after_ms - before_ms, after_ms)

    def due(self, now_ms: int, limit: int) -> list[DueCommand]:
        """The commands of all that is due, at most so many."""
        found: list[DueCommand] = []
        together: dict[int, list[Due]] = {}
        setbacks = self._setbacks
        for row in self._dates.due(now_ms, limit + len(setbacks)):
            if setbacks and setbacks.is_resting(row, now_ms):
                continue
            if self._kinds[row[1]][1].together and row not in setbacks:
                together.setdefault(row[1], []).append(row)
            else:  # what could not be done with others is done alone
                found.append(self._command((row,)))
        for rows in together.values():
            found.insert(0, self._command(rows))  # should the step be full soon, they are done
        return found

    def _command(self, rows: Sequence[Due]) -> DueCommand:
        _, kind, key = rows[0]
        value_type, when = self._kinds[kind]
        number = key if when.names_key else NO_KEY
        return DueCommand(value_type, when.intent, number, when.value(rows), tuple(rows))
