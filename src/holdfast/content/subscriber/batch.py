"""Packages into a store: some of them in one change set, with what the subscriber knows then.

Its calls block, unless the store and the blobs are in memory.
"""

from collections.abc import Callable, Mapping, Sequence

from holdfast.blobs.memory import MemoryBlobs
from holdfast.content.blobs import NotThereYet
from holdfast.content.messages import Package, PackageAction
from holdfast.content.package.importing import import_package
from holdfast.content.package.reading import open_package
from holdfast.content.ports import ContentLog
from holdfast.content.repository.api import ChangeSet, Repository
from holdfast.content.subscriber.decisions import ImportFailure
from holdfast.content.subscriber.failed import GuardedChanges
from holdfast.content.subscriber.ledger import TouchedPath
from holdfast.content.subscriber.shared import SharedPackages
from holdfast.errors import Code, HoldfastError

INVALIDATE = PackageAction.INVALIDATE  # looked up once: it is asked for each package
Invalidate = Callable[[Sequence[str]], None]

# What is not the package's fault is waited for, however often.
_PASSING = frozenset(
    {Code.UNAVAILABLE, Code.RESOURCE_EXHAUSTED, Code.DEADLINE_EXCEEDED, Code.UNKNOWN, Code.MOVED}
)


class ImportFailed(Exception):
    """A change set was not committed, or it is not known whether it was."""

    def __init__(self, index: int | None, error: Exception) -> None:
        super().__init__(str(error))
        self.index = index  # of the package that failed; None: the commit did
        self.error = error

    def as_failure(self) -> ImportFailure:
        """Why, in words, and whether it passes by itself."""
        error = self.error
        if isinstance(error, HoldfastError):
            is_late = isinstance(error, NotThereYet)
            passes = error.code in _PASSING and not is_late
            return ImportFailure(error.message, passes, is_late)
        return ImportFailure(f"{type(error).__name__}: {error}", isinstance(error, OSError))


class Importer:
    """Writes packages and notes into one store."""

    def __init__(
        self,
        log: ContentLog,
        repository: Repository,
        shared: SharedPackages,
        invalidate: Invalidate | None,
    ) -> None:
        self._blobs = log.blobs
        self._repository = repository
        self._shared = shared
        self._invalidate = invalidate
        self.blobs_block = not isinstance(log.blobs, MemoryBlobs)

    def blocks(self, packages: Sequence[tuple[int, Package]]) -> bool:
        """Whether to take them in needs a thread."""
        return self._repository.blocking or (
            self.blobs_block and any(each.blob or each.binaries for _, each in packages)
        )

    def commit(
        self,
        packages: Sequence[tuple[int, Package]],
        notes: Mapping[str, bytes],
        untouched_by: Sequence[TouchedPath] = (),
    ) -> None:
        """All of these packages and notes, or nothing: ImportFailed says why.

        With `untouched_by`, the paths that newer packages have touched stay as they are.
        """
        index: int | None = None
        try:
            with self._repository.change() as change:
                into: ChangeSet = change
                if untouched_by:
                    into = GuardedChanges(change, self._repository, untouched_by)
                for index, (offset, package) in enumerate(packages):  # noqa: B007
                    self._import(offset, package, into)
                index = None
                for name, value in notes.items():
                    change.note(name, value)
                change.commit()
        except Exception as error:
            raise ImportFailed(index, error) from error

    def _import(self, offset: int, package: Package, change: ChangeSet) -> None:
        if package.action is INVALIDATE:
            if self._invalidate is not None:
                self._invalidate(package.paths)
            return
        opened = self._shared.opened.get(offset)
        if opened is None:
            opened = open_package(package, self._blobs)
            self._shared.keep(offset, opened)
        import_package(change, opened, offset)
