"""Packages: what is published is what is imported, in memory that does not grow with it."""

import asyncio
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from package_kit import BlobsOnly, binary_of, packed, repository_of, taken_in, tree_of

from holdfast.blobs import open_blobs, put
from holdfast.content import blobs as content_blobs
from holdfast.content.blobs import NotThereYet, binary_blob, package_blob
from holdfast.content.messages import Package, PackageAction, decode_package, encode
from holdfast.content.package.building import build_package
from holdfast.content.package.importing import ImportedPackage, import_package
from holdfast.content.package.reading import open_package
from holdfast.content.package.sources import RepositorySource
from holdfast.content.repository.memory import MemoryRepository
from holdfast.errors import InvalidArgument, NotFound, ResourceExhausted
from holdfast.limits import (
    CONTENT_BINARY_BYTES_MIN,
    CONTENT_BLOB_LOOKS_MAX,
    CONTENT_BLOCK_BYTES_MAX,
    CONTENT_INLINE_BYTES_MAX,
    CONTENT_PATHS_MAX,
)

NOW = datetime(2026, 11, 16, 9, 0, 0, 123_456, tzinfo=UTC)
SITE = {
    "/": {},
    "/pages": {"title": "Pages"},
    "/pages/home": {"title": "Home", "weight": -3, "ratio": 0.5, "is_new": True, "at": NOW,
                    "raw": b"\0\1", "tags": ["a", "b"], "none": [], "data": b"<h1>Home</h1>"},
    "/pages/home/inner": {},
    "/pages-old": {"data": b""},
    "/pages/ü": {"data": b"ue"},
}  # fmt: skip


def put_content(size_bytes: int, letter: bytes = b"x") -> bytes:
    return letter * size_bytes


def test_what_is_published_is_what_is_imported() -> None:
    message = asyncio.run(packed(SITE))
    assert message.content is not None
    assert message.blob is None
    repository = MemoryRepository()
    done = taken_in(repository, decode_package(encode(message)), BlobsOnly().blobs, offset=7)
    assert tree_of(repository) == SITE
    assert done == ImportedPackage(nodes=6, deleted=1, binary_bytes=15)
    assert repository.offset_of("/pages/home") == 7


def test_the_same_tree_is_the_same_package() -> None:
    first = asyncio.run(packed(SITE))
    repository = MemoryRepository()
    taken_in(repository, first, BlobsOnly().blobs)
    again = asyncio.run(packed(RepositorySource(repository)))
    assert (again.content, again.sha256) == (first.content, first.sha256)


VALUES = st.one_of(
    st.text(max_size=20), st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False),
    st.booleans(), st.binary(max_size=20),
    st.datetimes(timezones=st.just(UTC)),
)  # fmt: skip
PATHS = st.lists(st.sampled_from("abcü-."), min_size=1, max_size=3).map(
    lambda names: "/" + "/".join(name + "x" for name in names)
)
TREES = st.dictionaries(
    PATHS,
    st.dictionaries(st.text(min_size=1, max_size=5), VALUES | st.lists(VALUES, max_size=3)),
    max_size=6,
)


@given(TREES)
@settings(max_examples=100, deadline=None)
def test_any_tree_arrives_as_it_is(tree: dict) -> None:
    source = repository_of(tree)
    message = asyncio.run(packed(RepositorySource(source)))
    repository = MemoryRepository()
    taken_in(repository, message, BlobsOnly().blobs)
    assert tree_of(repository) == tree_of(source)


def test_a_deep_path_becomes_exactly_what_it_is_and_any_other_keeps_its_children() -> None:
    blobs = BlobsOnly().blobs
    there = {"/a": {"old": 1}, "/a/gone": {}, "/a/kept": {"old": 1}, "/b": {"old": 1}, "/b/x": {}}
    source = {"/a": {"new": 1}, "/a/kept": {"new": 1}, "/b": {"new": 1}, "/c": {}}
    repository = repository_of(there)
    taken_in(repository, asyncio.run(packed(source, ["/a", "/b"], ["/a"])), blobs)
    assert tree_of(repository) == {
        "/": {}, "/a": {"new": 1}, "/a/kept": {"new": 1}, "/b": {"new": 1}, "/b/x": {}
    }  # fmt: skip


