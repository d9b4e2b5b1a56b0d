"""What a subscriber knows of itself. It is kept in the notes of its store, beside the content.

Whatever is committed together with content is exactly as far as the content: a store that is
copied carries it, and after a crash the subscriber goes on from there. Values are replaced, never
changed: what a commit did not write is not known either.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

import msgspec

from holdfast.content.messages import NOWHERE, PackageStatus, SubscriberProgress, encode

STORE_NOTE: Final = "holdfast.store"
PROGRESS_NOTE: Final = "holdfast.progress"
STATUSES_NOTE: Final = "holdfast.statuses"
FAILED_NOTE: Final = "holdfast.failed"
COMMANDS_NOTE: Final = "holdfast.commands"

Notes = Mapping[str, bytes]
GetNote = Callable[[str], bytes | None]


class TouchedPath(msgspec.Struct, frozen=True, array_like=True):
    """A path that a newer package changed."""

    path: str
    deep: bool  # with all below it


class GivenUpPackage(msgspec.Struct, frozen=True, array_like=True):
    """A package that was given up on, and what has become newer since."""

    publisher: str
    offset: int
    number: int
    package_id: str
    paths: list[TouchedPath]  # that it wanted to change
    touched: list[TouchedPath] = []  # of those, what newer packages changed


class RemovedPackage(msgspec.Struct, frozen=True, array_like=True):
    """A package that is to be skipped when its turn comes."""

    publisher: str
    offset: int


class CommandsDone(msgspec.Struct, frozen=True, array_like=True):
    """How far the commands were followed, and what they left to do."""

    next: int = NOWHERE  # where to read on; NOWHERE: they were not looked at yet
    done: list[str] = []  # ids, the last ones: the same command again changes nothing
    removed: list[RemovedPackage] = []


class StoreLedger(msgspec.Struct, frozen=True):
    """All of it but the statuses that are still to be reported."""

    store_id: str
    progress: dict[str, SubscriberProgress]  # by publisher
    failed: list[GivenUpPackage] = []
    commands: CommandsDone = CommandsDone()

    def progress_of(self, publisher: str) -> SubscriberProgress:
        return self.progress.get(publisher) or SubscriberProgress(publisher)

    def start_of(self, publishers: Iterable[str]) -> int:
        """Where to read on, so that nothing of these publishers is left out."""
        return min(self.progress_of(each).offset for each in publishers) + 1

    def with_progress(self, *moved: SubscriberProgress) -> "StoreLedger":
        progress = self.progress | {each.publisher: each for each in moved}
        return msgspec.structs.replace(self, progress=progress)

    def is_new(self) -> bool:
        """Whether nothing was ever taken in."""
        return all(each.offset == NOWHERE for each in self.progress.values())


_decode_progress = msgspec.msgpack.Decoder(list[SubscriberProgress]).decode
_decode_failed = msgspec.msgpack.Decoder(list[GivenUpPackage]).decode
_decode_commands = msgspec.msgpack.Decoder(CommandsDone).decode
_decode_statuses = msgspec.msgpack.Decoder(list[PackageStatus]).decode


def read_ledger(get_note: GetNote) -> StoreLedger | None:
    """What a store says; None if no subscriber ever wrote it."""
    store_id = get_note(STORE_NOTE)
    if store_id is None:
        return None
    progress, failed, commands = map(get_note, (PROGRESS_NOTE, FAILED_NOTE, COMMANDS_NOTE))
    return StoreLedger(
        store_id.decode(),
        {each.publisher: each for each in _decode_progress(progress)} if progress else {},
        _decode_failed(failed) if failed else [],
        _decode_commands(commands) if commands else CommandsDone(),
    )


def read_statuses(get_note: GetNote, subscriber: str) -> list[PackageStatus]:
    """What is still to be reported; a store that was copied has those of another subscriber."""
    note = get_note(STATUSES_NOTE)
    return (
        [each for each in _decode_statuses(note) if each.subscriber == subscriber] if note else []
    )


def changed_notes(before: StoreLedger | None, after: StoreLedger) -> dict[str, bytes]:
    """What is to be written for a store to say what is so afterwards."""
    notes: dict[str, bytes] = {}
    if before is None or after.progress is not before.progress:
        notes[PROGRESS_NOTE] = encode(list(after.progress.values()))
    if before is None or after.failed is not before.failed:
        notes[FAILED_NOTE] = encode(after.failed)
    if before is None or after.commands is not before.commands:
        notes[COMMANDS_NOTE] = encode(after.commands)
    if before is None or after.store_id != before.store_id:
        notes[STORE_NOTE] = after.store_id.encode()
    return notes
