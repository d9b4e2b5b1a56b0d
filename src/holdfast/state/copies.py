"""Independent copies of folders, with a manifest by which every byte can be checked again.

Bytes are written anew, never linked: a file that two folders share is lost to both by one bad
sector. Reflinks share their blocks, too, so they are not used either. The long ones are generators
that yield after each piece: their driver decides where they run and how fast.
"""

import os
from collections.abc import Generator, Iterable, Iterator
from pathlib import Path
from typing import BinaryIO
from zlib import crc32

import msgspec

from holdfast.errors import DataLoss
from holdfast.files import sync_folder, write_all
from holdfast.limits import COPY_BYTES

MANIFEST = "manifest.json"

Positions = dict[int, int]  # partition -> first position that the snapshot does not stand for
Pieces = Generator[None, None, None]


class Copied(msgspec.Struct, frozen=True, array_like=True):
    """A file as it was copied."""

    size_bytes: int
    crc: int


class SnapshotManifest(msgspec.Struct, frozen=True):
    """What a snapshot consists of, and what it stands for."""

    files: dict[str, Copied]
    positions: Positions


def copy_folder(source: Path, target: Path) -> Generator[None, None, dict[str, Copied]]:
    """Copies the files of a folder into a new one, durably; what they are."""
    target.mkdir(mode=0o700)
    files: dict[str, Copied] = {}
    for path in sorted(source.iterdir()):
        if path.name != MANIFEST:
            files[path.name] = yield from _copy_file(path, target / path.name)
    sync_folder(target)
    return files


def _copy_file(source: Path, target: Path) -> Generator[None, None, Copied]:
    crc = size_bytes = 0
    with source.open("rb", buffering=0) as read:
        descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            while piece := read.read(COPY_BYTES):
                crc = crc32(piece, crc)
                size_bytes += len(piece)
                write_all(descriptor, piece)
                yield
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    return Copied(size_bytes, crc)


def check_files(folder: Path, files: dict[str, Copied]) -> Pieces:
    """Reads files back, from the disk where the system allows it; DataLoss names one that differs.

    What is read was synced before, so the system may drop it from its cache, and is asked to.
    """
    for name, copied in files.items():
        path = folder / name
        crc = size_bytes = 0
        try:
            with path.open("rb", buffering=0) as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
                while piece := file.read(COPY_BYTES):
                    crc = crc32(piece, crc)
                    size_bytes += len(piece)
                    yield
        except OSError as error:
            raise _differs(path, f"it cannot be read: {error}") from error
        if (size_bytes, crc) != (copied.size_bytes, copied.crc):
            raise _differs(path, "its bytes do not match the checksum in the manifest")


def store_manifest(folder: Path, manifest: SnapshotManifest) -> None:
    """Writes the manifest of a folder, durably; the last line is the checksum of the first."""
    body = msgspec.json.encode(manifest)
    path = folder / MANIFEST
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        write_all(descriptor, body + b"\n%08x\n" % crc32(body))
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    sync_folder(folder)


def load_manifest(folder: Path) -> SnapshotManifest | None:
    """The manifest of a folder; None if it has none. DataLoss if it is damaged."""
    path = folder / MANIFEST
    try:
        body, crc, _ = path.read_bytes().split(b"\n")
        if crc != b"%08x" % crc32(body):
            raise _differs(path, "it does not match its own checksum")
        return msgspec.json.decode(body, type=SnapshotManifest, strict=False)
    except FileNotFoundError:
        return None
    except (ValueError, msgspec.MsgspecError) as error:
        raise _differs(path, f"it is no manifest: {error}") from error


def pieces_of(stream: BinaryIO) -> Iterator[bytes]:
    """A file in pieces."""
    return iter(lambda: stream.read(COPY_BYTES), b"")


def finish(pieces: Generator[None, None, object]) -> None:
    """Runs a generator to its end at once."""
    for _ in pieces:
        pass


def total_bytes(paths: Iterable[Path]) -> int:
    """How much room files take."""
    return sum(path.stat().st_size for path in paths)


def _differs(path: Path, reason: str) -> DataLoss:
    return DataLoss(f"Expected {path} to be as it was written, but {reason}", path=str(path))
