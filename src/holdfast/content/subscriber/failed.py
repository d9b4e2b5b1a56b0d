"""Packages that were given up on: what of them is still to be had when they are tried again.

A retry comes late: newer packages may have changed the same paths. It changes only what nothing
newer has touched, as if it had been imported in its turn.
"""

from collections.abc import Sequence
from types import TracebackType

import msgspec

from holdfast.content.messages import Package, PackageAction
from holdfast.content.paths import is_below
from holdfast.content.repository.api import ChangeSet, Properties, Repository
from holdfast.content.subscriber.ledger import GivenUpPackage, TouchedPath
from holdfast.limits import CONTENT_TOUCHED_MAX

_EVERYTHING = [TouchedPath("/", deep=True)]


def paths_of(package: Package) -> list[TouchedPath]:
    """What a package changes."""
    if package.action is PackageAction.DELETE:
        return [TouchedPath(path, deep=True) for path in package.paths]
    if package.action is not PackageAction.ADD:
        return []
    deep = set(package.deep_paths)
    return [TouchedPath(path, deep=path in deep) for path in package.paths]


def failed_package(offset: int, package: Package) -> GivenUpPackage:
    """A package that is given up on now."""
    return GivenUpPackage(
        package.publisher, offset, package.number, package.package_id, paths_of(package)
    )


def after_newer(
    failed: Sequence[GivenUpPackage], offset: int, package: Package
) -> list[GivenUpPackage]:
    """The failed packages when another one has been imported: it is newer than some or all."""
    changed = paths_of(package)
    return [_after_newer(each, changed) if each.offset < offset else each for each in failed]


def _after_newer(failed: GivenUpPackage, changed: Sequence[TouchedPath]) -> GivenUpPackage:
    new = [
        each
        for each in changed
        if any(_overlap(each, wanted) for wanted in failed.paths)
        and not is_touched(failed.touched, each.path, deep=each.deep)
    ]
    if not new:
        return failed
    touched = [*failed.touched, *new]
    if len(touched) > CONTENT_TOUCHED_MAX:
        touched = _EVERYTHING
    return msgspec.structs.replace(failed, touched=touched)


def is_touched(touched: Sequence[TouchedPath], path: str, *, deep: bool = False) -> bool:
    """Whether something newer changed a path (with `deep`: it and all below it)."""
    return any(
        (each.path == path and (each.deep or not deep)) or (each.deep and is_below(path, each.path))
        for each in touched
    )


def _overlap(one: TouchedPath, other: TouchedPath) -> bool:
    return (
        one.path == other.path
        or (one.deep and is_below(other.path, one.path))
        or (other.deep and is_below(one.path, other.path))
    )


class GuardedChanges:
    """A change set that leaves alone what newer packages have touched."""

    def __init__(
        self, changes: ChangeSet, repository: Repository, touched: Sequence[TouchedPath]
    ) -> None:
        self._changes = changes
        self._repository = repository
        self._touched = touched
        self.store = changes.store
        self.note = changes.note
        self.commit = changes.commit

    def put(self, path: str, properties: Properties, offset: int = 0) -> None:
        if not is_touched(self._touched, path):
            self._changes.put(path, properties, offset)

    def delete(self, path: str) -> None:
        """What is newer stays, and so do the nodes above it, without their properties."""
        below = [each.path for each in self._touched if is_below(each.path, path)]
        kept = [each for each in below if self._repository.get(each) is not None]
        deleted: str | None = None
        for node in self._repository.walk(path):
            if deleted is not None and is_below(node.path, deleted):
                continue
            if is_touched(self._touched, node.path):
                continue
            if any(is_below(each, node.path) for each in kept):
                self._changes.put(node.path, {})
            else:
                self._changes.delete(node.path)
                deleted = node.path

    def __enter__(self) -> "GuardedChanges":
        self._changes.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._changes.__exit__(kind, error, trace)
