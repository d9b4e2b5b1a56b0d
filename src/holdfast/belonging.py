"""Which cluster a data folder belongs to, and as which member: `<folder>/cluster.json`."""

from pathlib import Path

import msgspec

from holdfast.errors import DataLoss, InvalidState
from holdfast.files import replace_file
from holdfast.layout import layout_of

CLUSTER_FILE = "cluster.json"


class Belonging(msgspec.Struct, frozen=True):
    """What the file says."""

    cluster: str  # its id
    member: str


def belonging_of(folder: Path) -> Belonging | None:
    """What a folder belongs to; None if it is not a member's."""
    path = folder / CLUSTER_FILE
    try:
        return msgspec.json.decode(path.read_bytes(), type=Belonging)
    except FileNotFoundError:
        return None
    except msgspec.MsgspecError as error:
        raise DataLoss(f"Expected to read {path}, but {error}", path=str(path)) from error


def check_folder(folder: Path) -> None:
    """Refuses a folder that has the log of a node without a cluster."""
    if layout_of(folder).members > 1 or (
        (folder / "journal").exists() and belonging_of(folder) is None
    ):
        raise InvalidState(
            f"Expected a new folder, or one of a member of a cluster, but {folder} has the log of a"
            " single node; start the member with another folder. A node's log does not become a"
            " cluster's by itself",
            path=str(folder),
        )


def belong(folder: Path, cluster: str, member: str) -> None:
    """Notes what the folder belongs to; refuses one that belongs to something else."""
    wanted, found = Belonging(cluster, member), belonging_of(folder)
    if found is None:
        replace_file(folder / CLUSTER_FILE, msgspec.json.encode(wanted))
    elif found != wanted:
        what = "another cluster" if found.cluster != cluster else f"member {found.member!r}"
        raise InvalidState(
            f"Expected {folder} to be the folder of member {member!r} of this cluster, but it is"
            f" that of {what}; start it with the same etcd or journal and the same name, or with a"
            " new folder",
            path=str(folder),
        )
