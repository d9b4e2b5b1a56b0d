"""Group commit: all appends that wait at the end of a turn of the event loop share one sync.

A small commit runs in the loop itself: a hop to a thread and back costs as much as its sync. A
large one is written and synced by a thread, and the loop prepares the next one meanwhile. For those
in between it depends on how long the disk took for the last of them.
"""

import asyncio
import sys
from collections import deque
from concurrent.futures import Executor

from holdfast.errors import HoldfastError, InvalidArgument
from holdfast.journal.api import Outcome
from holdfast.journal.checks import check_append_bytes
from holdfast.journal.local.disk import Meanwhile
from holdfast.journal.local.stage import Stage, Staging
from holdfast.journal.local.under_way import Commit
from holdfast.journal.local.writer import TopicWriter
from holdfast.limits import (
    COMMIT_BYTES_MAX,
    EAGER_COMMIT_BYTES,
    LOOP_COMMIT_BYTES_MAX,
    LOOP_COMMIT_SECONDS_MAX,
    THREAD_COMMIT_BYTES_MIN,
)

_LANDING_MAX = 2  # one that is written, one that follows without a pause
_SPARE_MAX = 4  # groups whose memory is kept: two that are written, two that fill


class _Group:
    """Appends that are committed together."""

    def __init__(self) -> None:
        self.stage = Stage()
        # How many appends are answered together, and their answer.
        self.waiting: list[tuple[int, asyncio.Future[list[Outcome]]]] = []


