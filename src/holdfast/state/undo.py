"""What the changes of a step can be undone with."""

from typing import Any, Final, Protocol

UndoLog = list[Any]
"""What was there before each change of a step: who restores it, and the arguments of `restore`.

They are four items of one list. A tuple for each change would be made in memory that is not in the
processor's cache, which costs twice as much in a step with thousands of changes.
"""
UNDO_ITEMS: Final = 4


class Undoable(Protocol):
    """What can take back one of its changes."""

    def restore(self, what: Any, old: Any, fresh: bool, /) -> None: ...


def undo_last(log: UndoLog) -> None:
    """Takes back the last change."""
    changed: Undoable
    changed, what, old, fresh = log[-UNDO_ITEMS:]
    del log[-UNDO_ITEMS:]
    changed.restore(what, old, fresh)