def test_a_path_below_a_deep_one_is_published_once() -> None:
    message = asyncio.run(packed(SITE, ["/pages/home", "/pages", "/pages-old"], ["/pages"]))
    assert message.paths == ["/pages", "/pages-old"]
    assert message.deep_paths == ["/pages"]


@pytest.mark.parametrize("action", [PackageAction.INVALIDATE, PackageAction.TEST])
def test_what_is_no_content_changes_none(action: PackageAction) -> None:
    repository = repository_of(SITE)
    message = build_package(action, ["/pages"]).message("site", "p")
    assert taken_in(repository, message, BlobsOnly().blobs) == ImportedPackage()
    assert tree_of(repository) == SITE


def test_a_deletion_takes_its_paths_with_all_below_them() -> None:
    repository = repository_of(SITE)
    message = build_package(PackageAction.DELETE, ["/pages", "/none"]).message("site", "p")
    assert message.content is None
    assert taken_in(repository, message, BlobsOnly().blobs) == ImportedPackage(deleted=2)
    assert list(tree_of(repository)) == ["/", "/pages-old"]


def test_large_binaries_are_blobs_that_are_stored_once() -> None:
    log = BlobsOnly()
    small, large = put_content(CONTENT_BINARY_BYTES_MIN - 1), put_content(CONTENT_BINARY_BYTES_MIN)
    tree = {"/": {}, "/a": {"data": small}, "/b": {"data": large}, "/c": {"data": large}}
    message = asyncio.run(packed(tree, log=log))
    assert message.binaries == [binary_blob(binary_of(large).sha256)]
    assert list(log.blobs.content) == message.binaries
    log.blobs.upload = None  # nothing is uploaded a second time
    assert asyncio.run(packed(tree, log=log)) == message
    repository = MemoryRepository()
    taken_in(repository, message, log.blobs)
    assert tree_of(repository) == tree


def test_a_large_package_is_a_blob_that_is_named_by_its_hash() -> None:
    log = BlobsOnly()
    each = put_content(CONTENT_BINARY_BYTES_MIN - 1)
    count = CONTENT_INLINE_BYTES_MAX // len(each) + 1
    tree = {"/": {}} | {f"/n{number:03}": {"data": each} for number in range(count)}
    message = asyncio.run(packed(tree, log=log))
    assert message.content is None
    assert message.blob == package_blob(message.sha256)
    assert len(log.blobs.content[message.blob]) == message.size_bytes
    package = open_package(message, log.blobs)
    assert package.nodes == count + 1
    for _ in range(2):  # it can be shared
        repository = MemoryRepository()
        taken_in(repository, message, log.blobs)
        assert tree_of(repository) == tree


def test_a_package_of_many_blocks_arrives_in_order() -> None:
    log = BlobsOnly()
    tree = {"/": {}} | {f"/n{number:05}": {"text": "t" * 100} for number in range(10_000)}
    message = asyncio.run(packed(tree, log=log))
    repository = MemoryRepository()
    taken_in(repository, message, log.blobs)
    assert tree_of(repository) == tree


# --- not there yet ------------------------------------------------------------------------------


@pytest.mark.parametrize("which", ["package", "binary"])
def test_a_blob_that_is_not_there_yet_is_no_failure_of_the_package(which: str) -> None:
    log, repository = BlobsOnly(), MemoryRepository()
    large = {"/": {}, "/a": {"data": put_content(CONTENT_BINARY_BYTES_MIN)}}
    many = {"/": {}} | {f"/n{number}": {"data": put_content(60_000)} for number in range(20)}
    message = asyncio.run(packed(large if which == "binary" else many, log=log))
    name, content = log.blobs.content.popitem()
    with pytest.raises(NotThereYet, match=name):
        taken_in(repository, message, log.blobs)
    assert tree_of(repository) == {"/": {}}
    put(log.blobs, name, (content,))
    taken_in(repository, message, log.blobs)
    assert len(tree_of(repository)) > 1


