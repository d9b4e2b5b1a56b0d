"""How a new division takes effect: a file that says so, and renames that can be repeated.

    <folder>/members.next     the new division, `1` and so on; before the file is written it is
                              nothing, and the old division is what counts
    <folder>/rebalance.json   from now on the new division counts, and nobody starts before all of
                              it is in its place
    <folder>/members.old      what the old division had, until it is removed

After an interruption the next command calls `finish` again: every rename is done where its source
is still there.
"""

import shutil
from collections.abc import Callable
from pathlib import Path

from holdfast.files import make_folder, sync_folder
from holdfast.layout import MEMBERS, SWITCH, Layout, switching_to, write_layout

_NEXT = "members.next"
_OLD = "members.old"
PIECES = ("journal", "state", "quarantine.json", "running")  # what a member has

Told = Callable[[str, int], None]  # what is done now, and how many bytes went by


def next_folder(folder: Path, member: int) -> Path:
    """Where a member of the new division is built."""
    return folder / _NEXT / str(member)


def clean_up(folder: Path) -> None:
    """Removes a division that never took effect, and one that no longer does."""
    assert not (folder / SWITCH).exists(), "a switch is finished first"
    for name in (_NEXT, _OLD):
        shutil.rmtree(folder / name, ignore_errors=True)


def finish(folder: Path, told: Told) -> Layout | None:
    """Puts the new division in its place, from wherever somebody was interrupted."""
    layout = switching_to(folder)
    if layout is None:
        return None
    made, aside = folder / _NEXT, folder / _OLD
    make_folder(aside)
    if made.exists():  # not all of it is in its place
        if (folder / MEMBERS).exists():
            _move(folder / MEMBERS, aside / MEMBERS, told)
        for piece in PIECES:
            # Where both are there, the one in the folder is what was there before.
            is_old = layout.members > 1 or (made / "1" / piece).exists()
            if is_old and (folder / piece).exists():
                _move(folder / piece, aside / piece, told)
        if layout.members > 1:
            _move(made, folder / MEMBERS, told)
        else:
            for piece in PIECES:
                if (made / "1" / piece).exists():
                    _move(made / "1" / piece, folder / piece, told)
            shutil.rmtree(made)
            sync_folder(folder)
    told("switching", 0)
    write_layout(layout)
    told("switching", 0)
    (folder / SWITCH).unlink()
    sync_folder(folder)
    return layout


def _move(source: Path, target: Path, told: Told) -> None:
    told("switching", 0)
    source.rename(target)
    sync_folder(target.parent)
    sync_folder(source.parent)
