"""What a micro-batch covers, as Spark wrote it down in the checkpoint before it began."""

from pathlib import Path
from typing import NamedTuple

import msgspec

_VERSION = "v1"  # of the file's format
_decode = msgspec.json.Decoder(dict[str, int]).decode


class Span(NamedTuple):
    """Some positions of a partition."""

    partition: int
    start: int
    end: int  # the position after the last


def spans_of(checkpoint: Path, number: int) -> list[Span] | None:
    """The positions that are new in a micro-batch; None where the checkpoint does not tell."""
    ends = _positions(checkpoint, number)
    starts = _positions(checkpoint, number - 1)
    if ends is None or starts is None:
        return None
    return [
        Span(int(partition), starts.get(partition, 0), end)
        for partition, end in ends.items()
        if starts.get(partition, 0) < end
    ]


def planned_ends(checkpoint: Path) -> dict[int, int]:
    """How far the last micro-batch goes that was begun, by partition; nothing if none was."""
    files = (checkpoint / "offsets").glob("*")
    numbers = [int(each.name) for each in files if each.name.isdigit()]
    ends = _positions(checkpoint, max(numbers)) if numbers else None
    return {int(partition): end for partition, end in (ends or {}).items()}


def _positions(checkpoint: Path, number: int) -> dict[str, int] | None:
    """The line of the only source; before it are the format's version and Spark's settings."""
    try:
        lines = (checkpoint / "offsets" / str(number)).read_text().splitlines()
        version, _, positions = lines
        return _decode(positions) if version == _VERSION else None
    except (OSError, ValueError, msgspec.MsgspecError):
        return None
