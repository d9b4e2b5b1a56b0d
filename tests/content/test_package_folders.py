"""Packages straight from a folder: what is published, what is not, and why."""

import asyncio
import contextlib
import os
import socket
import unicodedata
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from package_kit import BlobsOnly, packed, taken_in, tree_of

from holdfast.blobs.memory import MemoryBlobs
from holdfast.content.messages import PackageAction
from holdfast.content.package import folder as folder_room
from holdfast.content.package.building import build_package, store_package
from holdfast.content.package.folder import FolderSource
from holdfast.content.repository.memory import MemoryRepository
from holdfast.errors import InvalidArgument, InvalidState, NotFound
from holdfast.limits import (
    CONTENT_BINARY_BYTES_MIN,
    CONTENT_DEPTH_MAX,
    CONTENT_UPLOAD_ATTEMPTS_MAX,
)


@pytest.fixture
def site(tmp_path: Path) -> Path:
    site = tmp_path / "site"
    (site / "pages" / "home").mkdir(parents=True)
    (site / "empty").mkdir()
    (site / "pages" / "home" / "index.html").write_bytes(b"<h1>Home</h1>")
    (site / "pages" / "run.sh").write_bytes(b"#!/bin/sh\n")
    (site / "pages" / "run.sh").chmod(0o755)
    (site / "pages-old").write_bytes(b"")
    (site / "model.bin").write_bytes(b"m" * CONTENT_BINARY_BYTES_MIN)
    for path in site.rglob("*"):
        os.utime(path, ns=(10**18, 10**18))
    return site


WHEN = datetime(2001, 9, 9, 1, 46, 40, tzinfo=UTC)


def arrived(site: Path, *paths: str, deep: bool = True, skip_links: bool = False) -> dict:
    log, repository = BlobsOnly(), MemoryRepository()
    source = FolderSource(site, skip_links=skip_links)
    message = asyncio.run(packed(source, paths or ["/"], None if deep else [], log))
    taken_in(repository, message, log.blobs)
    return tree_of(repository)


def test_files_arrive_with_what_belongs_to_them(site: Path) -> None:
    assert arrived(site) == {
        "/": {},
        "/empty": {},
        "/model.bin": {"data": b"m" * CONTENT_BINARY_BYTES_MIN, "modified": WHEN},
        "/pages": {},
        "/pages/home": {},
        "/pages/home/index.html": {"data": b"<h1>Home</h1>", "modified": WHEN},
        "/pages/run.sh": {"data": b"#!/bin/sh\n", "executable": True, "modified": WHEN},
        "/pages-old": {"data": b"", "modified": WHEN},
    }


def test_one_file_arrives_alone_and_a_folder_without_what_is_in_it(site: Path) -> None:
    assert list(arrived(site, "/pages/run.sh", deep=False)) == ["/", "/pages", "/pages/run.sh"]
    assert list(arrived(site, "/pages", deep=False)) == ["/", "/pages"]


def test_the_folder_itself_may_be_a_link(site: Path, tmp_path: Path) -> None:
    (tmp_path / "current").symlink_to(site)
    assert arrived(tmp_path / "current") == arrived(site)


@pytest.mark.parametrize("path", ["/none", "/pages/none", "/none/none", "/model.bin/x"])
def test_a_path_that_is_not_there_is_named(site: Path, path: str) -> None:
    with pytest.raises((NotFound, InvalidState), match=path.split("/")[1]):
        arrived(site, path)


def _link(path: Path) -> None:
    path.symlink_to("/etc/passwd")


def _link_to_folder(path: Path) -> None:
    path.symlink_to("/etc")


def _pipe(path: Path) -> None:
    os.mkfifo(path)


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(os.path.relpath(path))


@pytest.mark.parametrize("make", [_link, _link_to_folder, _pipe, _socket])
def test_links_and_what_is_no_file_are_refused_or_skipped(
    site: Path, make: Callable[[Path], None]
) -> None:
    make(site / "pages" / "odd")
    for path in ("/", "/pages/odd"):
        with pytest.raises(InvalidArgument, match=r"pages/odd is (a link|no file)"):
            arrived(site, path)
    source = FolderSource(site, skip_links=True)
    asyncio.run(packed(source))
    assert source.skipped == [site / "pages" / "odd"]
    assert "/pages/odd" not in arrived(site, skip_links=True)


def test_nothing_is_reached_through_a_link_on_the_way(site: Path) -> None:
    (site / "etc").symlink_to("/etc")
    for skip_links in (False, True):
        with pytest.raises(InvalidState, match="etc cannot be read"):
            arrived(site, "/etc/passwd", skip_links=skip_links)


