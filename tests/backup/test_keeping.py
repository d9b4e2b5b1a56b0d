"""Generations of a target: listed, read back, pruned; and restores that are refused."""

import asyncio
import shutil
from pathlib import Path

import msgspec
import pytest

from holdfast.backup.keeping import prune, verify
from holdfast.backup.manifest import encode_manifest, hash_of
from holdfast.backup.restoring import restore
from holdfast.backup.stopped import cut_stopped
from holdfast.backup.taking import BackupProgress, BackupTaking
from holdfast.backup.target import BackupTarget, Working
from holdfast.blobs.memory import MemoryBlobs
from holdfast.errors import DataLoss, InvalidState, NotFound, Unavailable
from holdfast.folder_format import FORMAT
from holdfast.limits import BACKUP_WORKING_MS_MAX
from holdfast.node import LocalNode
from holdfast.pieces import end_of

from .working import CONFIG, Ledger, check_restored, work

NOW_MS = 1_700_000_000_000


def taken(folder: Path, target: BackupTarget) -> None:
    """A backup of a node that is stopped."""

    async def run() -> None:
        async with cut_stopped(folder, NOW_MS) as cut:
            taking = BackupTaking(cut, target, BackupProgress())
            try:
                end_of(taking.send())
                taking.finish()
            finally:
                taking.close()

    asyncio.run(run())


def worked(folder: Path, ledger: Ledger, name: str) -> None:
    """A node that runs for a while."""

    async def run() -> None:
        node = await LocalNode.open(folder, CONFIG)
        await work(node.gateway, ledger, [f"{name}-{n}" for n in range(30)], 2_000)
        await node.close()

    asyncio.run(run())


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, MemoryBlobs, list[Ledger]]:
    """A folder, three backups of it, and what it had acknowledged at each."""
    folder, blobs, ledger = tmp_path_factory.mktemp("made") / "data", MemoryBlobs(), Ledger()
    told: list[Ledger] = []
    for name in "abc":
        worked(folder, ledger, name)
        taken(folder, BackupTarget(blobs))
        told.append(ledger.copy())
    return folder, blobs, told


@pytest.fixture
def story(
    made: tuple[Path, MemoryBlobs, list[Ledger]], tmp_path: Path
) -> tuple[Path, MemoryBlobs, list[Ledger]]:
    """A copy of it, to be damaged."""
    folder, blobs, told = made
    shutil.copytree(folder, tmp_path / "data")
    copied = MemoryBlobs()
    copied.content = dict(blobs.content)
    return tmp_path / "data", copied, [each.copy() for each in told]


def put_back(blobs: MemoryBlobs, folder: Path, generation: int | None = None) -> None:
    target = BackupTarget(blobs)
    end_of(restore(target, target.generation(generation), folder, BackupProgress()))


def test_each_generation_is_what_the_node_was(
    story: tuple[Path, MemoryBlobs, list[Ledger]], tmp_path: Path
) -> None:
    _, blobs, told = story
    for number, ledger in enumerate(told, 1):
        put_back(blobs, tmp_path / f"restored-{number}", number)
        made = [tmp_path / f"restored-{number}", *(tmp_path / f"restored-{number}").rglob("*")]
        folders = [path for path in made if path.is_dir() and path.name != "live"]
        assert {path.stat().st_mode & 0o077 for path in folders} == {0}
        asyncio.run(check_restored(tmp_path / f"restored-{number}", ledger))


def test_prune_keeps_the_newest_whole_and_removes_what_only_others_need(
    story: tuple[Path, MemoryBlobs, list[Ledger]], tmp_path: Path
) -> None:
    _, blobs, told = story
    target = BackupTarget(blobs)
    before = len(target.pieces())
    done = prune(target, 1, "here", NOW_MS)
    assert (done.generations, done.kept) == ([1, 2], [3])
    assert 0 < done.pieces == before - len(target.pieces())
    (left,) = target.generations()
    assert left.manifest is not None
    needed = {piece for file in left.manifest.files for piece in file.pieces}
    assert set(target.pieces()) == needed
    assert end_of(verify(target, [left.manifest], BackupProgress())) == []
    put_back(blobs, tmp_path / "restored")
    asyncio.run(check_restored(tmp_path / "restored", told[2]))


def test_prune_and_backup_stay_out_of_each_others_way(
    story: tuple[Path, MemoryBlobs, list[Ledger]],
) -> None:
    folder, blobs, _ = story
    target = BackupTarget(blobs)
    pieces = target.pieces()
    with target.working("backup", "elsewhere", NOW_MS):
        done = prune(target, 1, "here", NOW_MS)
        assert done.is_put_off and target.pieces() == pieces
    with (
        target.working("prune", "elsewhere", NOW_MS),
        pytest.raises(Unavailable, match="A prune is removing backups"),
    ):
        taken(folder, target)
    assert prune(target, 1, "here", NOW_MS).pieces > 0


def test_what_a_killed_backup_left_is_not_waited_for_longer_than_a_day(
    story: tuple[Path, MemoryBlobs, list[Ledger]],
) -> None:
    _, blobs, _ = story
    target = BackupTarget(blobs)
    left = msgspec.json.encode(Working("backup", "a machine that is gone", NOW_MS))
    blobs.content["working/backup-1.json"] = left
    assert prune(target, 1, "here", NOW_MS + BACKUP_WORKING_MS_MAX).is_put_off
    assert not prune(target, 1, "here", NOW_MS + BACKUP_WORKING_MS_MAX + 1).is_put_off


