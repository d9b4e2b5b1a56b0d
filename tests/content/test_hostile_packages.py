"""Hostile packages: each is refused by name, changes nothing, and costs little memory."""

import contextlib
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from hostile import Draft, hostile_packages
from hypothesis import example, given, settings
from hypothesis import strategies as st
from package_kit import fill, taken_in, tree_of

from holdfast.content.package.reading import open_package
from holdfast.content.repository.api import Repository
from holdfast.content.repository.memory import MemoryRepository
from holdfast.content.repository.opening import open_repository
from holdfast.errors import DataLoss, HoldfastError, InvalidArgument

THERE = {"/": {}, "/pages": {"old": True}, "/pages/a": {"data": b"old"}, "/other": {"data": b"x"}}
MEMORY_KIB_MAX = 64 * 1024
WRONG_BLOBS = (  # the packages are in order, and what they refer to is not
    "another blob", "a blob that", "a blob with more", "an empty blob", "binary in a blob says",
    "one of content/binaries/",
)  # fmt: skip


@pytest.fixture(params=["memory:", "content.sqlite", "www"])
def repository(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Repository]:
    root = tmp_path / "root"
    root.mkdir()
    in_memory = request.param == "memory:"
    repository = open_repository(request.param if in_memory else str(root / request.param))
    yield repository
    repository.close()


def test_every_hostile_package_is_refused_and_nothing_is_changed(
    repository: Repository, tmp_path: Path
) -> None:
    fill(repository, THERE)
    kinds: Counter[type] = Counter()
    for each in hostile_packages():
        with pytest.raises((InvalidArgument, DataLoss)) as caught:
            taken_in(repository, each.message, each.blobs)
            pytest.fail(f"{each.name} was imported")
        kinds[type(caught.value)] += 1
        assert caught.value.fields["package_id"] == "hostile-1", each.name
        assert "hostile-1" in caught.value.message, each.name
        assert len(caught.value.message) < 1_000, each.name
    assert kinds[InvalidArgument] > 1_000
    assert kinds[DataLoss] > 400
    assert tree_of(repository) == THERE
    assert [path.name for path in tmp_path.iterdir()] == ["root"], "something is outside"


def test_they_are_refused_before_a_repository_is_touched() -> None:
    """Whatever comes with its message is refused when it is opened, and no store sees it."""
    for each in hostile_packages():
        if each.name.startswith(WRONG_BLOBS):
            continue
        with pytest.raises(HoldfastError):
            package = open_package(each.message, each.blobs)
            assert each.message.content is None, f"{each.name} was opened"
            for entry in package.entries():
                for body in entry.bodies:
                    list(body.pieces or ())
            pytest.fail(f"{each.name} was read")


def test_they_take_little_memory() -> None:
    done = subprocess.run(
        [sys.executable, Path(__file__).with_name("hostile.py")],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    total, refused, grown_kib = map(int, done.stdout.split())
    assert total == refused > 1_000
    assert grown_kib <= MEMORY_KIB_MAX


def test_the_draft_that_they_are_made_from_is_in_order() -> None:
    """Otherwise they would be refused for another reason than the one they are made for."""
    for stored in (False, True):
        draft, repository = Draft(), MemoryRepository()
        taken_in(repository, draft.as_blob() if stored else draft.signed(), draft.blobs)
        assert list(tree_of(repository)) == ["/", "/pages", "/pages/a", "/pages/b"]


@pytest.mark.parametrize("planted", ["parent", "file", "tree"])
def test_a_link_that_somebody_planted_in_the_folder_leads_nowhere(
    planted: str, tmp_path: Path
) -> None:
    """The files that a subscriber keeps are changed by hand: a link to what is not its own."""
    outside = tmp_path / "outside"
    outside.mkdir()
    for name in ("a", "b"):
        (outside / name).write_bytes(b"mine")
    www = tmp_path / "root" / "www"
    www.parent.mkdir()
    repository = open_repository(str(www))
    fill(repository, THERE)
    where = {"parent": www / "pages", "file": www / "pages" / "a", "tree": www / "other"}[planted]
    shown = www.resolve()  # one of two trees, of which the other one is changed next
    for tree in shown.parents[1].glob(f"*/{shown.name}"):
        place = tree / where.relative_to(www)
        if place.is_dir():
            shutil.rmtree(place)
        place.unlink(missing_ok=True)
        if place.parent.is_dir():
            place.symlink_to(outside / "a" if planted == "file" else outside)
            assert place.exists()
    draft = Draft()
    with contextlib.suppress(HoldfastError):  # refused or put right, as the store likes
        taken_in(repository, draft.signed(), draft.blobs)
    repository.close()
    assert {path.name: path.read_bytes() for path in outside.iterdir()} == {
        "a": b"mine", "b": b"mine",
    }  # fmt: skip


@given(st.data())
@example(None)
@settings(max_examples=300, deadline=None)
def test_bytes_of_any_kind_are_refused_or_are_a_package(data: st.DataObject | None) -> None:
    """Their maker signs them, too: only what they say is left to be checked."""
    draft, repository = Draft(), MemoryRepository()
    content = draft.content()
    if data is not None:
        for _ in range(data.draw(st.integers(1, 3))):
            at = data.draw(st.integers(0, len(content)))
            end = min(at + data.draw(st.integers(0, 8)), len(content))
            content = content[:at] + data.draw(st.binary(max_size=8)) + content[end:]
    message = draft.signed(content.ljust(12, b"\0"))
    try:
        taken_in(repository, message, draft.blobs)
    except (InvalidArgument, DataLoss) as error:
        assert error.fields["package_id"] == "hostile-1"
        assert tree_of(repository) == {"/": {}}
    for path in tree_of(repository):
        assert path == "/" or path == "/pages" or path.startswith("/pages/")