class GroupCommit:
    """Collects the appends of one topic and writes them together."""

    def __init__(self, writer: TopicWriter, thread: Executor | None) -> None:
        self._writer = writer
        self._thread = thread  # None: everything runs in the loop
        # A thread writes a large commit while the loop takes what else comes in this turn.
        self._eager_bytes = EAGER_COMMIT_BYTES if thread is not None else sys.maxsize
        self._groups: deque[_Group] = deque()  # the last one still takes appends
        self._spare: list[_Group] = []
        self._landing: list[asyncio.Future[float]] = []  # commits that the thread has in hand
        self._readers: dict[int, list[asyncio.Future[None]]] = {}

    def append_now(
        self, appends: list[Staging], meanwhile: Meanwhile | None = None
    ) -> list[Outcome] | asyncio.Future[list[Outcome]]:
        """Appends at once; what became of each, now if the loop itself writes it.

        A caller with many appends has gathered them already: waiting for more gains nothing.
        `meanwhile` may be called while the disk writes a small commit.
        """
        size_bytes = _size_bytes(appends)
        if self._groups or self._landing or not self._is_for_loop(size_bytes):
            return self.enqueue(appends, at_once=True)
        check_append_bytes(size_bytes)
        group = self._spare.pop() if self._spare else _Group()
        try:
            _join(group.stage, appends)
            outcomes = self._writer.write(group.stage, meanwhile)
            self._wake_readers(group)
        finally:
            self._keep(group)
        return outcomes

    def enqueue(
        self, appends: list[Staging], *, at_once: bool = False
    ) -> asyncio.Future[list[Outcome]]:
        """Appends at the end of this turn of the loop, or at once; what became of each."""
        size_bytes = _size_bytes(appends)
        check_append_bytes(size_bytes)
        loop = asyncio.get_running_loop()
        groups = self._groups
        if not groups and not at_once:
            loop.call_soon(self.run)
        if not groups or self._is_full(groups[-1].stage, size_bytes):
            groups.append(self._spare.pop() if self._spare else _Group())
        group = groups[-1]
        _join(group.stage, appends)
        answer: asyncio.Future[list[Outcome]] = loop.create_future()
        group.waiting.append((len(appends), answer))
        if at_once or group.stage.size_bytes >= self._eager_bytes:
            self.run()
        return answer

    def _is_full(self, stage: Stage, more_bytes: int) -> bool:
        """Whether the next append is better left to the next commit."""
        if stage.size_bytes >= self._eager_bytes:
            return True
        return stage.size_bytes + more_bytes > COMMIT_BYTES_MAX and len(stage) > 0

    def run(self) -> None:
        """Commits what is waiting.

        While the thread has one commit in hand it is given a second only if that is large, so that
        it need not wait for the loop; what is small gathers until the thread is done.
        """
        while self._groups:
            group = self._groups[0]
            size_bytes = group.stage.size_bytes
            if group.waiting:
                if self._landing:
                    if size_bytes < EAGER_COMMIT_BYTES or len(self._landing) == _LANDING_MAX:
                        return
                elif self._is_for_loop(size_bytes):
                    self._groups.popleft()
                    self._commit(group)
                    continue
                assert self._thread is not None, "without a thread nothing is landing"
                if not self._hand_over(group, self._thread):
                    return
            self._groups.popleft()
            if not group.waiting:
                self._keep(group)

    def _is_for_loop(self, size_bytes: int) -> bool:
        """Whether the loop itself writes a commit: a hop to the thread would cost more."""
        if self._thread is None or size_bytes < THREAD_COMMIT_BYTES_MIN:
            return True
        return (
            size_bytes < LOOP_COMMIT_BYTES_MAX
            and self._writer.large_sync_seconds < LOOP_COMMIT_SECONDS_MAX
        )

    async def landed(self) -> None:
        """Returns when nothing is waiting or under way."""
        while self._groups or self._landing:
            self.run()
            if self._landing:
                await asyncio.wait(self._landing)

    def _commit(self, group: _Group) -> None:
        try:
            outcomes = self._writer.write(group.stage)
        except Exception as error:
            self._fail(group, error)
        except BaseException:
            self._keep(group)
            raise
        else:
            self._answer(group, outcomes)

    def _hand_over(self, group: _Group, thread: Executor) -> bool:
        """Gives a group to the thread; False if it has to wait until others have landed."""
        try:
            commit = self._writer.begin(group.stage)
        except Exception as error:
            self._fail(group, error)
            return True
        if commit is None:
            return False
        landing = asyncio.get_running_loop().run_in_executor(thread, self._writer.transfer, commit)
        self._landing.append(landing)
        landing.add_done_callback(lambda done: self._land(group, commit, done))
        return True

    def _land(self, group: _Group, commit: Commit, transfer: "asyncio.Future[float]") -> None:
        self._landing.remove(transfer)
        error = transfer.exception()
        if error is None:
            outcomes = self._writer.finish(commit, transfer.result())
            self.run()  # the disk has waited long enough: answers come after
            self._answer(group, outcomes)
        else:
            told = self._writer.failed(commit, error)
            self._fail(group, told if isinstance(told, Exception) else error)
            self.run()

    async def taken(self, partition: int, epoch: int) -> None:
        """Appends of older epochs are refused; returns when those that came before have landed."""
        self._writer.epochs[partition] = epoch
        if self._landing:
            await asyncio.wait(list(self._landing))

    def wait_for(self, partition: int) -> asyncio.Future[None]:
        """Done at the next commit that has entries of a partition."""
        more: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._readers.setdefault(partition, []).append(more)
        return more

    def wake_all(self) -> None:
        """Lets all who wait look again, as when the journal is closed."""
        for partition in list(self._readers):
            self._wake(partition)

    def _answer(self, group: _Group, outcomes: list[Outcome]) -> None:
        at = 0
        for count, answer in group.waiting:
            if not answer.done():  # a canceled caller does not listen
                answer.set_result(outcomes[at : at + count])
            at += count
        self._wake_readers(group)
        self._keep(group)

    def _wake_readers(self, group: _Group) -> None:
        if self._readers:
            for partition in group.stage.partitions & self._readers.keys():
                self._wake(partition)

    def _fail(self, group: _Group, error: BaseException) -> None:
        for _, answer in group.waiting:
            _fail(answer, error)
        self._keep(group)

    def _keep(self, group: _Group) -> None:
        """Its memory is used again."""
        group.stage.clear()
        group.waiting.clear()
        if len(self._spare) < _SPARE_MAX:
            self._spare.append(group)

    def _wake(self, partition: int) -> None:
        for more in self._readers.pop(partition, ()):
            if not more.done():
                more.set_result(None)


def _size_bytes(appends: list[Staging]) -> int:
    """Of their frames; a loop is quicker than `sum` over the one that most callers have."""
    size_bytes = 0
    for each in appends:
        size_bytes += each.size_bytes
    return size_bytes


def _join(stage: Stage, appends: list[Staging]) -> None:
    """Stages all of the appends or none."""
    try:
        stage.add(appends)
    except TypeError as error:
        raise InvalidArgument(f"expected entries to be bytes, but found: {error}") from None


def _fail(answer: asyncio.Future[list[Outcome]], error: BaseException) -> None:
    """Fails one append, with an error of its own: tracebacks grow where they are raised."""
    if answer.done():
        return
    if isinstance(error, HoldfastError):
        own = type(error)(error.message, **error.fields)
        own.__cause__ = error
        error = own
    answer.set_exception(error)