def test_a_damaged_or_missing_piece_is_found_and_nothing_is_restored(
    story: tuple[Path, MemoryBlobs, list[Ledger]], tmp_path: Path
) -> None:
    _, blobs, _ = story
    target = BackupTarget(blobs)
    manifest = target.generation()
    segment, table = (
        next(file for file in manifest.files if file.path.endswith(end))
        for end in (".segment", ".sst")
    )
    for file, is_there in ((segment, True), (table, False)):
        name = f"data/{file.pieces[-1][:2]}/{file.pieces[-1]}"
        good = blobs.content[name]
        if is_there:
            blobs.content[name] = bytes([good[0] ^ 1]) + good[1:]
        else:
            del blobs.content[name]
        (problem,) = end_of(verify(target, [manifest], BackupProgress()))
        assert file.path in problem.message and name in problem.message
        with pytest.raises(DataLoss, match=file.pieces[-1]):
            put_back(blobs, tmp_path / "restored")
        assert list((tmp_path / "restored").iterdir()) == []
        blobs.content[name] = good
    put_back(blobs, tmp_path / "restored")


def test_bytes_that_were_wrong_before_they_were_hashed_are_not_put_in_place(
    story: tuple[Path, MemoryBlobs, list[Ledger]], tmp_path: Path
) -> None:
    """A log whose frames do not match their checksums: the hash of the piece cannot tell."""
    _, blobs, _ = story
    target = BackupTarget(blobs)
    manifest = target.generation()
    files = list(manifest.files)
    at = next(n for n, file in enumerate(files) if file.path.endswith(".segment"))
    data = bytearray(target.piece(files[at].pieces[0], files[at]))
    data[len(data) // 2] ^= 1
    piece = hash_of(bytes(data))
    target.send(piece, bytes(data))
    files[at] = msgspec.structs.replace(files[at], pieces=[piece])
    target.add(msgspec.structs.replace(manifest, generation=9, files=files))
    with pytest.raises(DataLoss, match="segment"):
        put_back(blobs, tmp_path / "restored", 9)
    assert list((tmp_path / "restored").iterdir()) == []


def test_a_damaged_manifest_is_told_and_does_not_stop_the_next_backup(
    story: tuple[Path, MemoryBlobs, list[Ledger]], tmp_path: Path
) -> None:
    folder, blobs, told = story
    target = BackupTarget(blobs)
    newest = target.generations()[-1].name
    blobs.content[newest] = blobs.content[newest].replace(b'"partitions":2', b'"partitions":3')
    with pytest.raises(DataLoss, match="checksum"):
        target.generation()
    with pytest.raises(DataLoss, match="checksum"):
        prune(target, 1, "here", NOW_MS)
    put_back(blobs, tmp_path / "restored", 2)
    asyncio.run(check_restored(tmp_path / "restored", told[1]))
    taken(folder, target)
    assert target.generation().generation == 4
    assert prune(target, 1, "here", NOW_MS, damaged=True).kept == [4]


def test_a_backup_of_a_newer_program_is_refused_by_name_and_never_pruned(
    story: tuple[Path, MemoryBlobs, list[Ledger]],
) -> None:
    _, blobs, _ = story
    target = BackupTarget(blobs)
    found = target.generations()[-1]
    assert found.manifest is not None
    newer = msgspec.structs.replace(found.manifest, format=FORMAT + 1, program="9.4.0")
    blobs.content[found.name] = encode_manifest(newer)
    refusal = rf"written by holdfast 9\.4\.0 \(format {FORMAT + 1}\).*upgrade"
    with pytest.raises(InvalidState, match=refusal):
        target.generation()
    with pytest.raises(InvalidState, match="upgrade"):
        prune(target, 1, "here", NOW_MS, damaged=True)


def test_a_folder_with_anything_in_it_is_not_restored_into(
    story: tuple[Path, MemoryBlobs, list[Ledger]], tmp_path: Path
) -> None:
    folder, blobs, _ = story
    before = sorted(folder.iterdir())
    with pytest.raises(InvalidState, match="empty folder"):
        put_back(blobs, folder)
    assert sorted(folder.iterdir()) == before
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidState, match="is a file"):
        put_back(blobs, tmp_path / "file")
    with pytest.raises(NotFound, match="there are: 1, 2, 3"):
        put_back(blobs, tmp_path / "restored", 8)
    with pytest.raises(NotFound, match="no"):
        put_back(MemoryBlobs(), tmp_path / "restored")


def test_a_damaged_log_of_a_stopped_node_is_not_backed_up(
    story: tuple[Path, MemoryBlobs, list[Ledger]],
) -> None:
    folder, blobs, _ = story
    segment = sorted((folder / "journal" / "records").glob("*.segment"))[0]
    data = bytearray(segment.read_bytes())
    data[1_000] ^= 1
    segment.write_bytes(bytes(data))
    with pytest.raises(DataLoss, match=segment.name):
        taken(folder, BackupTarget(blobs))
    assert BackupTarget(blobs).generation().generation == 3


def test_a_member_of_a_cluster_is_told_to_make_tables_instead(tmp_path: Path) -> None:
    (tmp_path / "journal").mkdir()
    (tmp_path / "cluster.json").write_text('{"cluster":"c","member":"m"}')
    with pytest.raises(InvalidState, match="--as-of-cut latest"):
        taken(tmp_path, BackupTarget(MemoryBlobs()))
    (tmp_path / "journal").rmdir()
    with pytest.raises(InvalidState, match="Kafka"):
        taken(tmp_path, BackupTarget(MemoryBlobs()))
    with pytest.raises(NotFound, match="no log"):
        taken(tmp_path / "nothing", BackupTarget(MemoryBlobs()))
