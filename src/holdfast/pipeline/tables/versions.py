"""The files of the tables at the versions that fit one another; each list is read once."""

import threading
from pathlib import Path

from holdfast.pipeline.schema import Table
from holdfast.pipeline.tables.delta import files_at
from holdfast.pipeline.tables.listing import TableFile
from holdfast.pipeline.tables.progress import FILE, TableProgress, load_progress

_LISTS_MAX = 64  # versions whose files are remembered: the last few of every table


class Versions:
    """What readers of the tables in one folder look at; safe to use from several threads."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._lock = threading.Lock()
        self._stamp: tuple[int, int] | None = None
        self._progress = TableProgress()
        self._files: dict[tuple[str, int], list[TableFile]] = {}

    def progress(self) -> TableProgress:
        """Where the tables stand now; the file is read only when it is another."""
        try:
            found = (self.root / FILE).stat()
        except FileNotFoundError:
            return TableProgress()
        stamp = (found.st_ino, found.st_mtime_ns)
        with self._lock:
            if stamp != self._stamp:
                self._progress, self._stamp = load_progress(self.root), stamp
            return self._progress

    def files(self, table: Table, version: int) -> list[TableFile]:
        """The files of a table at a version."""
        key = (table.name, version)
        with self._lock:
            if (known := self._files.get(key)) is not None:
                return known
            found = files_at(self.root, table, version)
            while len(self._files) >= _LISTS_MAX:
                del self._files[next(iter(self._files))]
            self._files[key] = found
            return found
