"""A package that is imported late leaves the store as if it had been imported in its turn."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from model_store import ModelStore, with_properties
from package_kit import fill

from holdfast.blobs.memory import MemoryBlobs
from holdfast.content.messages import Package, PackageAction
from holdfast.content.package.building import build_package
from holdfast.content.package.importing import import_package
from holdfast.content.package.reading import open_package
from holdfast.content.package.sources import RepositorySource
from holdfast.content.repository.memory import MemoryRepository
from holdfast.content.subscriber.commands import after_retry
from holdfast.content.subscriber.failed import GuardedChanges, after_newer, failed_package
from holdfast.content.subscriber.ledger import StoreLedger

BLOBS = MemoryBlobs()
NAMES = st.lists(st.sampled_from("ab"), min_size=1, max_size=3)
PATHS = NAMES.map(lambda names: "".join(f"/{each}" for each in names))
ACTIONS = st.sampled_from(["delete", "shallow", "deep"])


def built(number: int, action: str, path: str, below: list[str]) -> Package:
    if action == "delete":
        package = build_package(PackageAction.DELETE, [path])
    else:
        source = MemoryRepository()
        nodes = [path, *(f"{path}/{each}" for each in below)]
        fill(source, {each: {"n": number} for each in nodes})
        deep = action == "deep"
        paths, deep_paths = ([path], [path]) if deep else (nodes, [])
        package = build_package(PackageAction.ADD, paths, deep_paths, RepositorySource(source))
    return package.message("site", f"package-{number}")


@settings(max_examples=300, deadline=None)
@given(
    st.lists(
        st.tuples(ACTIONS, PATHS, st.lists(st.sampled_from("ab"), unique=True), st.booleans()),
        min_size=2,
        max_size=9,
    ),
    st.randoms(use_true_random=False),
)
def test_late_imports_give_what_imports_in_order_give(steps: list[Any], random: Any) -> None:
    packages = {at: built(at, *step[:3]) for at, step in enumerate(steps)}
    store, ledger = MemoryRepository(), StoreLedger("store", {}, [])
    for offset, package in packages.items():
        if steps[offset][3]:
            ledger.failed.append(failed_package(offset, package))
            continue
        with store.change() as changes:
            import_package(changes, open_package(package, BLOBS), offset)
            changes.commit()
        ledger.failed[:] = after_newer(ledger.failed, offset, package)
    left = {each.offset for each in ledger.failed}
    while ledger.failed:
        failed = random.choice(ledger.failed)
        package = packages[failed.offset]
        with store.change() as changes:
            guarded = GuardedChanges(changes, store, failed.touched)
            import_package(guarded, open_package(package, BLOBS), failed.offset)
            changes.commit()
        ledger = after_retry(ledger, failed, package)
        left.discard(failed.offset)
        done = {at: each for at, each in packages.items() if at not in left}
        assert with_properties(store) == ModelStore(BLOBS).replay(done)
