"""How far a publication is: told while trees are read and blobs are stored."""

from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, NamedTuple

from holdfast.blobs import Blobs, Upload
from holdfast.content.package.sources import SourceNode
from holdfast.content.ports import ContentLog


class PublishProgress(NamedTuple):
    """What was done so far."""

    nodes: int  # that were read
    stored_bytes: int  # of large files and packages


Progress = Callable[[PublishProgress], None]


class PublishCounter:
    """Counts what one publication reads and stores."""

    def __init__(self, tell: Progress | None) -> None:
        self._tell = tell
        self._nodes = 0
        self._stored_bytes = 0

    def read(self, node: SourceNode) -> None:
        """A node was taken in."""
        self._nodes += 1
        self._say()

    def stored(self, size_bytes: int) -> None:
        """So many bytes more are stored."""
        self._stored_bytes += size_bytes
        self._say()

    def around(self, log: ContentLog) -> Any:
        """The log, with a store that tells of what is put into it."""
        return log if self._tell is None else _ToldLog(log, self)

    def _say(self) -> None:
        if self._tell is not None:
            self._tell(PublishProgress(self._nodes, self._stored_bytes))


class _ToldLog:
    """As much of a log as storing needs."""

    def __init__(self, log: ContentLog, counter: PublishCounter) -> None:
        self.blobs = _ToldBlobs(log.blobs, counter)
        self._log = log

    async def missing(self, blobs: Sequence[str]) -> list[str]:
        return await self._log.missing(blobs)


class _ToldBlobs:
    def __init__(self, blobs: Blobs, counter: PublishCounter) -> None:
        self._blobs = blobs
        self._counter = counter

    def upload(self, name: str) -> "_ToldUpload":
        return _ToldUpload(self._blobs.upload(name), self._counter)


class _ToldUpload:
    def __init__(self, upload: Upload, counter: PublishCounter) -> None:
        self._upload = upload
        self._counter = counter

    def write(self, piece: bytes) -> None:
        self._upload.write(piece)
        self._counter.stored(len(piece))

    def __enter__(self) -> "_ToldUpload":
        self._upload.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._upload.__exit__(kind, error, trace)
