"""Group commit: all appends that wait at the end of a turn of the event loop share one sync.

The commit runs in the loop itself, not in a thread: a hop there and back costs more than the sync
saves, and whoever could run meanwhile waits for the same disk.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import NamedTuple

from holdfast.errors import HoldfastError
from holdfast.journal.local.frame import Body
from holdfast.limits import COMMIT_BYTES_MAX


class _Waiting(NamedTuple):
    bodies: list[Body]
    size_bytes: int
    answer: asyncio.Future[list[int]]


class GroupCommit:
    """Collects the appends of one topic and writes them together."""

    def __init__(self, write: Callable[[Sequence[Body]], list[int]]) -> None:
        self._write = write
        self._waiting: list[_Waiting] = []
        self._readers: dict[int, list[asyncio.Future[None]]] = {}

    def enqueue(self, bodies: list[Body], size_bytes: int) -> asyncio.Future[list[int]]:
        """Appends at the end of this turn of the loop; the first offsets once it is durable."""
        loop = asyncio.get_running_loop()
        if not self._waiting:
            loop.call_soon(self.run)
        answer: asyncio.Future[list[int]] = loop.create_future()
        self._waiting.append(_Waiting(bodies, size_bytes, answer))
        return answer

    def run(self) -> None:
        """Commits what is waiting, in as few syncs as the limit on a commit allows."""
        waiting, self._waiting = self._waiting, []
        group: list[_Waiting] = []
        group_bytes = 0
        for each in waiting:
            if each.answer.cancelled():
                continue
            if group and group_bytes + each.size_bytes > COMMIT_BYTES_MAX:
                self._commit(group)
                group, group_bytes = [], 0
            group.append(each)
            group_bytes += each.size_bytes
        if group:
            self._commit(group)

    def wait_for(self, partition: int) -> asyncio.Future[None]:
        """Done at the next commit that has entries of a partition."""
        more: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._readers.setdefault(partition, []).append(more)
        return more

    def wake_all(self) -> None:
        """Lets all who wait look again, as when the journal is closed."""
        for partition in list(self._readers):
            self._wake(partition)

    def _commit(self, group: list[_Waiting]) -> None:
        bodies = [body for each in group for body in each.bodies]
        try:
            offsets = self._write(bodies)
        except Exception as error:
            for each in group:
                _fail(each.answer, error)
            return
        at = 0
        for each in group:
            count = len(each.bodies)
            each.answer.set_result(offsets[at : at + count])
            at += count
        if self._readers:
            for partition in {body.partition for body in bodies} & self._readers.keys():
                self._wake(partition)

    def _wake(self, partition: int) -> None:
        for more in self._readers.pop(partition, ()):
            if not more.done():
                more.set_result(None)


def _fail(answer: asyncio.Future[list[int]], error: Exception) -> None:
    """Fails one append, with an error of its own: tracebacks grow where they are raised."""
    if isinstance(error, HoldfastError):
        own = type(error)(error.message, **error.fields)
        own.__cause__ = error
        error = own
    answer.set_exception(error)
