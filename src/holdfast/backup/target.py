"""A place for backups: generations, the pieces that they share, and who works there."""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import msgspec

from holdfast.backup.manifest import (
    BackupManifest,
    StoredFile,
    decode_manifest,
    encode_manifest,
    hash_of,
)
from holdfast.blobs import Blobs, put
from holdfast.errors import DataLoss, HoldfastError, InvalidState, NotFound
from holdfast.limits import BACKUP_WORKING_MS_MAX

_HERE = "holdfast-backup.json"
_GENERATIONS, _DATA, _WORKING = "generations/", "data/", "working/"


class Working(msgspec.Struct, frozen=True):
    """Somebody makes a backup in the target, or removes some."""

    what: str  # backup or prune
    source: str
    since_ms: int


class SeenBackup(NamedTuple):
    """A generation that is there; one whose manifest cannot be used says why."""

    number: int
    name: str
    manifest: BackupManifest | None
    problem: HoldfastError | None


class BackupTarget:
    """Backups in a blob store."""

    def __init__(self, blobs: Blobs) -> None:
        self.blobs = blobs
        self.url = blobs.url

    # --- what it is ---------------------------------------------------------------------------

    def begin(self) -> None:
        """Makes a place for backups of an empty one; refuses one that has something else."""
        if self.blobs.head(_HERE) is None:
            if next(self.blobs.list(), None) is not None:
                raise InvalidState(
                    f"Expected {self.url} to be empty or to have backups, but it has other things;"
                    " give another target",
                    target=self.url,
                )
            put(self.blobs, _HERE, [b'{"version":1}\n'])

    def check(self) -> None:
        """NotFound where no backup was ever made."""
        if self.blobs.head(_HERE) is None:
            raise NotFound(
                f"Expected backups in {self.url}, but there are none; check the target",
                target=self.url,
            )

    # --- generations --------------------------------------------------------------------------

    def generations(self) -> list[SeenBackup]:
        """All of them, the oldest first."""
        found: list[SeenBackup] = []
        for blob in self.blobs.list(_GENERATIONS):
            stem = blob.name.removeprefix(_GENERATIONS).removesuffix(".json")
            number = stem.partition("-")[0]
            if number.isdigit():
                found.append(self._load(int(number), blob.name))
        return sorted(found, key=_order)

    def _load(self, number: int, name: str) -> SeenBackup:
        data = b"".join(self.blobs.get(name))
        try:
            return SeenBackup(number, name, decode_manifest(data, f"{name} in {self.url}"), None)
        except HoldfastError as error:
            return SeenBackup(number, name, None, error)

    def generation(self, number: int | None = None) -> BackupManifest:
        """One of them, the newest if none is named; what is wrong with it is raised."""
        self.check()
        all_of_them = self.generations()
        found = [each for each in all_of_them if number in (None, each.number)]
        if not found:
            known = ", ".join(str(each.number) for each in all_of_them) or "none"
            raise NotFound(
                f"Expected a backup{'' if number is None else f' {number}'} in {self.url}, but"
                f" there are: {known}",
                target=self.url,
            )
        newest = found[-1]
        if newest.problem is not None:
            raise newest.problem
        assert newest.manifest is not None
        return newest.manifest

    def add(self, manifest: BackupManifest) -> None:
        """With this the backup is there."""
        name = f"{_GENERATIONS}{manifest.generation:08}-{secrets.token_hex(4)}.json"
        put(self.blobs, name, [encode_manifest(manifest)])

    def forget(self, found: SeenBackup) -> None:
        """The backup is not there any more; its pieces are."""
        self.blobs.delete(found.name)

    # --- pieces -------------------------------------------------------------------------------

    def pieces(self) -> dict[str, int]:
        """The sizes of the pieces that are there."""
        return {
            blob.name.rpartition("/")[2]: blob.size_bytes
            for blob in self.blobs.list(_DATA)
        }  # fmt: skip

    def send(self, piece: str, data: bytes) -> None:
        put(self.blobs, _name(piece), [data])

    def piece(self, piece: str, file: StoredFile) -> bytes:
        """The bytes of a piece, checked; DataLoss names the file that needs it."""
        try:
            data = b"".join(self.blobs.get(_name(piece)))
        except NotFound as error:
            raise self._damaged(piece, file, "it is missing") from error
        if hash_of(data) != piece:
            raise self._damaged(piece, file, "its bytes do not match its hash")
        return data

    def _damaged(self, piece: str, file: StoredFile, reason: str) -> DataLoss:
        return DataLoss(
            f"Expected the piece {_name(piece)} of {file.path} in {self.url}, but {reason}; the"
            " generations that need it cannot be restored: use another one",
            path=_name(piece), target=self.url,
        )  # fmt: skip

    def drop(self, piece: str) -> None:
        self.blobs.delete(_name(piece))

    # --- who works ----------------------------------------------------------------------------

    @contextmanager
    def working(self, what: str, source: str, now_ms: int) -> Iterator[None]:
        """Says that somebody is at work, until the end of the block.

        A process that was killed leaves its word. The next one of the same source removes it.
        """
        for name, other in self.workers():
            is_same = (other.what, other.source) == (what, source)
            if is_same or now_ms - other.since_ms > BACKUP_WORKING_MS_MAX:
                self.blobs.delete(name)
        name = f"{_WORKING}{what}-{secrets.token_hex(8)}.json"
        put(self.blobs, name, [msgspec.json.encode(Working(what, source, now_ms))])
        try:
            yield
        finally:
            self.blobs.delete(name)

    def workers(self) -> list[tuple[str, Working]]:
        """Those who said that they are at work, and have not said that they are done."""
        found: list[tuple[str, Working]] = []
        for blob in self.blobs.list(_WORKING):
            try:
                data = b"".join(self.blobs.get(blob.name))
            except NotFound:  # it is done meanwhile
                continue
            found.append((blob.name, msgspec.json.decode(data, type=Working)))
        return found


def _order(found: SeenBackup) -> tuple[int, int]:
    return found.number, 0 if found.manifest is None else found.manifest.taken_ms


def _name(piece: str) -> str:
    return f"{_DATA}{piece[:2]}/{piece}"
