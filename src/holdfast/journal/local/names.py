"""The names of a topic's files, and the file that says what the topic is."""

import re

import msgspec
from crc32c import crc32c

from holdfast.errors import DataLoss
from holdfast.journal.api import Retention
from holdfast.journal.local.disk import Disk, read_whole, replace_whole
from holdfast.limits import SEGMENT_BYTES_FIRST

SETTINGS = "topic.json"
DURABLE = "durable"
EARLIEST = "earliest"
LOCK = ".lock"  # no topic begins with a dot

_SEGMENT = re.compile(r"(\d{20})\.segment")
_SPARE = re.compile(r"\d{20}\.spare")
_INDEX = re.compile(r"(\d{20})\.index")
_DOUBLINGS_MAX = 32


class Settings(msgspec.Struct, frozen=True):
    """What a topic is."""

    partitions: int
    retention: Retention = Retention()
    crc: int | None = None  # of the others; None: written by an earlier version


def segment_name(sequence: int) -> str:
    return f"{sequence:020}.segment"


def index_name(sequence: int) -> str:
    return f"{sequence:020}.index"


def spare_name(sequence: int) -> str:
    return f"{sequence:020}.spare"


def spare_names(names: list[str]) -> list[str]:
    """The discarded segments among a folder's names that wait for being used again."""
    return [name for name in names if _SPARE.fullmatch(name)]


def segment_sequences(names: list[str]) -> list[int]:
    """The sequence numbers of the segments among a folder's names, oldest first."""
    return sorted(int(found[1]) for name in names if (found := _SEGMENT.fullmatch(name)))


def index_sequences(names: list[str]) -> set[int]:
    """The sequence numbers of the index files among a folder's names."""
    return {int(found[1]) for name in names if (found := _INDEX.fullmatch(name))}


def segment_capacity_bytes(sequence: int, segment_bytes: int) -> int:
    """The room in a segment: small for a topic's first, doubling up to the size that is set."""
    return min(segment_bytes, SEGMENT_BYTES_FIRST << min(sequence - 1, _DOUBLINGS_MAX))


def load_settings(disk: Disk, folder: str) -> Settings | None:
    """What the topic in a folder is; None if there is none, or its creation never finished."""
    path = f"{folder}/{SETTINGS}"
    data = read_whole(disk, path)
    if data is None:
        return None
    try:
        settings = msgspec.json.decode(data, type=Settings)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise _no_settings(path, data, str(error)) from None
    if settings.crc is None:
        return settings
    if settings.crc != _crc(settings):
        raise _no_settings(path, data, "they do not match their checksum")
    return Settings(settings.partitions, settings.retention)


def store_settings(disk: Disk, folder: str, settings: Settings) -> None:
    """Says what the topic is, durably."""
    stored = Settings(settings.partitions, settings.retention, _crc(settings))
    replace_whole(disk, folder, SETTINGS, msgspec.json.format(msgspec.json.encode(stored)))


def _crc(settings: Settings) -> int:
    return crc32c(msgspec.msgpack.encode((settings.partitions, settings.retention)))


def _no_settings(path: str, data: bytes, reason: str) -> DataLoss:
    return DataLoss(
        f"expected the settings of a topic in {path}, but found {data[:200]!r}: {reason};"
        " restore the file from a copy",
        file=path,
        position=0,
    )
