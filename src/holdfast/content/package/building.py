"""Builds packages from a tree, and stores what of them is too large for the log.

    built = build_package(PackageAction.ADD, paths, deep_paths, source)      # blocks
    await store_package(built, log)                                          # only what is missing
    published = await log.publish(built.message(publisher, package_id))
    built.close()

A package that stays small needs no store: `is_held` says so.
"""

from collections.abc import Callable, Mapping, Sequence
from types import TracebackType

from holdfast.blobs import Blobs, put
from holdfast.content.blobs import binary_blob, call, package_blob
from holdfast.content.messages import Package, PackageAction
from holdfast.content.package.requests import wrong_paths
from holdfast.content.package.sources import ContentSource, SourceBinary, SourceNode
from holdfast.content.package.writing import PackageWriter, WrittenBody, WrittenPackage
from holdfast.content.paths import is_below, key_of
from holdfast.content.ports import ContentLog
from holdfast.errors import InvalidArgument, NotFound, ResourceExhausted
from holdfast.limits import (
    CONTENT_BINARIES_MAX,
    CONTENT_BINARY_BYTES_MIN,
    CONTENT_INLINE_BYTES_MAX,
    CONTENT_UPLOAD_ATTEMPTS_MAX,
)

Watch = Callable[[SourceNode], None]
"""Is told of each node that is taken in, to show progress."""


class BuiltPackage:
    """A package that is whole, with what has to be stored before its message is published."""

    def __init__(
        self,
        action: PackageAction,
        paths: list[str],
        deep_paths: list[str],
        written: WrittenPackage | None = None,
        large: Mapping[str, SourceBinary] = {},
        nodes: int = 0,
    ) -> None:
        self.action = action
        self.paths = paths
        self.deep_paths = deep_paths
        self.nodes = nodes
        self.large = dict(large)  # binaries by the names of their blobs
        self.size_bytes = 0 if written is None else written.size_bytes
        self.sha256 = b"" if written is None else written.sha256
        self.written = written
        self.blob: str | None = None
        self._content: bytes | None = None
        if self.size_bytes > CONTENT_INLINE_BYTES_MAX:
            self.blob = package_blob(self.sha256)
        elif written is not None:
            self._content = b"".join(written.pieces())

    @property
    def is_held(self) -> bool:
        """Whether all of it goes with the message, so that nothing has to be stored."""
        return self.blob is None and not self.large

    def message(
        self,
        publisher: str,
        package_id: str,
        *,
        origin: str = "",
        user: str = "",
        metadata: Mapping[str, str] = {},
    ) -> Package:
        """What is published; the node gives it its number."""
        return Package(
            publisher, package_id, self.action, self.paths, self.deep_paths, 0, self.size_bytes,
            self.sha256, self._content, self.blob, list(self.large), origin, user, dict(metadata),
        )  # fmt: skip

    def close(self) -> None:
        """Lets go of the temporary files."""
        if self.written is not None:
            self.written.close()

    def __enter__(self) -> "BuiltPackage":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def build_package(
    action: PackageAction,
    paths: Sequence[str],
    deep_paths: Sequence[str] = (),
    source: ContentSource | None = None,
    *,
    watch: Watch | None = None,
) -> BuiltPackage:
    """Builds what is to be published; an ADD takes the nodes of its paths from the source.

    NotFound if a path is not there; InvalidState if a file changes while it is read;
    ResourceExhausted, with what to do, if it is too much for one package.
    """
    if wrong := wrong_paths(action, paths, deep_paths):
        raise InvalidArgument(f"This cannot be published: {wrong}", action=action.name)
    if action is not PackageAction.ADD:
        return BuiltPackage(action, list(paths), list(deep_paths))
    if source is None:
        raise InvalidArgument("Expected a folder or a repository to publish from; name the source")
    return _build(source, *_without_repeats(paths, deep_paths), watch)


def _without_repeats(
    paths: Sequence[str], deep_paths: Sequence[str]
) -> tuple[list[str], list[str]]:
    """The paths in the order of the tree, without those that come with a deep path anyway."""
    kept: list[str] = []
    deep_kept: list[str] = []
    for path in sorted(paths, key=key_of):
        if deep_kept and is_below(path, deep_kept[-1]):
            continue
        kept.append(path)
        if path in deep_paths:
            deep_kept.append(path)
    return kept, deep_kept


def _build(
    source: ContentSource, paths: list[str], deep_paths: list[str], watch: Watch | None
) -> BuiltPackage:
    writer = PackageWriter(paths, deep_paths)
    large: dict[str, SourceBinary] = {}
    nodes = 0
    try:
        for path in paths:
            for node in source.nodes(path, deep=path in deep_paths):
                writer.add(node.path, node.properties, _bodies(node, large))
                nodes += 1
                if watch is not None:
                    watch(node)
        return BuiltPackage(PackageAction.ADD, paths, deep_paths, writer.finish(), large, nodes)
    except BaseException:
        writer.close()
        raise


def _bodies(node: SourceNode, large: dict[str, SourceBinary]) -> list[WrittenBody]:
    bodies: list[WrittenBody] = []
    for name, source in node.binaries.items():
        content = None
        if source.binary.size_bytes < CONTENT_BINARY_BYTES_MIN:
            content = b"".join(source.pieces())
        else:
            large.setdefault(binary_blob(source.binary.sha256), source)
        bodies.append(WrittenBody(name, source.binary, content))
    if len(large) > CONTENT_BINARIES_MAX:
        raise ResourceExhausted(
            f"Expected a package of up to {CONTENT_BINARIES_MAX} large binaries, but at"
            f" {node.path} there are more; split the tree: publish the paths below it one by one",
            path=node.path,
        )
    return bodies


async def store_package(built: BuiltPackage, log: ContentLog) -> list[str]:
    """Stores what the blob store does not have yet; the names of the blobs that it stored.

    A binary that is no longer what it was is not stored: InvalidState, as when it is built.
    """
    if built.is_held:
        return []
    names = [*built.large, *([built.blob] if built.blob is not None else [])]
    missing = await log.missing(names)
    for name in missing:
        await call(log.blobs, _store, log.blobs, name, built)
    return missing


def _store(blobs: Blobs, name: str, built: BuiltPackage) -> None:
    """An upload is at one member of a cluster: when that one is lost, it begins anew elsewhere."""
    body = built.written if name == built.blob else built.large[name]
    assert body is not None
    for attempt in range(1, CONTENT_UPLOAD_ATTEMPTS_MAX + 1):
        try:
            put(blobs, name, body.pieces())
            return
        except NotFound:  # the upload is not known where the next piece came to
            if attempt == CONTENT_UPLOAD_ATTEMPTS_MAX:
                raise
