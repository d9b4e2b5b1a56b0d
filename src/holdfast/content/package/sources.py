"""Where content comes from when a package is built, and a repository as such a source."""

from collections.abc import Iterator
from hashlib import sha256
from typing import Any, NamedTuple, Protocol

from holdfast.content.repository.api import Binary, Repository
from holdfast.errors import DataLoss, NotFound


class SourceBinary(Protocol):
    """A binary that can be read as often as it is needed."""

    binary: Binary

    def pieces(self) -> Iterator[bytes]:
        """Its bytes; an error at their end if they are not what the hash says."""
        ...


class SourceNode(NamedTuple):
    """A node to be published."""

    path: str
    properties: dict[str, Any]  # plain ones
    binaries: dict[str, SourceBinary]


class ContentSource(Protocol):
    """A tree that packages are built from."""

    def nodes(self, path: str, *, deep: bool) -> Iterator[SourceNode]:
        """The node, and with `deep` all below it in the order of the tree; or NotFound."""
        ...


class RepositorySource:
    """The nodes of a repository."""

    def __init__(self, repository: Repository) -> None:
        self._repository = repository

    def nodes(self, path: str, *, deep: bool) -> Iterator[SourceNode]:
        node = self._repository.get(path)
        if node is None:
            raise no_node(path, self._repository.url)
        for each in self._repository.walk(path) if deep else (node,):
            properties: dict[str, Any] = {}
            binaries: dict[str, SourceBinary] = {}
            for name, value in each.properties.items():
                if type(value) is Binary:
                    binaries[name] = _StoredBinary(self._repository, each.path, value)
                else:
                    properties[name] = value
            yield SourceNode(each.path, properties, binaries)


class _StoredBinary:
    def __init__(self, repository: Repository, path: str, binary: Binary) -> None:
        self.binary = binary
        self._repository = repository
        self._path = path

    def pieces(self) -> Iterator[bytes]:
        digest = sha256()
        for piece in self._repository.read(self.binary):
            digest.update(piece)
            yield piece
        if digest.digest() != self.binary.sha256:
            raise DataLoss(
                f"A binary of the node {self._path} in {self._repository.url} does not match its"
                " hash; write it again",
                path=self._path,
            )


def no_node(path: str, url: str) -> NotFound:
    """The error for a path that is to be published and is not there."""
    return NotFound(
        f"Expected to publish {path}, but {url} has no such node; check the path, or publish a"
        " deletion of it",
        path=path,
    )
