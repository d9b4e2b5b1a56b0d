"""The outside world of the demo: where charges, invoices and parcels leave their mark.

Like a payment provider it knows a reference: the same reference a second time changes nothing. That
is how effects happen once, although a task runs again if its worker dies between doing and telling.
"""

import os
import sqlite3
import threading
from pathlib import Path

_TABLES = """
CREATE TABLE IF NOT EXISTS attempts (reference TEXT PRIMARY KEY, count INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS effects (
    reference TEXT PRIMARY KEY, process INTEGER NOT NULL, repeats INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE IF NOT EXISTS repaired (what TEXT PRIMARY KEY);
"""
_ATTEMPT = """
INSERT INTO attempts VALUES (?, 1)
ON CONFLICT DO UPDATE SET count = count + 1 RETURNING count
"""
_APPLY = """
INSERT INTO effects (reference, process) VALUES (?, ?)
ON CONFLICT DO UPDATE SET repeats = repeats + 1
"""


class Ledger:
    """One SQLite file that all workers write to."""

    def __init__(self, path: Path) -> None:
        self._lock = threading.Lock()
        self._database = sqlite3.connect(
            path, timeout=30, isolation_level=None, check_same_thread=False
        )
        # A killed process loses nothing that the kernel has; only the machine's own end would.
        self._database.execute("PRAGMA journal_mode=WAL")
        self._database.execute("PRAGMA synchronous=OFF")
        self._database.executescript(_TABLES)

    def attempt(self, reference: str) -> int:
        """Notes that work on a reference begins; returns the how manieth time this is."""
        return self._one(_ATTEMPT, reference)[0]

    def apply(self, reference: str) -> None:
        """The effect itself; a repeat is counted and has no effect."""
        with self._lock:
            self._database.execute(_APPLY, (reference, os.getpid()))

    def repair(self, what: str) -> None:
        """What was broken outside works again."""
        with self._lock:
            self._database.execute("INSERT OR IGNORE INTO repaired VALUES (?)", (what,))

    def is_repaired(self, what: str) -> bool:
        """Whether it works again."""
        return self._one("SELECT EXISTS (SELECT 1 FROM repaired WHERE what = ?)", what)[0] == 1

    def references(self) -> set[str]:
        """Everything that took effect."""
        with self._lock:
            return {row[0] for row in self._database.execute("SELECT reference FROM effects")}

    def attempts(self) -> int:
        """How often work was begun."""
        return self._one("SELECT coalesce(sum(count), 0) FROM attempts")[0]

    def repeats(self) -> int:
        """How often an effect was asked for that had happened already."""
        return self._one("SELECT coalesce(sum(repeats), 0) FROM effects")[0]

    def close(self) -> None:
        self._database.close()

    def _one(self, statement: str, *values: str) -> tuple[int, ...]:
        with self._lock:
            return self._database.execute(statement, values).fetchone()
