"""How far the tables are: one file beside them, replaced after every micro-batch."""

import os
from pathlib import Path

import msgspec

from holdfast.pipeline.changes.rows import KnownDefinition
from holdfast.pipeline.streams import STREAMS

FILE = "_progress"


class TableProgress(msgspec.Struct, frozen=True):
    """Where the tables stand after a micro-batch.

    The versions of the tables fit one another: a reader of all tables at these versions sees one
    moment of each partition.
    """

    batch: int = -1
    # By partition, the first position that is not in the tables; and by the numbers of `STREAMS`.
    positions: dict[int, int] = {}
    versions: dict[str, int] = {}  # by table
    timestamp_ms: int = 0  # of the last record in them
    committed_ms: int = 0
    definitions: dict[int, KnownDefinition] = {}

    def records(self) -> dict[int, int]:
        """The positions of partitions alone."""
        return {each: at for each, at in self.positions.items() if each not in STREAMS}


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(TableProgress).decode


def load_progress(root: Path) -> TableProgress:
    """Where the tables stand; at the beginning if they never began."""
    try:
        return _decode((root / FILE).read_bytes())
    except FileNotFoundError:
        return TableProgress()


def store_progress(root: Path, progress: TableProgress) -> None:
    """Tells it at once and whole, or not at all."""
    draft = root / f"{FILE}.draft"
    with draft.open("wb") as file:
        file.write(_encode(progress))
        file.flush()
        os.fsync(file.fileno())
    draft.replace(root / FILE)
