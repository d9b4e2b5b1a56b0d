"""Makes a backup: sends the pieces that the target does not have, then the manifest.

What is long is a generator that yields after each piece; its driver decides where it runs and how
fast. One piece is in memory at a time.
"""

import os
from collections.abc import Generator
from contextlib import ExitStack

import msgspec

from holdfast.backup.cut import NodeCut, Source, sources
from holdfast.backup.manifest import MANIFEST_VERSION, BackupManifest, StoredFile, hash_of
from holdfast.backup.target import BackupTarget
from holdfast.errors import DataLoss, Unavailable
from holdfast.limits import BACKUP_EDGE_BYTES, BACKUP_PIECE_BYTES
from holdfast.version import VERSION

Pieces = Generator[None, None, None]


class BackupProgress(msgspec.Struct):
    """How far a backup or a restore is; another thread may look at it."""

    total_bytes: int = 0
    done_bytes: int = 0
    sent_bytes: int = 0
    sent_pieces: int = 0


class BackupTaking:
    """One backup in the making. `send` and then `finish`; `close` in any case."""

    def __init__(self, cut: NodeCut, target: BackupTarget, progress: BackupProgress) -> None:
        self._cut = cut
        self._target = target
        self._progress = progress
        self._stack = ExitStack()
        self._there: dict[str, int] = {}  # pieces of the target
        self._before: dict[str, StoredFile] = {}  # files of the generation before
        self._number = 1
        self._files: list[StoredFile] = []
        self.new_tables = False  # whether files of the state were sent that it did not have

    def send(self) -> Pieces:
        """Sends what the target does not have."""
        self._begin()
        found = list(sources(self._cut))
        self._progress.total_bytes = sum(each.size_bytes for each in found)
        yield
        for source in found:
            try:
                self._files.append((yield from self._send_file(source)))
            except FileNotFoundError:
                if not source.may_go:
                    raise

    def _begin(self) -> None:
        """Says that a backup is made before it looks what is there: see `keeping.prune`."""
        target, cut = self._target, self._cut
        target.begin()
        self._stack.enter_context(target.working("backup", cut.source, cut.taken_ms))
        if any(other.what == "prune" for _, other in target.workers()):
            raise Unavailable(
                f"A prune is removing backups from {target.url}; try again when it has ended",
                target=target.url,
            )
        generations = target.generations()
        if generations:
            self._number = generations[-1].number + 1
        usable = [each.manifest for each in generations if each.manifest is not None]
        if usable and usable[-1].piece_bytes == BACKUP_PIECE_BYTES:
            self._before = {each.path: each for each in usable[-1].files}
        self._there = target.pieces()

    def _send_file(self, source: Source) -> Generator[None, None, StoredFile]:
        """Pieces of a file that is known from the generation before are not even read."""
        descriptor = os.open(source.file, os.O_RDONLY | os.O_CLOEXEC)
        try:
            pieces = self._known_pieces(source, descriptor)
            self._progress.done_bytes += min(len(pieces) * BACKUP_PIECE_BYTES, source.size_bytes)
            for at in range(
                len(pieces) * BACKUP_PIECE_BYTES, source.size_bytes, BACKUP_PIECE_BYTES
            ):
                size_bytes = min(BACKUP_PIECE_BYTES, source.size_bytes - at)
                data = _read(source, descriptor, at, size_bytes)
                pieces.append(self._send_piece(data, source))
                self._progress.done_bytes += size_bytes
                yield
            return StoredFile(
                source.path, source.size_bytes, _edge(descriptor, source.size_bytes), pieces
            )
        finally:
            os.close(descriptor)

    def _known_pieces(self, source: Source, descriptor: int) -> list[str]:
        before = self._before.get(source.path)
        if before is None or not source.is_fixed or before.size_bytes > source.size_bytes:
            return []
        if _edge(descriptor, before.size_bytes) != before.edge:
            return []  # another log, or another state, with files of the same names
        whole = before.pieces
        if before.size_bytes < source.size_bytes:  # the last one may have been cut short
            whole = whole[: before.size_bytes // BACKUP_PIECE_BYTES]
        return list(whole) if all(each in self._there for each in whole) else []

    def _send_piece(self, data: bytes, source: Source) -> str:
        piece = hash_of(data)
        if self._there.get(piece) != len(data):
            self._target.send(piece, data)
            self._there[piece] = len(data)
            self._progress.sent_bytes += len(data)
            self._progress.sent_pieces += 1
            self.new_tables = self.new_tables or source.file.suffix == ".sst"
        return piece

    def finish(self) -> BackupManifest:
        """Writes the manifest. The caller has made sure that the files were kept until now."""
        cut = self._cut
        manifest = BackupManifest(
            MANIFEST_VERSION, self._number, cut.taken_ms, cut.written.format, VERSION, cut.source,
            len(cut.members), cut.partitions, BACKUP_PIECE_BYTES,
            {cut.within(each): each.topics for each in cut.members}, self._files,
            self._progress.sent_bytes, self._progress.sent_pieces,
        )  # fmt: skip
        self._target.add(manifest)
        return manifest

    def close(self) -> None:
        """Nobody is at work in the target any more."""
        self._stack.close()


def _read(source: Source, descriptor: int, at: int, size_bytes: int) -> bytes:
    data = os.pread(descriptor, size_bytes, at)
    if len(data) < size_bytes:
        raise DataLoss(
            f"Expected {size_bytes} bytes in {source.file} at byte {at}, but it ends after"
            f" {len(data)} of them; run holdfast doctor",
            path=str(source.file),
        )
    return data


def _edge(descriptor: int, end: int) -> str:
    """Frames and tables end with checksums, offsets and times, so equal ends are equal files."""
    start = max(end - BACKUP_EDGE_BYTES, 0)
    return hash_of(os.pread(descriptor, end - start, start))[:32]
