"""What the subscribers of one process read of one log: each package is decoded and checked once."""

from collections import OrderedDict
from weakref import WeakKeyDictionary

import msgspec

from holdfast.content.messages import Package, decode_package
from holdfast.content.package.reading import OpenedPackage
from holdfast.content.ports import ContentLog, TopicEntry
from holdfast.errors import DataLoss
from holdfast.limits import CONTENT_SHARED_BYTES_MAX


class SharedPackages:
    """The last packages that somebody here looked at, by their offsets; bounded in bytes."""

    def __init__(self, bytes_max: int = CONTENT_SHARED_BYTES_MAX) -> None:
        self._bytes_max = bytes_max
        self._bytes = 0
        self._packages: OrderedDict[int, tuple[Package, int]] = OrderedDict()
        self.opened: dict[int, OpenedPackage] = {}  # by offset, checked

    def package(self, entry: TopicEntry) -> Package:
        """The message in an entry."""
        found = self._packages.get(entry.offset)
        if found is not None:
            return found[0]
        package, size_bytes = _decoded(entry), len(entry.payload)
        self._packages[entry.offset] = package, size_bytes
        self._bytes += size_bytes
        while self._bytes > self._bytes_max:
            oldest, (_, freed_bytes) = self._packages.popitem(last=False)
            self._bytes -= freed_bytes
            self.opened.pop(oldest, None)
        return package

    def keep(self, offset: int, opened: OpenedPackage) -> None:
        """Others here need not open it, for as long as its message is kept."""
        if offset in self._packages:
            self.opened[offset] = opened


def _decoded(entry: TopicEntry) -> Package:
    try:
        return decode_package(entry.payload)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise DataLoss(
            f"Expected a package at offset {entry.offset} of the log, but {error}; use a version of"
            " holdfast that is as new as the node's",
            offset=entry.offset,
        ) from error


_SHARED: "WeakKeyDictionary[ContentLog, SharedPackages]" = WeakKeyDictionary()


def shared_packages(log: ContentLog) -> SharedPackages:
    """What the subscribers of this log share."""
    found = _SHARED.get(log)
    if found is None:
        found = _SHARED[log] = SharedPackages()
    return found
