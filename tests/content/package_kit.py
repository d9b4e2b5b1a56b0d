"""What the tests of packages share: a log that has blobs, trees, and packages of them."""

from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

from holdfast.blobs import Blobs
from holdfast.blobs.memory import MemoryBlobs
from holdfast.content.messages import Package, PackageAction
from holdfast.content.package.building import build_package, store_package
from holdfast.content.package.importing import ImportedPackage, import_package
from holdfast.content.package.reading import open_package
from holdfast.content.package.sources import ContentSource, RepositorySource
from holdfast.content.repository.api import DATA, Binary, Repository
from holdfast.content.repository.memory import MemoryRepository

Tree = Mapping[str, Mapping[str, Any]]
"""Properties by path; bytes under `data` are a binary."""


class BlobsOnly:
    """As much of a log as is needed to store packages."""

    def __init__(self, blobs: Blobs | None = None) -> None:
        self.blobs: Any = blobs or MemoryBlobs()

    async def missing(self, blobs: Sequence[str]) -> list[str]:
        return [name for name in blobs if self.blobs.head(name) is None]


def binary_of(content: bytes) -> Binary:
    return Binary(sha256(content).digest(), len(content))


def fill(repository: Repository, tree: Tree, offset: int = 0) -> None:
    with repository.change() as changes:
        for path, properties in tree.items():
            put = dict(properties)
            if isinstance(content := put.get(DATA), bytes):
                put[DATA] = binary_of(content)
                changes.store(put[DATA], (content,))
            changes.put(path, put, offset)
        changes.commit()


def repository_of(tree: Tree) -> MemoryRepository:
    repository = MemoryRepository()
    fill(repository, tree)
    return repository


def tree_of(repository: Repository, path: str = "/") -> dict[str, dict[str, Any]]:
    """All of it, with the content of its binaries."""
    return {
        node.path: {
            name: b"".join(repository.read(value)) if isinstance(value, Binary) else value
            for name, value in node.properties.items()
        }
        for node in repository.walk(path)
    }


def files_of(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


async def packed(
    source: ContentSource | Tree,
    paths: Sequence[str] = ("/",),
    deep_paths: Sequence[str] | None = None,
    log: Any = None,
    package_id: str = "package-1",
) -> Package:
    """The message of an ADD, all of which is stored; deep, unless it is said otherwise."""
    if isinstance(source, Mapping):
        source = RepositorySource(repository_of(source))
    deep = paths if deep_paths is None else deep_paths
    with build_package(PackageAction.ADD, paths, deep, source) as built:
        await store_package(built, log or BlobsOnly())
        return built.message("site", package_id)


def taken_in(
    repository: Repository, message: Package, blobs: Blobs, offset: int = 1
) -> ImportedPackage:
    with repository.change() as changes:
        done = import_package(changes, open_package(message, blobs), offset)
        changes.commit()
    return done
