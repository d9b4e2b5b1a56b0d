"""What is checked, and made, when a node opens its folder."""

import shutil
import stat
from pathlib import Path

from holdfast.belonging import belonging_of
from holdfast.blobs import Blobs, open_blobs
from holdfast.config import DEFAULT_PARTITIONS, Config
from holdfast.content.blobs import NoSharedStore
from holdfast.engine.kernel.recovery import TOPIC
from holdfast.errors import InvalidArgument, InvalidState
from holdfast.files import folder_bytes, make_folder
from holdfast.journal import Journal
from holdfast.journal.local import LocalJournal
from holdfast.layout import layout_of
from holdfast.logs import log
from holdfast.metrics import DiskNumbers
from holdfast.state.stored import StoredSnapshots


def check_division(folder: Path, home: Path | None) -> None:
    """Refuses a folder whose partitions are other processes', or are being divided anew.

    And one that is a member's of a cluster, unless it is opened as that: what others have
    acknowledged would go on without them.
    """
    if home is None and (belonging := belonging_of(folder)) is not None:
        raise InvalidState(
            f"Expected the folder of a node of its own, but {folder} is that of member"
            f" {belonging.member!r} of a cluster; start it with --cluster or --journal, as before",
            path=str(folder),
        )
    layout = layout_of(folder if home is None else home)
    if home is None and layout.members > 1:
        raise InvalidState(
            f"Expected the partitions of {folder} to be in one process, but they are divided among"
            f" {layout.members}; start it with holdfast start {folder}, or run holdfast partitions"
            f" rebalance {folder} --processes 1",
            path=str(folder),
        )


def make_private(folder: Path) -> None:
    """What is in the folder is for its owner alone: payloads, and digests of passwords."""
    make_folder(folder)
    mode = stat.S_IMODE(folder.stat().st_mode)
    if mode & 0o077:
        log.warning(
            "data folder is open to others", folder=str(folder), mode=f"{mode:o}",
            advice=f"chmod -R go= {folder}",
        )  # fmt: skip


def stored_snapshots(config: Config, *, is_shared: bool) -> StoredSnapshots | None:
    """The snapshots outside of the folder, if the node is to have any."""
    if not config.snapshot_store:
        return None
    return StoredSnapshots(open_blobs(config.snapshot_store), is_shared=is_shared)


def create_records(journal: Journal, config: Config) -> None:
    """The number of partitions is fixed when a folder is first used."""
    existing = journal.topics().get(TOPIC)
    if existing is None:
        journal.create_topic(TOPIC, config.partitions or DEFAULT_PARTITIONS)
    elif config.partitions not in (None, existing):
        raise InvalidArgument(
            f"Expected {config.partitions} partitions, but the log has {existing};"
            " the number cannot be changed"
        )


def content_blobs(config: Config, journal: Journal, beside: Path) -> Blobs:
    """Where large files of content are: beside the log, unless the log is on several machines."""
    if not config.content_store and not isinstance(journal, LocalJournal):
        raise NoSharedStore(
            "Expected a store for large files that all members of the cluster reach, but none is"
            " configured; set content_store (a bucket, or a folder that is mounted everywhere) on"
            " every member, or publish packages that fit into a message"
        )
    return open_blobs(config.content_store or str(beside))


def disk_numbers(folder: Path) -> DiskNumbers:
    """How much room a member takes in its folder, and how much the disk has."""
    disk = shutil.disk_usage(folder)
    log_bytes = folder_bytes(folder / "journal")
    return DiskNumbers(log_bytes, folder_bytes(folder / "state" / "live"), disk.free, disk.total)
