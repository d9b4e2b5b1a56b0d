"""A node as of one moment: what of its files belongs to it."""

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from holdfast.folder_format import FolderFormat
from holdfast.journal.local.extent import TopicExtent

STATE = "state/snapshots/1"  # where a backup has the state, and a restored folder its first copy
CONTENT = "content/blobs"


class MemberCut(msgspec.Struct, frozen=True):
    """The files of one process of the node, which stay as they are until it is released."""

    folder: str  # on this machine
    topics: dict[str, TopicExtent]
    state: str  # the folder with the files of the state; it stands for no more than the log has


class NodeCut(NamedTuple):
    """The files of all processes, as of the same moment."""

    home: Path
    members: list[MemberCut]
    partitions: int
    taken_ms: int
    source: str  # the machine and the folder
    written: FolderFormat

    def within(self, member: MemberCut) -> str:
        """Where the files of a member are in the node's folder: a prefix of their paths."""
        place = Path(member.folder).relative_to(self.home).as_posix()
        return "" if place == "." else f"{place}/"


class Source(NamedTuple):
    """A file to be copied."""

    path: str  # within the node's folder
    file: Path
    size_bytes: int
    is_fixed: bool  # what is there does not change, though more may come behind it
    may_go: bool = False  # one that is gone is not needed


def sources(cut: NodeCut) -> Iterator[Source]:
    """What a backup copies, in the order of the paths."""
    for member in cut.members:
        prefix, folder = cut.within(member), Path(member.folder)
        for topic, extent in sorted(member.topics.items()):
            for each in extent.segments:
                file = folder / "journal" / topic / each.name
                yield Source(f"{prefix}journal/{topic}/{each.name}", file, each.end, True)
        for file in sorted(Path(member.state).iterdir()):
            is_table = file.suffix == ".sst"
            yield Source(f"{prefix}{STATE}/{file.name}", file, file.stat().st_size, is_table)
    yield from _content(cut.home / CONTENT)


def _content(blobs: Path) -> Iterator[Source]:
    """Large files of content: a blob never changes, and one that is removed has no package."""
    for file in sorted(blobs.rglob("*")):
        name = file.relative_to(blobs).as_posix()
        if not file.name.startswith(".") and file.is_file():
            yield Source(f"{CONTENT}/{name}", file, file.stat().st_size, True, may_go=True)


def source_of(home: Path) -> str:
    """How a backup names the folder that it was made from."""
    return f"{socket.gethostname()}:{home}"
