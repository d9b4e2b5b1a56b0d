"""Content as plain files: what others see of it, what is refused, and that nothing leaves it."""

import errno
import hashlib
import os
import shutil
import stat
from datetime import UTC, datetime
from pathlib import Path

import pytest

from holdfast.content.repository import DATA, EXECUTABLE, MODIFIED, Binary, ChangeSet
from holdfast.content.repository.directory import DirectoryRepository, syncing
from holdfast.content.repository.directory.index import TreeIndex
from holdfast.content.repository.directory.tree import FileTree
from holdfast.errors import InvalidArgument, InvalidState, ResourceExhausted, Unavailable

Files = dict[str, bytes | None]  # None is a folder


def opened(tmp_path: Path, grace_ms: int = 0) -> DirectoryRepository:
    return DirectoryRepository(tmp_path / "www", grace_ms=grace_ms)


def put_file(changes: ChangeSet, path: str, content: bytes, **properties: object) -> Binary:
    binary = Binary(hashlib.sha256(content).digest(), len(content))
    changes.store(binary, [content])
    changes.put(path, {DATA: binary, **properties})  # type: ignore[dict-item]
    return binary


def write(repository: DirectoryRepository, files: Files, *deleted: str) -> None:
    with repository.change() as changes:
        for path in deleted:
            changes.delete(path)
        for path, content in files.items():
            if content is None:
                changes.put(path, {})
            else:
                put_file(changes, path, content)
        changes.commit()


def seen(folder: Path) -> Files:
    """What is in a folder, without following links in it."""
    found: Files = {}
    for path in sorted(folder.rglob("*")):
        name = "/" + path.relative_to(folder).as_posix()
        assert not path.is_symlink()
        found[name] = None if path.is_dir() else path.read_bytes()
    return found


def expected(repository: DirectoryRepository) -> Files:
    """What has to be in the folder."""
    found: Files = {}
    for path, properties in repository.walk("/"):
        binary = properties.get(DATA)
        if path != "/":
            is_file = isinstance(binary, Binary)
            found[path] = b"".join(repository.read(binary)) if is_file else None  # type: ignore[arg-type]
    return found


def test_nodes_are_files_and_folders(tmp_path: Path) -> None:
    repository = opened(tmp_path)
    write(repository, {"/index.html": b"<p>", "/css/site.css": b"p {}", "/empty": None})
    assert seen(tmp_path / "www") == {
        "/index.html": b"<p>", "/css": None, "/css/site.css": b"p {}", "/empty": None
    }  # fmt: skip
    assert expected(repository) == seen(tmp_path / "www")
    assert {path.name for path in tmp_path.iterdir()} == {"www", ".www.holdfast"}
    assert (tmp_path / "www").readlink() == Path(".www.holdfast/b")
    repository.close()


def test_a_file_keeps_its_time_and_whether_it_is_executable(tmp_path: Path) -> None:
    repository = opened(tmp_path)
    when = datetime(2020, 5, 17, 12, 30, 1, 500_000, tzinfo=UTC)
    with repository.change() as changes:
        put_file(changes, "/run.sh", b"#!", executable=True, modified=when)
        put_file(changes, "/same.txt", b"#!")
        put_file(changes, "/again.txt", b"#!", modified=when, title="no matter")
        changes.commit()
    run, same, again = (tmp_path / "www" / name for name in ("run.sh", "same.txt", "again.txt"))
    assert stat.S_IMODE(run.stat().st_mode) == 0o555 and run.stat().st_mtime == when.timestamp()
    assert stat.S_IMODE(same.stat().st_mode) == 0o444 and same.stat().st_mtime > when.timestamp()
    assert stat.S_IMODE(again.stat().st_mode) == 0o444 and again.stat().st_mtime == when.timestamp()
    with repository.change() as changes:
        binary = Binary(hashlib.sha256(b"#!").digest(), 2)
        changes.put("/run.sh", {DATA: binary, EXECUTABLE: False, MODIFIED: when})
        changes.commit()
    assert stat.S_IMODE(run.stat().st_mode) == 0o444  # and not in the tree that readers may hold
    assert stat.S_IMODE((tmp_path / ".www.holdfast/b/run.sh").stat().st_mode) == 0o555
    repository.close()


