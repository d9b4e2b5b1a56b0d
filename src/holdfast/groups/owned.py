"""A partition while this member owns it: what the work on it is given, on the group's loop."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Protocol

from holdfast.errors import InvalidState, Moved
from holdfast.groups.api import NewPartition, Offset
from holdfast.groups.names import check_token
from holdfast.limits import WHOLE_MAX


class _Tells(Protocol):
    """Who is told what the work reports."""

    def committed(self, token: str, offset: Offset, watermark: int | None) -> None: ...


class OwnedRun:
    """Keeps the port `OwnedPartition`. It is of one run: the next run is given another."""

    def __init__(self, tells: _Tells, token: str, epoch: int, offset: Offset) -> None:
        self.token = token
        self.epoch = epoch
        self.offset = offset
        self.children: tuple[NewPartition, ...] | None = None  # once it was split or merged
        self.lost_why: str | None = None  # once another member may have it
        self.why = ""  # it is to be handed over
        self._tells = tells
        self._leaving = asyncio.Event()
        self._durable: Offset = offset
        self._noted: Offset = offset
        self._flushes: list[asyncio.Future[None]] = []
        self.on_leaving: list[Callable[[], None]] = []

    def __repr__(self) -> str:
        return f"OwnedRun({self.token!r}, epoch {self.epoch}, offset {self.offset!r})"

    def commit(self, offset: Offset, watermark: int | None = None) -> None:
        """Notes progress; it is in the log within a tick. Raises Moved once it is not ours."""
        self.check_commit(offset, watermark)
        self.offset = self._noted = offset
        self._tells.committed(self.token, offset, watermark)

    def check_commit(self, offset: Offset, watermark: int | None) -> None:
        """Raises what `commit` would, from any thread."""
        self._check_ours()
        if self.children is not None:
            raise InvalidState(f"Partition {self.token!r} is finished; nothing can be committed")
        _check_progress(self.token, offset, watermark)

    @property
    def is_open(self) -> bool:
        """Whether something can be committed."""
        return self.lost_why is None and self.children is None

    async def flush(self) -> None:
        """Returns when what was committed is in the log. Raises Moved if it will not be."""
        self._check_ours()
        if self._durable == self._noted:
            return
        flush: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._flushes.append(flush)
        await flush

    def split(self, children: Sequence[str | NewPartition]) -> None:
        """Finishes this partition when the work returns, and creates its children."""
        self._finish(
            each if isinstance(each, NewPartition) else NewPartition(each) for each in children
        )

    def merge(self, child: str, parents: Sequence[str]) -> None:
        """Finishes this partition; the child begins when all of its parents are finished."""
        if self.token not in parents:
            raise InvalidState(
                f"Expected {self.token!r} among the parents of {child!r}, but found {parents!r}"
            )
        for each in parents:
            check_token(each)
        self._finish([NewPartition(child, tuple(parents))])

    def _finish(self, children: "Sequence[NewPartition] | object") -> None:
        self._check_ours()
        if self.children is not None:
            raise InvalidState(f"Partition {self.token!r} was split or merged before")
        found = tuple(
            each if each.parents else _child_of(each, self.token)
            for each in children  # type: ignore[attr-defined]
        )
        for each in found:
            check_token(each.token)
        if len({each.token for each in found}) != len(found):
            raise InvalidState(f"Expected different children of {self.token!r}, but found {found}")
        self.children = found

    @property
    def is_leaving(self) -> bool:
        """Whether a hand-over is requested: commit, and return."""
        return self._leaving.is_set()

    async def leaving(self) -> None:
        """Returns when the partition is to be handed over."""
        await self._leaving.wait()

    # --- what the group tells ---------------------------------------------------------------

    def leave(self, why: str) -> None:
        """It is to be handed over."""
        if not self._leaving.is_set():
            self.why = why
            self._leaving.set()
            for tell in self.on_leaving:
                tell()

    def lose(self, why: str) -> None:
        """It is not this member's any more."""
        self.lost_why = why
        self.leave(why)
        for flush in self._flushes:
            if not flush.done():
                flush.set_exception(self._moved())
        self._flushes.clear()

    def end(self) -> None:
        """The work has returned."""
        if self.lost_why is None:
            self.lost_why = "its work has ended here"

    def durable(self, offset: Offset) -> None:
        """A commit was read back."""
        self._durable = offset
        if self._durable == self._noted:
            for flush in self._flushes:
                if not flush.done():
                    flush.set_result(None)
            self._flushes.clear()

    def _check_ours(self) -> None:
        if self.lost_why is not None:
            raise self._moved()

    def _moved(self) -> Moved:
        return Moved(
            f"Partition {self.token!r} is not this member's any more: {self.lost_why}",
            token=self.token,
        )


def _child_of(child: NewPartition, parent: str) -> NewPartition:
    return NewPartition(child.token, (parent,), child.start, child.end)


def _check_progress(token: str, offset: Offset, watermark: int | None) -> None:
    ok = offset is None or type(offset) is str or type(offset) is int
    if not ok or (watermark is not None and type(watermark) is not int):
        raise InvalidState(
            f"Expected an int or str as offset and an int as watermark of {token!r},"
            f" but found {offset!r} and {watermark!r}"
        )
    for number in (offset, watermark):
        if isinstance(number, int) and abs(number) > WHOLE_MAX:
            raise InvalidState(f"Expected numbers of 64 bits for {token!r}, but found {number}")
