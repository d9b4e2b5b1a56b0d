"""Imports opened packages into a change set: nothing of one is there before the commit.

ADD          its paths become as they are in the package. A deep path becomes exactly that:
             what is below it and not in the package goes. Children of any other path stay
DELETE       its paths go, with all below them
INVALIDATE   nothing changes here; what was made from its paths is out of date
TEST         nothing
"""

from typing import NamedTuple

from holdfast.content.blobs import binary_blob
from holdfast.content.messages import PackageAction
from holdfast.content.package.reading import OpenedPackage, named_blob
from holdfast.content.package.wrong import Wrong, refused
from holdfast.content.repository.api import ChangeSet
from holdfast.errors import DataLoss


class ImportedPackage(NamedTuple):
    """What an import changed."""

    nodes: int = 0  # that were put
    deleted: int = 0  # paths that were deleted, or emptied to become as in the package
    binary_bytes: int = 0  # of the nodes that were put, wherever the bytes came from


def import_package(changes: ChangeSet, package: OpenedPackage, offset: int) -> ImportedPackage:
    """Makes the changes of a package, which is at this offset of the log; does not commit them.

    Blocks where binaries are in blobs. Raises NotThereYet while one of them is missing, DataLoss or
    InvalidArgument if the package is not what it should be, and whatever the repository refuses:
    the change set is to be dropped then.
    """
    message, action, path = package.message, package.message.action, ""
    nodes = size_bytes = 0
    store, put = changes.store, changes.put
    try:
        gone = message.deep_paths if action is PackageAction.ADD else []
        if action is PackageAction.DELETE:
            gone = message.paths
        for each in gone:
            changes.delete(each)
        for path, properties, bodies in package.entries():
            for binary, pieces in bodies:
                if pieces is None:
                    pieces = named_blob(package.blobs, binary_blob(binary.sha256))
                store(binary, pieces)
                size_bytes += binary.size_bytes
            put(path, properties, offset)
            nodes += 1
    except Wrong as wrong:
        raise refused(message, wrong) from None
    except DataLoss as error:
        if "package_id" in error.fields:
            raise
        # The store does not know whose bytes these are.
        raise refused(message, Wrong(error.message, path, is_damage=True)) from None
    return ImportedPackage(nodes, len(gone), size_bytes)