def test_names_are_published_in_one_normal_form(site: Path) -> None:
    split = unicodedata.normalize("NFD", "übung")
    (site / split).write_bytes(b"u")
    assert arrived(site)["/übung"]["data"] == b"u"
    assert arrived(site, "/übung")["/übung"]["data"] == b"u"
    (site / "übung").write_bytes(b"u")
    with pytest.raises(InvalidArgument, match="rename it"):
        arrived(site)


@pytest.mark.parametrize("name", [b"a\nb", b"a\xff", b"\x1b[2J"])
def test_names_that_cannot_be_paths_are_to_be_changed(site: Path, name: bytes) -> None:
    (site / os.fsdecode(name)).write_bytes(b"")
    with pytest.raises(InvalidArgument, match="rename it") as caught:
        arrived(site)
    assert caught.value.message.isprintable()


def test_folders_that_are_too_deep_are_named(site: Path) -> None:
    site.joinpath(*["d"] * (CONTENT_DEPTH_MAX + 1)).mkdir(parents=True)
    with pytest.raises(InvalidArgument, match="too deep"):
        arrived(site)


# --- files that somebody writes meanwhile -------------------------------------------------------


@pytest.mark.parametrize("name", ["model.bin", "pages/run.sh"])
def test_a_file_that_changes_while_it_is_read_is_noticed(
    site: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = os.read
    file = site / name

    def slow_read(descriptor: int, size_bytes: int) -> bytes:
        piece = read(descriptor, size_bytes)
        if piece and os.fstat(descriptor).st_ino == file.stat().st_ino:
            with file.open("r+b") as other:
                other.write(b"other")  # the same size, and another content
        return piece

    monkeypatch.setattr(folder_room.os, "read", slow_read)
    with pytest.raises(InvalidState, match=f"{name} changed while it was read"):
        arrived(site)


@pytest.mark.parametrize("change", ["content", "size", "replaced", "link", "gone"])
def test_a_large_file_that_changes_before_it_is_stored_is_noticed(site: Path, change: str) -> None:
    log, file = BlobsOnly(), site / "model.bin"
    built = build_package(PackageAction.ADD, ["/"], ["/"], FolderSource(site))
    content = b"n" * CONTENT_BINARY_BYTES_MIN
    if change == "content":
        status = file.stat()
        file.write_bytes(content)
        os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))  # it pretends to be the same
    elif change == "size":
        file.write_bytes(content + b"n")
    elif change == "gone":
        file.unlink()
    else:
        (site / "new").write_bytes(b"m" * CONTENT_BINARY_BYTES_MIN)
        file.unlink()
        if change == "link":
            file.symlink_to("new")
        else:
            (site / "new").rename(file)
    with built, pytest.raises(InvalidState, match=r"model\.bin"):
        asyncio.run(store_package(built, log))
    assert log.blobs.content == {}


class LosingBlobs(MemoryBlobs):
    """The member that had the beginning of an upload is lost, so many times."""

    def __init__(self, losses: int) -> None:
        super().__init__()
        self.losses = losses

    def upload(self, name: str) -> Any:
        if self.losses:
            self.losses -= 1
            raise NotFound("Expected an unfinished upload, but it is not known here")
        return super().upload(name)


@pytest.mark.parametrize("losses", [CONTENT_UPLOAD_ATTEMPTS_MAX - 1, CONTENT_UPLOAD_ATTEMPTS_MAX])
def test_an_upload_begins_anew_when_it_is_not_known_any_more(site: Path, losses: int) -> None:
    file = site / "model.bin"
    file.write_bytes(b"m" * CONTENT_BINARY_BYTES_MIN)
    log = BlobsOnly(LosingBlobs(losses))
    with build_package(PackageAction.ADD, ["/"], ["/"], FolderSource(site)) as built:
        if losses == CONTENT_UPLOAD_ATTEMPTS_MAX:
            with pytest.raises(NotFound):
                asyncio.run(store_package(built, log))
        else:
            asyncio.run(store_package(built, log))
            assert file.read_bytes() in log.blobs.content.values()


def open_below(folder: Path) -> list[str]:
    """What this process has open in a folder; other tests leave connections and threads behind."""
    targets: list[str] = []
    for descriptor in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # the one that lists them, or a thread's
            targets.append(str(descriptor.readlink()))
    return [each for each in targets if each.startswith(str(folder))]


def test_no_file_stays_open(site: Path) -> None:
    arrived(site)
    (site / "pages" / "odd").symlink_to("x")
    with pytest.raises(InvalidArgument):
        arrived(site)
    with pytest.raises(InvalidState):
        arrived(site / "none")
    assert open_below(site.parent) == []
