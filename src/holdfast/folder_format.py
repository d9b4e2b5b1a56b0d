"""The version of a data folder: looked at before anything else in the folder is opened.

<folder>/format.json   the format of the files, and the version of the program that uses them
<folder>/restoring     there while a backup is put into the folder: see `backup/restoring.py`

The format is a number of its own. It goes up when a program could misread what a newer one has
written; most versions of the program leave it as it is. Folders of programs that did not write the
file have the format 0. Format 2 has many waiting jobs in a row of the state, format 1 one.
"""

from pathlib import Path
from typing import Final

import msgspec

from holdfast.errors import DataLoss, InvalidState
from holdfast.files import replace_file
from holdfast.version import VERSION

FORMAT: Final = 2
FORMAT_FILE: Final = "format.json"
RESTORING: Final = "restoring"


class FolderFormat(msgspec.Struct, frozen=True):
    """What the file says."""

    format: int
    program: str = ""


UNMARKED: Final = FolderFormat(0, "0.1.0 or earlier")
CURRENT: Final = FolderFormat(FORMAT, VERSION)


def format_of(folder: Path) -> FolderFormat | None:
    """The format of a folder; None if no node has used it."""
    path = folder / FORMAT_FILE
    try:
        return msgspec.json.decode(path.read_bytes(), type=FolderFormat)
    except FileNotFoundError:
        return UNMARKED if has_node(folder) else None
    except NotADirectoryError:
        return None
    except msgspec.MsgspecError as error:
        raise DataLoss(
            f"Expected the format of the folder in {path}, but {error}; restore the file or the"
            " folder from a backup",
            path=str(path),
        ) from error


def has_node(folder: Path) -> bool:
    """Whether a node has kept something in a folder."""
    return any((folder / name).exists() for name in ("journal", "members", "state"))


def check_format(folder: Path) -> None:
    """Refuses a folder that this program would misread, and one that is not whole yet."""
    if (folder / RESTORING).exists():
        raise InvalidState(
            f"Expected a whole folder in {folder}, but a restore into it was interrupted; run the"
            f" same holdfast restore again: it begins anew",
            path=str(folder),
        )
    found = format_of(folder)
    if found is not None and found.format > FORMAT:
        raise InvalidState(
            f"The folder {folder} was written by holdfast {found.program} (format {found.format});"
            f" this is holdfast {VERSION} (format {FORMAT}): upgrade holdfast, or restore a backup"
            " that an older version made",
            path=str(folder), format=found.format,
        )  # fmt: skip


def mark(folder: Path, found: FolderFormat) -> None:
    """Notes the format of a folder, durably."""
    replace_file(folder / FORMAT_FILE, msgspec.json.encode(found))
