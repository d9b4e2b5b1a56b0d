"""What a backup is: the files of a node as of one moment, cut into pieces that are known by hash.

<target>/holdfast-backup.json            says that this is a place for backups
<target>/generations/<number>-<id>.json  the manifest of a backup: written last, and with it the
                                         backup is there
<target>/data/<ab>/<hash>                a piece, by the SHA-256 of its bytes; generations share it
<target>/working/<what>-<id>.json        there while something is made or removed
"""

from hashlib import sha256

import msgspec

from holdfast.errors import DataLoss, InvalidState
from holdfast.folder_format import FORMAT
from holdfast.journal.local.extent import TopicExtent
from holdfast.version import VERSION

MANIFEST_VERSION = 1


class StoredFile(msgspec.Struct, frozen=True):
    """A file of the node's folder."""

    path: str  # within the folder, with slashes
    size_bytes: int
    edge: str  # the hash of its last bytes, by which the next backup knows it again
    pieces: list[str]  # hashes; all but the last are of `piece_bytes`


class BackupManifest(msgspec.Struct, frozen=True):
    """One backup."""

    version: int
    generation: int
    taken_ms: int  # the moment that it shows, by the node's clock
    format: int  # of the folder
    program: str  # the version that made it
    source: str  # the machine and the folder
    members: int
    partitions: int
    piece_bytes: int
    logs: dict[str, dict[str, TopicExtent]]  # by the folder of a member, and by topic
    files: list[StoredFile]
    sent_bytes: int = 0  # of its pieces, those that the target did not have
    sent_pieces: int = 0

    @property
    def size_bytes(self) -> int:
        """How large the folder is that it makes."""
        return sum(each.size_bytes for each in self.files)


class _Numbers(msgspec.Struct):
    """What every version of a manifest says."""

    version: int
    format: int
    program: str = ""


def encode_manifest(manifest: BackupManifest) -> bytes:
    """A line of JSON, and one with its checksum."""
    body = msgspec.json.encode(manifest)
    return body + b"\n" + sha256(body).hexdigest().encode() + b"\n"


def decode_manifest(data: bytes, source: str) -> BackupManifest:
    """DataLoss if it is damaged; InvalidState if a newer version wrote it."""
    body, _, digest = data.rstrip(b"\n").rpartition(b"\n")
    if digest.decode(errors="replace") != sha256(body).hexdigest():
        raise DataLoss(
            f"Expected the manifest {source} to be as it was written, but it does not match its"
            " checksum; use another generation",
            path=source,
        )
    numbers = msgspec.json.decode(body, type=_Numbers)
    if numbers.version > MANIFEST_VERSION or numbers.format > FORMAT:
        raise InvalidState(
            f"The backup {source} was written by holdfast {numbers.program} (format"
            f" {numbers.format}); this is holdfast {VERSION} (format {FORMAT}): upgrade holdfast",
            path=source, format=numbers.format,
        )  # fmt: skip
    return msgspec.json.decode(body, type=BackupManifest, strict=False)


def hash_of(data: bytes) -> str:
    """How a piece is called."""
    return sha256(data).hexdigest()


def safe_path(path: str) -> bool:
    """Whether a path stays within the folder that it is restored into."""
    parts = path.split("/")
    return bool(path) and all(part not in ("", ".", "..") and "\0" not in part for part in parts)
