"""The names of a topic's files, and the file that says what the topic is."""

import re

import msgspec
from crc32c import crc32c

from holdfast.errors import DataLoss
from holdfast.journal.api import Retention
from holdfast.journal.local.disk import Disk, read_whole, replace_whole
from holdfast.limits import SEGMENT_BYTES_FIRST

SETTINGS = "topic.json"
SETTINGS_COPY = "topic.copy.json"
DURABLE = "durable"
EARLIEST = "earliest"
EPOCHS = "epochs"
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
    """What the topic in a folder is; None if there is none, or its creation never finished.

    DataLoss if the file is damaged, and its copy too.
    """
    data = read_whole(disk, f"{folder}/{SETTINGS}")
    if data is None:
        return None
    try:
        return _settings_in(data, f"{folder}/{SETTINGS}")
    except DataLoss:
        copy = read_whole(disk, f"{folder}/{SETTINGS_COPY}")
        if copy is None:
            raise
        return _settings_in(copy, f"{folder}/{SETTINGS_COPY}")


def _settings_in(data: bytes, path: str) -> Settings:
    try:
        settings = msgspec.json.decode(data, type=Settings)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise _no_settings(path, data, str(error)) from None
    if settings.crc not in (None, _crc(settings)):
        raise _no_settings(path, data, "they do not match their checksum")
    return Settings(settings.partitions, settings.retention)


def store_settings(disk: Disk, folder: str, settings: Settings) -> None:
    """Says what the topic is, durably and twice; with the second file the topic is there."""
    data = _encoded(settings)
    for name in (SETTINGS_COPY, SETTINGS):
        replace_whole(disk, folder, name, data)


def are_settings_whole(disk: Disk, folder: str, settings: Settings) -> bool:
    """Whether both files say what the topic is, with a checksum."""
    data = _encoded(settings)
    names = (SETTINGS, SETTINGS_COPY)
    return all(read_whole(disk, f"{folder}/{name}") == data for name in names)


def _encoded(settings: Settings) -> bytes:
    stored = Settings(settings.partitions, settings.retention, _crc(settings))
    return msgspec.json.format(msgspec.json.encode(stored))


def _crc(settings: Settings) -> int:
    return crc32c(msgspec.msgpack.encode((settings.partitions, settings.retention)))


def _no_settings(path: str, data: bytes, reason: str) -> DataLoss:
    return DataLoss(
        f"expected the settings of a topic in {path}, but found {data[:200]!r}: {reason};"
        " restore the file from a copy",
        file=path,
        position=0,
    )
