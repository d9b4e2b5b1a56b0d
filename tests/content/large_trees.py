"""Publishes a large tree from a folder and imports it; prints what memory that took, in KiB.

python large_trees.py FOLDER FILES BINARY_MB STORE
"""

import asyncio
import resource
import sys
from pathlib import Path

from package_kit import BlobsOnly, taken_in

from holdfast.blobs import open_blobs
from holdfast.content.messages import PackageAction
from holdfast.content.package.building import build_package, store_package
from holdfast.content.package.folder import FolderSource
from holdfast.content.repository.opening import open_repository

MB = 1_000_000


def make_tree(folder: Path, files: int, binary_mb: int) -> None:
    for number in range(files):
        parent = folder / f"{number // 1_000:03}"
        parent.mkdir(parents=True, exist_ok=True)
        (parent / f"file-{number:06}.txt").write_bytes(b"%d of many small files\n" % number * 4)
    with (folder / "large.bin").open("wb") as file:
        for number in range(binary_mb):
            file.write(number.to_bytes(4) * (MB // 4))


def memory_kib() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def main(folder: Path, files: int, binary_mb: int, store: str) -> None:
    """Publishes and imports; every store is asked for what it has got."""
    make_tree(folder / "tree", files, binary_mb)
    log = BlobsOnly(open_blobs(str(folder / "blobs")))
    repository = open_repository(store)
    before_kib = memory_kib()
    with build_package(PackageAction.ADD, ["/"], ["/"], FolderSource(folder / "tree")) as built:
        asyncio.run(store_package(built, log))
        message = built.message("site", "large")
    built_kib = memory_kib()
    done = taken_in(repository, message, log.blobs)
    print(done.nodes, done.binary_bytes, built_kib - before_kib, memory_kib() - before_kib)
    repository.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
