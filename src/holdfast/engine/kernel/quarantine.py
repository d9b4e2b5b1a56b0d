"""Commands that end the process: found out while they are processed, set aside at a later start.

What a client asked for and was not answered does not come back by itself. What does: commands on
the log that were not processed, what is due, and what partitions send one another. If one of those
ends the process (no memory left, a crash in C), every start ends the same way.

So after a start that did not follow an orderly stop the command that is being processed is noted
outside the process. A start that finds a note knows that its command was the last thing done. If
the command moves tokens it is done with brakes on: nothing is entered and nothing is evaluated,
which leaves an incident in its process instance. That costs nothing if the command was innocent,
and somebody had killed the process just then. Any other command is tried once more; if the process
ends again while it is processed, it is rejected.
"""

import hashlib
from collections.abc import Callable, Collection, Mapping
from typing import Any, Protocol

import msgspec

from holdfast.errors import Internal
from holdfast.records import Record, ValueType


class Note(msgspec.Struct, frozen=True):
    """The command that is being processed."""

    digest: str  # of all that makes it the same command after a restart
    partition: int
    value_type: str
    intent: str
    key: int


class Notes(Protocol):
    """Where notes are kept: they outlive the process."""

    def write(self, note: Note) -> None: ...

    def clear(self) -> None: ...


class SetAside(Internal):
    """A command is not done, because it has ended the process before."""


# What partitions and drivers of the node send again by themselves.
_COMES_BACK = frozenset({ValueType.PARCEL, ValueType.BATCH_OPERATION_EXECUTION})

_encode = msgspec.msgpack.Encoder().encode


class Quarantine:
    """Watches the commands of a partition that come back after a restart."""

    def __init__(
        self,
        partition: int,
        notes: Notes,
        deaths: Mapping[str, int],
        braked: Collection[ValueType],
        intent_name: Callable[[int, int], str],
        told: Callable[[Note, str], None],
    ) -> None:
        self._partition = partition
        self._notes = notes
        self._deaths = deaths  # digest -> how often the process ended while it was processed
        self._braked = braked  # value types whose commands can be done with brakes on
        self._intent_name = intent_name
        self._told = told  # whom to tell what was set aside, and how
        self.is_returning = False  # what is processed now is left over or due
        self._is_watched = False  # the command, or what led to it, may come back
        self._is_noted = False

    def begin(self, command: Record) -> bool:
        """Notes a command that might come back; whether it is to be done with brakes on."""
        if command.source_position < 0 or self.is_returning:  # else it goes with what led to it
            self._is_watched = (
                self.is_returning
                or command.delivery is not None
                or command.value_type in _COMES_BACK
            )
        if not self._is_watched or (digest := _digest(command)) is None:
            self.end()
            return False
        note = Note(
            digest, self._partition, ValueType(command.value_type).name,
            self._intent_name(command.value_type, command.intent), command.key,
        )  # fmt: skip
        deaths = self._deaths.get(digest, 0)
        self._notes.write(note)
        self._is_noted = True
        if deaths > 1:
            self._told(note, "it is rejected")
            raise SetAside(
                f"Set aside: the node ended {deaths} times while it processed {note.intent} of"
                f" {note.value_type} {note.key}"
            )
        is_braked = deaths == 1 and command.value_type in self._braked
        if is_braked:
            self._told(note, "its process instance has an incident")
        return is_braked

    def end(self) -> None:
        """It is processed: whatever ends the process now, it is not what was noted."""
        if self._is_noted:
            self._notes.clear()
            self._is_noted = False


def _digest(command: Record) -> str | None:
    """What a command is told by; None if it cannot be written, and so does not come back."""
    told: tuple[Any, ...] = command.value_type, command.intent, command.key, command.value
    try:
        return hashlib.blake2b(_encode(told), digest_size=16).hexdigest()
    except Exception:
        return None
