"""Group commit: all appends that wait at the end of a turn of the event loop share one sync.

The commit runs in the loop itself, not in a thread: a hop there and back costs more than the sync
saves, and whoever could run meanwhile waits for the same disk.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import NamedTuple

from holdfast.errors import HoldfastError, InvalidArgument
from holdfast.journal.checks import check_append_bytes
from holdfast.journal.local.frame import frame_bytes
from holdfast.journal.local.stage import Stage
from holdfast.limits import COMMIT_BYTES_MAX


class Staging(NamedTuple):
    """One append of one partition, checked and with its entries' lengths."""

    partition: int
    entries: Sequence[bytes]
    lengths: list[int]


class _Waiting(NamedTuple):
    appends: int  # that are answered together
    answer: asyncio.Future[list[int]]


class GroupCommit:
    """Collects the appends of one topic and writes them together."""

    def __init__(self, write: Callable[[Stage], list[int]]) -> None:
        self._write = write
        self._stage = Stage()
        self._waiting: list[_Waiting] = []
        self._readers: dict[int, list[asyncio.Future[None]]] = {}

    def enqueue(self, appends: list[Staging]) -> asyncio.Future[list[int]]:
        """Appends at the end of this turn of the loop; the first offsets once it is durable."""
        size_bytes = sum([frame_bytes(each.lengths) for each in appends])
        check_append_bytes(size_bytes)
        if self._waiting and self._stage.size_bytes + size_bytes > COMMIT_BYTES_MAX:
            self.run()
        self._join(appends)
        loop = asyncio.get_running_loop()
        if not self._waiting:
            loop.call_soon(self.run)
        answer: asyncio.Future[list[int]] = loop.create_future()
        self._waiting.append(_Waiting(len(appends), answer))
        return answer

    def run(self) -> None:
        """Commits what is waiting and answers it."""
        if not self._waiting:
            return
        waiting, self._waiting = self._waiting, []
        try:
            offsets = self._write(self._stage)
        except Exception as error:
            for each in waiting:
                _fail(each.answer, error)
        else:
            self._answer(waiting, offsets)
        finally:
            self._stage.clear()

    def wait_for(self, partition: int) -> asyncio.Future[None]:
        """Done at the next commit that has entries of a partition."""
        more: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._readers.setdefault(partition, []).append(more)
        return more

    def wake_all(self) -> None:
        """Lets all who wait look again, as when the journal is closed."""
        for partition in list(self._readers):
            self._wake(partition)

    def _join(self, appends: list[Staging]) -> None:
        """Stages all of the appends or none."""
        before = len(self._stage)
        try:
            for partition, entries, lengths in appends:
                self._stage.add(partition, entries, lengths)
        except TypeError as error:
            self._stage.cut(before)
            raise InvalidArgument(f"expected entries to be bytes, but found: {error}") from None

    def _answer(self, waiting: list[_Waiting], offsets: list[int]) -> None:
        at = 0
        for count, answer in waiting:
            if not answer.done():  # whoever was cancelled does not listen
                answer.set_result(offsets[at : at + count])
            at += count
        if self._readers:
            for partition in self._stage.partitions & self._readers.keys():
                self._wake(partition)

    def _wake(self, partition: int) -> None:
        for more in self._readers.pop(partition, ()):
            if not more.done():
                more.set_result(None)


def _fail(answer: asyncio.Future[list[int]], error: Exception) -> None:
    """Fails one append, with an error of its own: tracebacks grow where they are raised."""
    if answer.done():
        return
    if isinstance(error, HoldfastError):
        own = type(error)(error.message, **error.fields)
        own.__cause__ = error
        error = own
    answer.set_exception(error)
