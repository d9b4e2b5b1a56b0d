"""One topic as the node writes and reads it.

Appends of all callers are written one after the other, each with all that waits by then, and are
read back: what the service knows is what the log has, also after an append of unknown outcome.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from holdfast.content.ports import TopicEntries, TopicEntry
from holdfast.content.publisher.recent import RecentEntries
from holdfast.content.topics import PARTITION, ContentTopic
from holdfast.errors import HoldfastError, Moved, Unavailable
from holdfast.journal import Append, Appended, Journal, Refused
from holdfast.limits import (
    CONTENT_BATCH_BYTES_MAX,
    CONTENT_BATCH_MESSAGES_MAX,
    CONTENT_OLD_BYTES,
    CONTENT_WAKE_MS,
    READ_BYTES_MAX,
)

M = TypeVar("M")

Encode = Callable[[list[M]], list[bytes]]
Taken = Callable[[list[TopicEntry]], None]


class TopicLog(Generic[M]):
    """Messages of one topic: appended in order, read by any number of waiting readers."""

    def __init__(
        self,
        journal: Journal,
        topic: ContentTopic,
        encode: Encode[M],
        taken: Taken,
        recent_bytes: int,
        size_bytes: Callable[[M], int] = lambda message: 0,
        offset_of: Callable[[M], int | None] = lambda message: None,
    ) -> None:
        self.topic = topic
        self.end = 0  # what is before it is known
        self._journal = journal
        self._encode = encode  # called when the messages' turn has come
        self._taken = taken  # is given all entries in order
        self._size_bytes = size_bytes
        self._offset_of = offset_of  # where a message stands that is not to be there twice
        self._recent = RecentEntries(recent_bytes)
        self._pending: deque[tuple[list[M], asyncio.Future[int]]] = deque()
        self._writing: asyncio.Task[None] | None = None
        self._waiting: dict[asyncio.Future[None], None] = {}  # in the order in which they came
        self._reading: dict[int, asyncio.Future[None]] = {}
        self._is_closed = False
        self._closed_by: HoldfastError = _closed()  # what is said when it is
        self._woken_at = -1.0
        self._waking: asyncio.TimerHandle | None = None

    @property
    def earliest(self) -> int:
        return self._journal.bounds(self.topic.topic, PARTITION).earliest

    def begin_at(self, offset: int) -> None:
        """What stands before an offset is known from elsewhere; `take_up` reads the rest."""
        self.end = max(offset, self.earliest)

    async def append(self, messages: list[M]) -> int:
        """Appends messages together; the offset of the first one, once durable and taken up."""
        self.check_open()
        answer: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._pending.append((messages, answer))
        if self._writing is None:
            self._writing = asyncio.create_task(self._write())
        return await answer  # one caller that is cancelled does not cancel the others

    async def _write(self) -> None:
        try:
            while self._pending:
                await self._write_batch(*self._batch())
        finally:
            self._writing = None

    def _batch(self) -> tuple[list[M], list[tuple[int, asyncio.Future[int]]]]:
        """What is written next, and who is told where it stands."""
        messages: list[M] = []
        answers: list[tuple[int, asyncio.Future[int]]] = []
        size_bytes = 0
        while self._pending:
            more, answer = self._pending[0]
            more_bytes = sum(map(self._size_bytes, more))
            if messages and (
                len(messages) + len(more) > CONTENT_BATCH_MESSAGES_MAX
                or size_bytes + more_bytes > CONTENT_BATCH_BYTES_MAX
            ):
                break
            self._pending.popleft()
            if answer.done():  # cancelled: nobody wants it any more
                continue
            if (there := self._offset_of(more[0])) is not None:
                answer.set_result(there)
            else:
                answers.append((len(messages), answer))
                messages += more
                size_bytes += more_bytes
        return messages, answers

    async def _write_batch(
        self, messages: list[M], answers: list[tuple[int, asyncio.Future[int]]]
    ) -> None:
        if not messages:
            return
        try:
            await self.take_up()  # there is something only if an outcome was unknown
            first = await self._append(self._encode(messages))
            offsets = [each.offset for each in await self.take_up() if each.offset >= first]
        except BaseException as error:
            await self._learn(answers, error)
            if not isinstance(error, Exception):
                raise
        else:
            for number, answer in answers:
                if not answer.done():
                    answer.set_result(offsets[number])

    async def _append(self, entries: list[bytes]) -> int:
        """Appends where the log is known to end: what was encoded stands on what is before it.

        Moved if it ends elsewhere, as when another member has written meanwhile.
        """
        append = Append(self.topic.topic, PARTITION, entries, offset=self.end)
        [outcome] = await self._journal.append_many([append])
        if isinstance(outcome, asyncio.Future):
            outcome = await outcome
        if isinstance(outcome, Appended):
            return outcome.first
        if isinstance(outcome, Refused):
            raise moved(outcome.reason)
        raise outcome

    async def _learn(
        self, answers: list[tuple[int, asyncio.Future[int]]], error: BaseException
    ) -> None:
        """An append failed: what is in the log all the same is known before somebody asks again."""
        if isinstance(error, Exception):
            with contextlib.suppress(HoldfastError):
                await self.take_up()
        else:
            error = self._closed_by
        for _, answer in answers:
            _fail(answer, error)

    async def take_up(self) -> list[TopicEntry]:
        """Reads what is new in the log and hands it on; readers that wait are woken."""
        found: list[TopicEntry] = []
        while True:
            earliest, next_offset = self._journal.bounds(self.topic.topic, PARTITION)
            self.end = max(self.end, earliest)
            if self.end >= next_offset:
                break
            entries = await self._entries(self.end)
            end = entries[-1].offset + 1 if entries else next_offset
            self._recent.add(self.end, end, entries)
            self.end = end
            self._taken(entries)
            found += entries
        if found:
            self._wake_soon()
        return found

    async def read(self, offset: int, bytes_max: int, wait_ms: int = 0) -> TopicEntries:
        """Entries from an offset on; waits for some at the end."""
        self.check_open()
        offset = max(offset, self.earliest)
        if offset >= self.end and wait_ms > 0:
            await self._more(wait_ms)
            self.check_open()
        while offset < self.end:
            if (kept := self._recent.read(offset, bytes_max)) is not None:
                entries, offset = kept
                if entries:
                    return TopicEntries(entries, offset, self.earliest, self.end)
            else:
                await self._fetch(offset, max(bytes_max, CONTENT_OLD_BYTES))
                offset = max(offset, self.earliest)
        return TopicEntries([], min(offset, self.end), self.earliest, self.end)

    async def _fetch(self, offset: int, bytes_max: int) -> None:
        """Reads a part of the log that is not kept; readers of one part share one reading."""
        reading = self._reading.get(offset)
        if reading is not None:
            await asyncio.wait([reading])
            return
        self._reading[offset] = done = asyncio.get_running_loop().create_future()
        try:
            entries = await self._entries(offset, bytes_max)
            end = min(entries[-1].offset + 1, self.end) if entries else self.end
            self._recent.add(offset, end, entries)
        finally:
            del self._reading[offset]
            done.set_result(None)

    async def _entries(self, offset: int, bytes_max: int = READ_BYTES_MAX) -> list[TopicEntry]:
        found = await self._journal.read(self.topic.topic, PARTITION, offset, bytes_max)
        return list(map(TopicEntry._make, found))

    async def _more(self, wait_ms: int) -> None:
        """Returns when something was appended, or after a time."""
        loop = asyncio.get_running_loop()
        more: asyncio.Future[None] = loop.create_future()
        self._waiting[more] = None
        timer = loop.call_later(wait_ms / 1_000, _tell, more)
        try:
            await more
        finally:
            timer.cancel()
            self._waiting.pop(more, None)

    def _wake_soon(self) -> None:
        """Wakes at once, but not more often than every CONTENT_WAKE_MS.

        While much is appended, readers are given many entries at a time instead of one.
        """
        if self._waking is not None:
            return
        loop = asyncio.get_running_loop()
        due = self._woken_at + CONTENT_WAKE_MS / 1_000
        if loop.time() >= due:
            self._wake()
        else:
            self._waking = loop.call_at(due, self._wake)

    def _wake(self) -> None:
        self._waking = None
        self._woken_at = asyncio.get_running_loop().time()
        waiting, self._waiting = self._waiting, {}
        for more in waiting:
            _tell(more)

    async def close(self) -> None:
        """Finishes what is being written; everything that waits ends with Unavailable."""
        self.shut(self._closed_by)
        if self._writing is not None:
            await asyncio.wait([self._writing])
        self._wake()

    def shut(self, error: HoldfastError) -> None:
        """Takes nothing any more; what waits ends with an error. What is being written goes on."""
        self._is_closed, self._closed_by = True, error
        while self._pending:
            _fail(self._pending.popleft()[1], error)
        if self._waking is not None:
            self._waking.cancel()
        self._wake()

    def abandon(self) -> None:
        """The process ends: nobody is told."""
        self._is_closed = True
        self._pending.clear()
        if self._writing is not None:
            self._writing.cancel()

    def check_open(self) -> None:
        """Raises what is said when it is closed."""
        if self._is_closed:
            raise _own(self._closed_by)


def moved(reason: str) -> Moved:
    """The caller's answer while another member has the topics: nothing reached a log."""
    return Moved(
        f"The topics of content are not at this member: {reason}; try again", partition=PARTITION
    )


def _closed() -> Unavailable:
    return Unavailable("The node is closing; try again when it has started again")


def _tell(waiting: "asyncio.Future[None]") -> None:
    if not waiting.done():
        waiting.set_result(None)


def _fail(answer: "asyncio.Future[int]", error: Exception) -> None:
    """Each caller gets an error of its own: tracebacks grow where they are raised."""
    if answer.done():
        return
    answer.set_exception(_own(error) if isinstance(error, HoldfastError) else error)


def _own(error: HoldfastError) -> HoldfastError:
    own = type(error)(error.message, **error.fields)
    own.__cause__ = error
    return own


def entries_of(messages: Sequence[M], encode: Callable[[M], bytes]) -> list[bytes]:
    """Messages as they are on the log, where nothing else is added to them."""
    return [encode(each) for each in messages]
