"""A node that is stopped, as of its end: what the command copies by itself."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from holdfast.backup.cut import MemberCut, NodeCut, source_of
from holdfast.belonging import belonging_of
from holdfast.config import load_config
from holdfast.engine.kernel.recovery import TOPIC
from holdfast.errors import DataLoss, InvalidState, NotFound, Unavailable
from holdfast.folder_format import UNMARKED, format_of
from holdfast.journal.local import LocalJournal, verify
from holdfast.journal.local.names import SETTINGS
from holdfast.layout import layout_of
from holdfast.state.snapshots import Snapshots


@asynccontextmanager
async def cut_stopped(home: Path, now_ms: int) -> AsyncIterator[NodeCut]:
    """All files of a node that is stopped; nobody starts it until the end of the block.

    Unavailable while it runs, NotFound if the folder is no node's, InvalidState if it is a
    cluster's, DataLoss if its log is damaged.
    """
    home = _single(home)
    layout = layout_of(home)
    segment_bytes = load_config(home, {}).segment_bytes
    async with AsyncExitStack() as stack:
        members: list[MemberCut] = []
        partitions = 0
        for number in range(1, layout.members + 1):
            folder = layout.member_folder(number)
            if not (folder / "journal" / TOPIC / SETTINGS).exists():
                raise NotFound(
                    f"Expected the data folder of a node in {folder}, but it has no log; check the"
                    " path",
                    path=str(folder),
                )
            journal = _opened(folder, home, segment_bytes)
            stack.push_async_callback(journal.close)
            _check_log(folder)
            store, _ = Snapshots(folder / "state").open_store()
            stack.callback(store.close)
            links = Snapshots(folder / "state").links("backup")
            store.checkpoint(links)
            stack.callback(Snapshots.drop_links, links)
            partitions = journal.topics()[TOPIC]
            members.append(MemberCut(str(folder), journal.pin().extents, str(links)))
        written = format_of(home) or UNMARKED
        yield NodeCut(home, members, partitions, now_ms, source_of(home), written)


def _single(home: Path) -> Path:
    """The whole path of a folder that is no cluster's."""
    home = home.absolute()
    if belonging_of(home) is not None:
        is_kafka = not (home / "journal").exists()
        raise InvalidState(f"{no_backup_text(is_kafka=is_kafka)}: {home}", path=str(home))
    return home


def _opened(folder: Path, home: Path, segment_bytes: int) -> LocalJournal:
    try:
        return LocalJournal.open(folder / "journal", segment_bytes=segment_bytes)
    except Unavailable as error:
        raise Unavailable(
            f"Expected the node in {home} to be stopped, but a process has it open; back it up"
            " while it runs by its URL: holdfast backup http://127.0.0.1:8080 TARGET",
            path=str(home), holder=error.fields.get("holder", ""),
        ) from error  # fmt: skip


def _check_log(folder: Path) -> None:
    """A running node reads its log again all the time; nobody has read this one for a while."""
    for report in verify(str(folder / "journal")):
        for damage in report.damage:
            raise DataLoss(
                f"Expected a log without damage, but {damage.file} at byte {damage.position}:"
                f" {damage.reason}; no backup is made of it. Restore the newest one",
                path=damage.file,
            )


def no_backup_text(*, is_kafka: bool) -> str:
    """Why a member has no backup of its own, and what to do instead."""
    if is_kafka:
        return (
            "Expected a node with a log of its own, but the log is in Kafka. Back up its topics and"
            " the snapshot store with the tools of each"
        )
    return (
        "Expected a node with a log of its own, but this is a member of a cluster, whose members"
        " are copies of each other. Keep what the cluster knew at one moment as tables: holdfast"
        " pipeline run URL --as-of-cut latest --tables FOLDER"
    )