@pytest.mark.parametrize("comes_at", [2, None])
def test_it_is_looked_a_few_times_for_a_blob(comes_at: int | None, tmp_path, monkeypatch) -> None:
    log = BlobsOnly(open_blobs(str(tmp_path / "blobs")))
    tree = {"/": {}} | {f"/n{number}": {"data": put_content(60_000)} for number in range(20)}
    message = asyncio.run(packed(tree, log=log))
    blob = tmp_path / "blobs" / (message.blob or "")
    blob.rename(tmp_path / "later")
    pauses: list[float] = []

    def sleep(pause_s: float) -> None:
        pauses.append(pause_s)
        if len(pauses) == comes_at:
            (tmp_path / "later").rename(blob)

    monkeypatch.setattr(content_blobs.time, "sleep", sleep)
    if comes_at is None:
        with pytest.raises(NotThereYet):
            open_package(message, log.blobs)
        assert len(pauses) == CONTENT_BLOB_LOOKS_MAX - 1
        assert sum(pauses) <= 2
    else:
        assert open_package(message, log.blobs).nodes == 21
        assert len(pauses) == comes_at


# --- what cannot be published -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("paths", "deep_paths", "said"),
    [
        ([], [], "expected a path"),
        (["a"], [], "begin with a slash"),
        (["/a/../b"], [], "'..'"),
        (["/a", "/a"], [], "twice"),
        (["/a"], ["/b"], "among the paths"),
        (["/a"], ["/a", "/a"], "each once"),
        (["/x" * 101], [], "more than 100 parts"),
        ([f"/{number}" for number in range(CONTENT_PATHS_MAX + 1)], [], "split it"),
        ([f"/{number:03}{'x' * 200}{'/y' * 98}" for number in range(1_000)], [], "split it"),
    ],
)
def test_paths_that_cannot_be_published_are_named(paths, deep_paths, said) -> None:
    with pytest.raises(InvalidArgument, match=said):
        build_package(PackageAction.DELETE, paths, deep_paths)


def test_a_path_that_is_not_there_is_not_published() -> None:
    with pytest.raises(NotFound, match="/none"):
        asyncio.run(packed({"/a": {}}, ["/none"]))


def test_properties_that_are_too_long_are_refused_with_what_to_do() -> None:
    tree = {"/a": {"text": "x" * CONTENT_BLOCK_BYTES_MAX}}
    with pytest.raises(InvalidArgument, match=r"/a .*make the large ones binaries"):
        asyncio.run(packed(tree, ["/a"]))


def test_a_tree_that_is_too_large_is_to_be_split(monkeypatch) -> None:
    writing, building = "holdfast.content.package.writing", "holdfast.content.package.building"
    tree = {f"/a/{number}": {"data": put_content(CONTENT_BINARY_BYTES_MIN, bytes([number]))}
            for number in range(9)}  # fmt: skip
    for limit, most in (
        (f"{writing}.CONTENT_ENTRIES_MAX", 5),
        (f"{writing}.CONTENT_TOTAL_BYTES_MAX", 300_000),
        (f"{writing}._BLOCKS_BYTES_MAX", -1),
        (f"{building}.CONTENT_BINARIES_MAX", 4),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(limit, most)
            with pytest.raises(ResourceExhausted, match="split the tree"):
                asyncio.run(packed(tree, ["/a"]))


def test_an_import_of_several_packages_sees_those_before_it() -> None:
    """One commit of two packages: the second is deep, and takes away what the first put."""
    blobs, repository = BlobsOnly().blobs, MemoryRepository()
    first = asyncio.run(packed({"/a/x": {"data": b"1"}}, ["/a"]))
    second = asyncio.run(packed({"/a/y": {"data": b"1"}}, ["/a"]))
    with repository.change() as changes:
        for offset, message in enumerate((first, second)):
            import_package(changes, open_package(message, blobs), offset)
        changes.commit()
    assert tree_of(repository) == {"/": {}, "/a": {}, "/a/y": {"data": b"1"}}


def test_a_message_is_little_more_than_its_package() -> None:
    message = asyncio.run(packed({"/pages/home": {"data": b"x" * 8_000}}, ["/pages/home"], []))
    assert isinstance(message, Package)
    assert len(encode(message)) < 8_000 + 350
