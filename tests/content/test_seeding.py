"""A store as a blob: what one subscriber held is what another one begins with."""

from pathlib import Path
from random import Random

import pytest
from package_kit import fill, tree_of

from holdfast.blobs.folder import FolderBlobs
from holdfast.blobs.memory import MemoryBlobs
from holdfast.content.messages import SubscriberProgress
from holdfast.content.repository.memory import MemoryRepository
from holdfast.content.repository.sqlite import SqliteRepository
from holdfast.content.subscriber.ledger import StoreLedger, read_ledger
from holdfast.content.subscriber.seeding import seed, store_snapshot
from holdfast.errors import HoldfastError

NAME = "content/snapshots/one"
HELD = StoreLedger("old store", {"site": SubscriberProgress("site", 7, 5, 3, "stuck", 1, 2)})
NEW = StoreLedger("new store", {})
SHARED = b"s" * 70_000  # two nodes have it
TREE = {
    "/": {"title": "top"},
    "/a": {"n": 1, "data": SHARED, "other": b"plain"},
    "/a/b": {"data": SHARED, "names": ["x", "y"]},
    "/c": {"data": b""},
}


def test_what_was_held_is_there_with_its_offset(tmp_path: Path) -> None:
    store, blobs = SqliteRepository(tmp_path / "one.sqlite"), FolderBlobs(tmp_path / "blobs")
    fill(store, TREE, offset=4)
    size_bytes = store_snapshot(store, blobs, NAME, HELD)
    assert size_bytes < 1.1 * len(SHARED), "what two nodes have is there once"
    other = SqliteRepository(tmp_path / "two.sqlite")
    fill(other, {"/old": {"n": 9, "data": SHARED}})  # it goes, but for what is needed again
    seeded = seed(other, blobs, NAME, NEW)
    assert tree_of(other) == tree_of(store) and other.offset_of("/a") == 4
    assert seeded == read_ledger(other.get_note)
    assert seeded.progress == {"site": SubscriberProgress("site", 7, 5)}
    assert seeded.store_id == "new store"
    for each in (store, other):
        each.close()


@pytest.mark.parametrize("how", ["cut", "altered", "longer"])
def test_a_damaged_snapshot_changes_nothing(how: str) -> None:
    store, blobs, random = MemoryRepository(), MemoryBlobs(), Random(how)
    fill(store, TREE, offset=4)
    store_snapshot(store, blobs, NAME, HELD)
    whole = blobs.content[NAME]
    other = MemoryRepository()
    fill(other, {"/old": {"n": 9}})
    before = tree_of(other)
    places = [*range(200), *range(len(whole) - 200, len(whole))]
    for at in [*places, *(random.randrange(len(whole)) for _ in range(100))]:
        if how == "cut":
            blobs.content[NAME] = whole[:at]
        elif how == "altered":
            blobs.content[NAME] = whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :]
        else:
            blobs.content[NAME] = whole[:at] + b"?" + whole[at:]
        with pytest.raises(HoldfastError):
            seed(other, blobs, NAME, NEW)
        assert tree_of(other) == before and read_ledger(other.get_note) is None
    blobs.content[NAME] = whole
    seed(other, blobs, NAME, NEW)
    assert tree_of(other) == tree_of(store)
