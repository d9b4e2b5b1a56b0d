"""Which disk this is: an id made with the folder, and how often a member was started on it.

The count is on the disk before the other members know of the start. A disk that has counted fewer
starts than they know of is an older copy: it has forgotten promises and entries that it answered
for. It gets a new id and begins as an empty one; its log is set aside.
"""

from collections.abc import Callable

import msgspec

from holdfast.errors import DataLoss, InvalidState, Unknown
from holdfast.journal.local.disk import Disk, read_whole, replace_whole
from holdfast.logs import log
from holdfast.sequence.api import Coordination, Replica

FILE = "replica.json"
JOURNAL = "journal"


class DiskIdentity(msgspec.Struct, frozen=True):
    """The contents of the file."""

    disk: str
    boots: int = 0  # starts of a member on this disk, with this one


def load_identity(disk: Disk, folder: str) -> DiskIdentity | None:
    """Which disk a folder is; None if no member was started on it."""
    path = f"{folder}/{FILE}"
    data = read_whole(disk, path)
    if data is None:
        return None
    try:
        return msgspec.json.decode(data, type=DiskIdentity)
    except msgspec.MsgspecError as error:
        raise DataLoss(
            f"expected the identity of this disk in {path}, but found {data[:200]!r}: {error};"
            " move the folder away and start the member with an empty one",
            file=path,
            position=0,
        ) from None


def store_identity(disk: Disk, folder: str, identity: DiskIdentity) -> None:
    """Writes it down, durably."""
    replace_whole(disk, folder, FILE, msgspec.json.format(msgspec.json.encode(identity)))


async def begin_identity(
    disk: Disk,
    folder: str,
    member: str,
    coordination: Coordination,
    make_id: Callable[[], str],
) -> DiskIdentity:
    """Notes a start on the disk and with the others; a rolled-back disk becomes an empty one."""
    disk.make_folder(folder)
    found = load_identity(disk, folder)
    if found is None:
        if disk.list(f"{folder}/{JOURNAL}"):
            raise InvalidState(
                f"expected {folder}/{FILE} beside the journal in {folder}, but it is missing: it"
                " is the folder of a node without a cluster, or its identity is lost; start the"
                " member with an empty folder",
                folder=folder,
            )
        found = DiskIdentity(make_id())
    while True:
        before, found = found, DiskIdentity(found.disk, found.boots + 1)
        store_identity(disk, folder, found)
        try:
            is_newest = await coordination.begin_disk(Replica(member, found.disk), before.boots)
        except Unknown:
            continue  # it may be counted: the next start is one more
        if is_newest:
            return found
        found = _set_aside(disk, folder, found, make_id())


def _set_aside(disk: Disk, folder: str, found: DiskIdentity, disk_id: str) -> DiskIdentity:
    """Moves the log of a rolled-back disk out of the way, before the disk gets its new id."""
    aside = f"{folder}/{JOURNAL}.rolled-back-{found.boots}"
    log.error(
        "this disk was rolled back to an older copy: it starts as an empty one",
        folder=folder, disk=found.disk, boots=found.boots, log_is_now_in=aside, new_disk=disk_id,
    )  # fmt: skip
    if disk.list(f"{folder}/{JOURNAL}"):
        disk.rename(f"{folder}/{JOURNAL}", aside)
        disk.sync_folder(folder)
    return DiskIdentity(disk_id)
