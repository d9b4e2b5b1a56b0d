"""Divides the partitions of a stopped node among another number of processes."""

import fcntl
import os
import shutil
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path

import msgspec

from holdfast.config import load_config
from holdfast.engine.kernel.recovery import TOPIC
from holdfast.errors import InvalidState, NotFound, ResourceExhausted, Unavailable
from holdfast.files import make_folder, replace_file, sync_tree
from holdfast.folder_format import check_format
from holdfast.journal.local import LocalJournal
from holdfast.journal.local.names import SETTINGS
from holdfast.layout import Layout, begin_switch, new_layout, settled_layout
from holdfast.limits import REBALANCE_SPARE_BYTES
from holdfast.rebalancing.building import WITH_OTHER_TOPICS, Home, Member, build, check
from holdfast.rebalancing.switching import PIECES, Told, clean_up, finish, next_folder
from holdfast.starts import load_suspects
from holdfast.state.snapshots import Snapshots


class Rebalanced(msgspec.Struct, frozen=True, rename="camel"):
    """How a folder is divided now, and what was done for it."""

    processes: int
    processes_before: int
    partitions: int
    moved: list[int]  # the partitions that another process has now
    entries: int = 0  # that were copied and checked
    rows: int = 0
    finished_interrupted: bool = False  # a rebalance that had been interrupted took effect first


class Total(msgspec.Struct):
    """How much there is to read and write: about the bytes that `Told` will be told of."""

    size_bytes: int = 0


async def rebalance(
    folder: Path, processes: int, told: Told, total: Total | None = None
) -> Rebalanced:
    """Divides a folder anew, so that it is the old division or the new one at any moment.

    Unavailable while a node runs there, NotFound if the folder is no node's, ResourceExhausted if
    the disk has no room for both divisions.
    """
    check_format(folder)
    with _alone(folder):
        try:
            was_interrupted = finish(folder, told) is not None
            old = settled_layout(folder)
            async with _opened(old) as homes:
                clean_up(folder)
                new = new_layout(folder, processes, len(homes))
                if new.members == old.members:
                    return Rebalanced(processes, processes, len(homes), [], 0, 0, was_interrupted)
                size_bytes = _check_room(old, new)
                if total is not None:
                    total.size_bytes = size_bytes
                done = await _build(old, new, homes, told)
                told("switching", 0)
                begin_switch(new)  # while the old journals are locked: nobody starts in between
            # Files are closed before they are moved: what a store still writes, it writes by name.
            finish(folder, told)
            told("removing the old files", 0)
            clean_up(folder)
        except OSError as error:
            raise Unavailable(
                f"Expected to read and write the folder {folder}, but {error}", path=str(folder)
            ) from error
    return msgspec.structs.replace(done, finished_interrupted=was_interrupted)


async def _build(old: Layout, new: Layout, homes: dict[int, Home], told: Told) -> Rebalanced:
    """Builds and checks all members beside the old ones; a failure leaves nothing of them."""
    segment_bytes = load_config(new.folder, {}).segment_bytes
    members = [
        Member(next_folder(new.folder, each), {p: homes[p] for p in new.owned(each)}, segment_bytes)
        for each in range(1, new.members + 1)
    ]
    entries = rows = 0
    try:
        for member in members:
            make_folder(member.folder)
            told("copying", 0)
            expected = await build(member, told)
            told("checking", 0)
            await check(member, expected, told)
            _copy_quarantine(old, member.folder)
            entries += sum(each.entry_count for each in expected.values())
            rows += sum(each.row_count for each in expected.values())
        sync_tree(members[0].folder.parent)
    except BaseException:
        clean_up(new.folder)
        raise
    moved = [each for each in homes if old.owner(each) != new.owner(each)]
    return Rebalanced(new.members, old.members, len(homes), moved, entries, rows)


def _copy_quarantine(old: Layout, target: Path) -> None:
    """The new members know the commands that ended a process before."""
    files = [old.member_folder(each) / "quarantine.json" for each in range(1, old.members + 1)]
    suspects = {each.note.digest: each for file in files for each in load_suspects(file)}
    if suspects:
        content = msgspec.json.encode(list(suspects.values()))
        replace_file(target / "quarantine.json", msgspec.json.format(content))


@asynccontextmanager
async def _opened(layout: Layout) -> AsyncIterator[dict[int, Home]]:
    """The files of all members, locked, by the partitions that they have."""
    journals = layout.journals()
    if not any((each / TOPIC / SETTINGS).exists() for each in journals):
        raise _no_node(layout.folder)
    segment_bytes = load_config(layout.folder, {}).segment_bytes
    async with AsyncExitStack() as stack:
        opened: list[LocalJournal] = []
        for path in journals:
            journal = LocalJournal.open(path, segment_bytes=segment_bytes)
            stack.push_async_callback(journal.close)
            opened.append(journal)
            if layout.members > 1:  # a member that never started has nothing yet
                journal.create_topic(TOPIC, layout.partitions)
            has_others = path == journals[layout.owner(WITH_OTHER_TOPICS) - 1]
            if not has_others and list(journal.topics()) != [TOPIC]:
                raise InvalidState(
                    f"Expected only the topic {TOPIC} in {path}, but found"
                    f" {', '.join(journal.topics())}: others are where partition"
                    f" {WITH_OTHER_TOPICS} is",
                    path=str(path),
                )
        partitions = opened[0].topics()[TOPIC]
        members: list[Home] = []
        for path, journal in zip(journals, opened, strict=True):
            store, _ = Snapshots(path.parent / "state").open_store()
            stack.callback(store.close)
            members.append(Home(journal, store))
        yield {each: members[layout.owner(each) - 1] for each in range(1, partitions + 1)}


def _check_room(old: Layout, new: Layout) -> int:
    """Refuses where the disk cannot hold both divisions; how large the old one is."""
    folders = [old.member_folder(each) for each in range(1, old.members + 1)]
    used_bytes = sum(
        path.lstat().st_size
        for folder in folders
        for piece in PIECES
        for path in (folder / piece).rglob("*")
        if path.is_file()
    )
    wanted_bytes = used_bytes + new.members * REBALANCE_SPARE_BYTES
    free_bytes = shutil.disk_usage(new.folder).free
    if free_bytes < wanted_bytes:
        raise ResourceExhausted(
            f"Expected {wanted_bytes:,} free bytes on the disk of {new.folder}, for a copy of all"
            f" partitions beside the old files, but found {free_bytes:,}; free space and run it"
            " again",
            path=str(new.folder),
        )
    return used_bytes


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """One rebalance of a folder at a time."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        raise _no_node(folder) from None
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Unavailable(
                f"Expected no other rebalance of {folder}, but one is running; wait for its end",
                path=str(folder),
            ) from None
        yield
    finally:
        os.close(descriptor)


def _no_node(folder: Path) -> NotFound:
    return NotFound(
        f"Expected the data folder of a node in {folder}, but it has no log; check the path",
        path=str(folder),
    )