@pytest.mark.parametrize("reopened", [False, True])
def test_every_change_of_kind_reaches_both_trees(tmp_path: Path, reopened: bool) -> None:
    steps: list[tuple[Files, list[str]]] = [
        ({"/a": b"file", "/b/c/d": b"deep", "/b/c/e": b"e"}, []),
        ({"/a/x": b"folder now"}, ["/a"]),
        ({"/b": b"file now"}, ["/b"]),
        ({"/a": None}, ["/a/x"]),
        ({"/a": b"again"}, []),
        ({}, ["/b"]),
        ({"/b/c/d": b"deep again", "/é/ü": b"1"}, ["/a"]),
        ({}, ["/"]),
        ({"/a": b"last"}, []),
        ({}, []),
    ]
    repository = opened(tmp_path)
    for files, deleted in steps:
        write(repository, files, *deleted)
        assert seen(tmp_path / "www") == expected(repository)
        if reopened:
            repository.close()
            repository = opened(tmp_path)
    assert seen(tmp_path / "www") == {"/a": b"last"}
    repository.close()


def test_all_of_it_is_synced_before_the_link_is_swapped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The files and their folders, then the index, then the link, then its name."""
    repository = opened(tmp_path)
    write(repository, {"/a/x": b"0"})
    done: list[str] = []
    private = str(tmp_path / ".www.holdfast")
    fsync, rename = os.fsync, os.rename

    def synced(file: int) -> None:
        done.append(str(Path(f"/proc/self/fd/{file}").readlink()).removeprefix(private))
        fsync(file)

    def renamed(old: object, new: object, **named: int) -> None:
        done.append(f"-> {Path(str(new)).name}")
        rename(old, new, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "rename", renamed)
    committed = TreeIndex.commit
    monkeypatch.setattr(
        TreeIndex, "commit", lambda index: (done.append("commit"), committed(index))[1]
    )
    write(repository, {"/a/b/file": b"content"})
    body = hashlib.sha256(b"content").hexdigest()
    assert done[:3] == [f"-> {body}", "/bodies", f"-> {body}"]  # its folder was not there yet
    assert set(done[3:-3]) == {f"/bodies/{body[:2]}/{body}", f"/bodies/{body[:2]}", *(
        f"/a{path}" for path in ("", "/a", "/a/b"))}  # fmt: skip
    assert done[-3:] == ["commit", "-> www", str(tmp_path)]
    calls: list[int] = []
    monkeypatch.setattr(syncing, "_sync_disk", calls.append)
    done.clear()
    write(repository, {f"/many/{number}": b"%d" % number for number in range(100)})
    assert len(calls) == 1
    assert {each for each in done if each[0] == "/"} == {"/bodies", str(tmp_path)}
    assert done[-3:] == ["commit", "-> www", str(tmp_path)]
    repository.close()


def test_others_may_read_the_files_and_nothing_else(tmp_path: Path) -> None:
    repository = opened(tmp_path)
    write(repository, {"/a/x": b"0"})
    private = tmp_path / ".www.holdfast"
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) & 0o005 for path in private.iterdir()}
    assert modes == {"a": 5, "b": 5, "bodies": 0, "incoming": 0, "indexes": 0, "lock": 0}
    repository.close()


def test_the_tree_that_readers_have_resolved_is_not_changed_by_the_next_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept: list[float] = []
    monkeypatch.setattr("holdfast.content.repository.directory.repository.time.sleep", slept.append)
    repository = opened(tmp_path, grace_ms=100_000)
    write(repository, {"/a": b"1", "/b": b"1"})
    assert slept == [0]  # nobody has seen the other tree
    resolved = (tmp_path / "www").resolve()
    inodes = {path: path.stat().st_ino for path in resolved.rglob("*")}
    assert 99_000 < repository.commit_delay_ms() <= 100_000
    write(repository, {"/a": b"2", "/c": b"2"}, "/b")
    assert 99 < slept[1] <= 100
    assert seen(resolved) == {"/a": b"1", "/b": b"1"}
    assert {path: path.stat().st_ino for path in resolved.rglob("*")} == inodes
    assert seen(tmp_path / "www") == {"/a": b"2", "/c": b"2"}
    repository.close()
    repository = opened(tmp_path, grace_ms=100_000)  # another process does not know when it was
    assert 90_000 < repository.commit_delay_ms() <= 100_000
    os.utime(tmp_path / "www", (2e9, 2e9), follow_symlinks=False)  # by a clock that was wrong
    assert repository.commit_delay_ms() == 100_000
    os.utime(tmp_path / "www", (1e9, 1e9), follow_symlinks=False)
    assert repository.commit_delay_ms() == 0
    repository.close()


@pytest.mark.parametrize("path", ["/a/b", "/a/b/c/d"])
def test_a_node_that_is_a_file_and_has_children_is_refused(tmp_path: Path, path: str) -> None:
    repository = opened(tmp_path)
    write(repository, {"/a": b"file", "/c/d": b""})
    with pytest.raises(InvalidState, match="/a has the binary"):
        write(repository, {path: None, "/x": b"new"})
    with pytest.raises(InvalidState, match="/c has the binary"):
        write(repository, {"/c": b"file"})
    with pytest.raises(InvalidState, match="/ has the binary"):
        write(repository, {"/": b"file"})
    assert (
        expected(repository) == seen(tmp_path / "www") == {"/a": b"file", "/c": None, "/c/d": b""}
    )
    bodies = [each for each in (tmp_path / ".www.holdfast/bodies").rglob("*") if each.is_file()]
    assert len(bodies) == 2
    repository.close()


@pytest.mark.parametrize("what", ["folder", "file", "link", "dangling"])
def test_what_is_there_already_is_left_alone(tmp_path: Path, what: str) -> None:
    www = tmp_path / "www"
    if what == "folder":
        www.mkdir()
        (www / "mine").write_text("mine")
    elif what == "file":
        www.write_text("mine")
    else:
        www.symlink_to("elsewhere")
        if what == "link":
            (tmp_path / "elsewhere").mkdir()
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(InvalidState, match=str(www)):
        opened(tmp_path)
    assert sorted(tmp_path.rglob("*")) == before


def test_an_empty_folder_is_taken_and_missing_ones_are_made(tmp_path: Path) -> None:
    (tmp_path / "www").mkdir()
    repository = opened(tmp_path)
    write(repository, {"/a": b"1"})
    assert seen(tmp_path / "www") == {"/a": b"1"}
    repository.close()
    DirectoryRepository(tmp_path / "x" / "y" / "www").close()
    assert seen(tmp_path / "x" / "y" / "www") == {}


def test_a_link_that_is_gone_is_told(tmp_path: Path) -> None:
    repository = opened(tmp_path)
    write(repository, {"/a": b"1"})
    repository.close()
    (tmp_path / "www").unlink()
    with pytest.raises(InvalidState, match="and with it which tree"):
        opened(tmp_path)


def test_one_process_changes_it_and_others_read(tmp_path: Path) -> None:
    one, two = opened(tmp_path), opened(tmp_path)
    for number in range(4):
        write(one, {"/a": b"%d" % number})
        assert expected(two) == {"/a": b"%d" % number}
    with pytest.raises(InvalidState, match="Another process changes"):
        two.change()
    one.close()
    write(two, {"/b": b""})
    assert seen(tmp_path / "www") == {"/a": b"3", "/b": b""}
    two.close()


def test_names_that_differ_in_case_only_are_refused_where_the_disk_mixes_them_up(
    tmp_path: Path,
) -> None:
    repository = DirectoryRepository(tmp_path / "www", grace_ms=0, folds_case=True)
    write(repository, {"/Pages/Home": b"1", "/pages.html": b""})
    for files in ({"/pages/x": b""}, {"/Pages/HOME": b""}, {"/new/ß": b"", "/new/SS": b""}):
        with pytest.raises(InvalidState, match="upper from lower case"):
            write(repository, files)
    write(repository, {"/Pages/home": b"2"}, "/Pages/Home")
    assert seen(tmp_path / "www")["/Pages/home"] == b"2"
    repository.close()
    repository = opened(tmp_path)  # this disk tells them apart
    write(repository, {"/Pages/HOME": b""})
    assert len(seen(tmp_path / "www")) == 4
    repository.close()


def test_a_name_that_is_too_long_for_the_disk_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "pathconf", lambda *_: 143)
    repository = opened(tmp_path)
    write(repository, {"/" + "x" * 143: b""})
    with pytest.raises(InvalidArgument, match="143 bytes"):
        write(repository, {"/" + "é" * 72: b""})
    repository.close()


def test_the_longest_paths_are_written(tmp_path: Path) -> None:
    repository = opened(tmp_path)
    deep, long = "/x" * 100, "/" + "/".join(["y" * 255] * 7)
    write(repository, {deep: b"deep", long: b"long"})
    write(repository, {"/z": b""})
    assert len(seen_by_walk(tmp_path / "www")) == 100 + 7 + 1
    write(repository, {}, "/x", long)
    assert len(seen_by_walk(tmp_path / "www")) == 6 + 1
    repository.close()


def seen_by_walk(folder: Path) -> list[str]:
    found: list[str] = []
    for _, folders, files, _ in os.fwalk(folder.resolve()):
        found += folders + files
    return found


# --- nothing leaves the tree ----------------------------------------------------------------------


def test_a_link_inside_the_tree_is_never_followed(tmp_path: Path) -> None:
    repository = opened(tmp_path)
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "passwd").write_text("theirs")
    files: Files = {"/etc/passwd": b"1", "/etc/x/y": b"1", "/f": b"1"}
    for number in range(3):
        for side in "ab":
            tree = tmp_path / ".www.holdfast" / side
            for name in ("etc", "f", "g"):
                path = tree / name
                if path.is_dir() and not path.is_symlink():
                    shutil.rmtree(path)
                else:
                    path.unlink(missing_ok=True)
            (tree / "etc").symlink_to(outside)
            (tree / "f").symlink_to(outside / "passwd")
            (tree / "g").symlink_to(outside / "new")
        write(repository, dict.fromkeys(files, b"%d" % number) | {"/g": b""}, "/etc/x")
        (tmp_path / "www" / "etc").resolve().relative_to(tmp_path / ".www.holdfast")
        assert seen(tmp_path / "www") == expected(repository)
    assert seen(outside) == {"/passwd": b"theirs"}
    repository.close()


def test_what_others_put_into_the_tree_does_not_stop_it(tmp_path: Path) -> None:
    repository = opened(tmp_path)
    for number in range(4):
        write(repository, {"/a/b": b"%d" % number})
        (tmp_path / "www" / "a" / "foreign").write_text("theirs")
    write(repository, {"/a": b"file"}, "/a")
    assert seen(tmp_path / "www") == {"/a": b"file"}
    repository.close()


def test_a_file_that_somebody_wrote_into_is_no_longer_its_binary(tmp_path: Path) -> None:
    repository = opened(tmp_path)
    write(repository, {"/a": b"content"})
    binary = Binary(hashlib.sha256(b"content").digest(), 7)
    path = tmp_path / "www" / "a"
    path.chmod(0o644)
    path.write_bytes(b"edited!")
    assert not repository.has(binary)
    write(repository, {"/b": b"content"})
    assert repository.has(binary) and (tmp_path / "www" / "b").read_bytes() == b"content"
    write(repository, {"/a": b"content"})
    assert seen(tmp_path / "www") == {"/a": b"content", "/b": b"content"}
    repository.close()


# --- what fails -----------------------------------------------------------------------------------


def test_a_disk_without_links_gets_copies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def link(*_: object, **__: object) -> None:
        raise OSError(errno.EMLINK, "Too many links")

    monkeypatch.setattr(os, "link", link)
    repository = opened(tmp_path)
    when = datetime(2020, 5, 17, tzinfo=UTC)
    with repository.change() as changes:
        put_file(changes, "/a", b"1", executable=True, modified=when)
        changes.commit()
    write(repository, {"/b": b"1"})
    found = (tmp_path / "www" / "a").stat()
    assert seen(tmp_path / "www") == {"/a": b"1", "/b": b"1"}
    assert stat.S_IMODE(found.st_mode) == 0o555 and found.st_mtime == when.timestamp()
    repository.close()


@pytest.mark.parametrize("step", ["link", "mkdir", "rename", "symlink", "fsync", "open"])
def test_a_disk_that_fails_changes_nothing_and_the_next_commit_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    repository = opened(tmp_path)
    write(repository, {"/a": b"1", "/b/c": b"1"})
    before, real, left = seen(tmp_path / "www"), getattr(os, step), [3]

    def failing(*arguments: object, **named: object) -> object:
        left[0] -= 1
        if left[0] < 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(*arguments, **named)

    for allowed in range(6):
        left[0] = allowed
        monkeypatch.setattr(os, step, failing)
        try:
            write(repository, {"/a": b"2", "/d/e": b"2", "/d/f/g": b"3"}, "/b")
        except ResourceExhausted as error:
            monkeypatch.undo()
            assert "make room on the disk" in error.message and error.retry_after_ms > 0
            assert seen(tmp_path / "www") == expected(repository) == before
        else:
            break
        finally:
            monkeypatch.undo()
    else:
        write(repository, {"/a": b"2", "/d/e": b"2", "/d/f/g": b"3"}, "/b")
    assert allowed > 0
    write(repository, {"/z": b""})
    assert seen(tmp_path / "www") == expected(repository)
    assert seen(tmp_path / "www")["/a"] == b"2"
    repository.close()


def test_a_folder_in_the_place_of_the_link_is_told(tmp_path: Path) -> None:
    repository = opened(tmp_path)
    write(repository, {"/a": b"1"})
    (tmp_path / "www").unlink()
    (tmp_path / "www").mkdir()
    (tmp_path / "www" / "mine").write_text("mine")
    with pytest.raises(Unavailable, match="put the new files in place"):
        write(repository, {"/a": b"2"})
    assert (tmp_path / "www" / "mine").read_text() == "mine"
    repository.close()


# --- what is done again, and what is not ----------------------------------------------------------


def test_the_other_tree_is_made_anew_only_after_a_crash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wiped: list[Path] = []
    wipe = FileTree.wipe
    monkeypatch.setattr(FileTree, "wipe", lambda tree: (wiped.append(tmp_path), wipe(tree))[1])
    repository = opened(tmp_path)
    for number in range(3):
        write(repository, {f"/{number}": b""})
    assert len(wiped) == 1
    repository.close()
    repository = opened(tmp_path)
    write(repository, {"/a": b""})
    assert len(wiped) == 1
    repository._places.unlock()  # as if the process had died
    repository = opened(tmp_path)
    write(repository, {"/b": b""})
    assert len(wiped) == 2
    repository.close()


def test_files_that_neither_tree_needs_are_removed(tmp_path: Path) -> None:
    repository = opened(tmp_path)
    bodies = tmp_path / ".www.holdfast" / "bodies"

    def count() -> int:
        return sum(path.is_file() for path in bodies.rglob("*"))

    for number in range(6):
        write(repository, {"/a": b"%d" % number, "/same": b"same"})
        assert count() <= 3
    write(repository, {}, "/")
    write(repository, {})
    assert count() == 0 and seen(tmp_path / "www") == {}
    (bodies / "ab").mkdir(exist_ok=True)
    (bodies / "ab" / ("ab" * 32)).write_text("left by a process that was killed")
    repository._places.unlock()
    repository = opened(tmp_path)
    write(repository, {"/b": b"1"})
    assert count() == 1
    repository.close()


def test_a_copied_store_has_content_and_notes(tmp_path: Path) -> None:
    repository = opened(tmp_path)
    with repository.change() as changes:
        put_file(changes, "/a", b"1")
        changes.note("offset", b"7")
        changes.commit()
    repository.close()
    clone = tmp_path / "clone"
    clone.mkdir()
    for name in (".www.holdfast", "www"):
        if name == "www":
            (clone / name).symlink_to((tmp_path / name).readlink())
        else:
            shutil.copytree(tmp_path / name, clone / name)
    repository = opened(clone)
    assert repository.get_note("offset") == b"7" and expected(repository) == {"/a": b"1"}
    write(repository, {"/b": b"2"})
    write(repository, {"/c": b"3"})
    assert seen(clone / "www") == {"/a": b"1", "/b": b"2", "/c": b"3"}
    assert seen(tmp_path / "www") == {"/a": b"1"}
    repository.close()
