"""Where things are in a data folder, with one process or with several.

<folder>/journal, state            of the only member
<folder>/members.json              how many members there are, if it is more than one
<folder>/members/<n>/journal, state   of each of them
<folder>/rebalance.json            there while another division takes effect: see `rebalancing`
<folder>/tables, readers           are the node's, whatever its members

A partition is where its number says: to change the number of members moves partitions, which
`holdfast partitions rebalance` does while no node runs.
"""

import uuid
from pathlib import Path

import msgspec

from holdfast.errors import DataLoss, InvalidArgument, InvalidState
from holdfast.files import replace_file, sync_folder
from holdfast.folder_format import check_format
from holdfast.journal.cluster.identity import FILE as REPLICA
from holdfast.limits import PROCESSES_MAX

MEMBERS = "members"
SWITCH = "rebalance.json"
_FILE = "members.json"


class _Members(msgspec.Struct, frozen=True):
    """What the file says."""

    members: int
    partitions: int
    cluster: str  # members talk only to members of their own folder


class Layout(msgspec.Struct, frozen=True):
    """How the partitions of a folder are divided among members, which are numbered from 1."""

    folder: Path
    members: int = 1
    partitions: int = 0  # 0: as the journal says
    cluster: str = ""

    def member_folder(self, member: int) -> Path:
        """Where a member keeps its journal and its state."""
        return self.folder if self.members == 1 else self.folder / MEMBERS / str(member)

    def owner(self, partition: int) -> int:
        """The member that has a partition."""
        return (partition - 1) % self.members + 1

    def owned(self, member: int) -> list[int]:
        """The partitions of a member, in order."""
        return list(range(member, self.partitions + 1, self.members))

    def journal(self, member: int) -> Path:
        return self.member_folder(member) / "journal"

    def journals(self) -> list[Path]:
        """The journals of all members, in their order."""
        return [self.journal(each) for each in range(1, self.members + 1)]


def layout_of(folder: Path) -> Layout:
    """How a folder is divided; a folder without a word about it has one member.

    InvalidState while another division takes effect: files of both are in the folder. And for a
    folder of a newer format, or one that is being restored.
    """
    check_format(folder)
    if (coming := switching_to(folder)) is not None:
        raise InvalidState(
            f"Expected {folder} to be divided in one way, but a rebalance was interrupted while it"
            f" took effect; finish it: holdfast partitions rebalance {folder} --processes"
            f" {coming.members}",
            path=str(folder),
        )
    return settled_layout(folder)


def check_not_member(folder: Path) -> None:
    """Refuses the folder of a member of a cluster.

    What is in it are copies of several owners' logs, some of it never acknowledged.
    """
    if (folder / REPLICA).exists():
        raise InvalidState(
            f"Expected the folder of a node, but {folder} belongs to a member of a cluster, which"
            " keeps copies of logs there; read the log from the URL of any member instead",
            path=str(folder),
        )


def settled_layout(folder: Path) -> Layout:
    """How `members.json` says that a folder is divided."""
    return _read(folder, _FILE) or Layout(folder)


def switching_to(folder: Path) -> Layout | None:
    """The division that is taking effect, if one is."""
    return _read(folder, SWITCH)


def _read(folder: Path, name: str) -> Layout | None:
    path = folder / name
    try:
        found = msgspec.json.decode(path.read_bytes(), type=_Members)
    except FileNotFoundError:
        return None
    except msgspec.MsgspecError as error:
        raise DataLoss(f"Expected to read {path}, but {error}", path=str(path)) from error
    return Layout(folder, found.members, found.partitions, found.cluster)


def divide(folder: Path, members: int, partitions: int | None, default_partitions: int) -> Layout:
    """The layout of a folder for so many members; a new folder is divided now.

    `InvalidState` where the folder is divided in another way, with what to do about it.
    """
    found = layout_of(folder)
    _check_members(members)
    is_new = found.members == 1 and not found.journal(1).exists()
    if not is_new and found.members != members:
        raise InvalidState(
            f"Expected {folder} to be divided among {members} processes, but it is among"
            f" {found.members}; start it with --processes {found.members}, or stop it and run"
            f" holdfast partitions rebalance {folder} --processes {members}",
            path=str(folder),
        )
    if members == 1:
        return found
    if found.members == members:
        if partitions not in (None, found.partitions):
            raise InvalidArgument(
                f"Expected {partitions} partitions, but the folder was made with"
                f" {found.partitions}; the number cannot be changed"
            )
        return found
    count = partitions or max(default_partitions, 2 * members)
    return write_layout(new_layout(folder, members, count))


def new_layout(folder: Path, members: int, partitions: int) -> Layout:
    """A division that nobody has used; InvalidArgument where there are too many members for it."""
    _check_members(members)
    if partitions < members:
        raise InvalidArgument(
            f"Expected at least one partition for each of {members} processes, but found"
            f" {partitions}",
            field="partitions",
        )
    return Layout(folder, members, partitions, uuid.uuid4().hex)


def _check_members(members: int) -> None:
    if not 1 <= members <= PROCESSES_MAX:
        raise InvalidArgument(
            f"Expected 1 to {PROCESSES_MAX} processes, but found {members}", field="processes"
        )


def write_layout(layout: Layout) -> Layout:
    """Notes how a folder is divided, durably."""
    layout.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if layout.members == 1:
        (layout.folder / _FILE).unlink(missing_ok=True)
        sync_folder(layout.folder)
    else:
        _write(layout, _FILE)
    return layout


def begin_switch(layout: Layout) -> None:
    """Notes that a division is taking effect, durably: nobody starts until it has."""
    _write(layout, SWITCH)


def _write(layout: Layout, name: str) -> None:
    found = _Members(layout.members, layout.partitions, layout.cluster)
    replace_file(layout.folder / name, msgspec.json.encode(found))
