"""Keeps the blobs that the log refers to, and removes the others when their time is over.

A blob is there before its package is on the log, and several packages may share it. So each is
marked with an offset of the log and the time, and is kept until the log has been dropped up to that
offset, and for the time between two clean-ups at least:

    a blob without a mark    gets one: where the log ends now
    a mark that is over      the log is read for packages that refer to the blob. If there is one,
                             the blob is marked anew; if not, it is removed
    a publisher asks         which blobs are stored: those whose marks are half over are marked anew
    a package is published   its blobs are looked for, and nothing removes them until the log has it

One keeper has the store of a log; several publishers may upload at any time. A mark is deleted
before its blob: a crash in between leaves a blob without a mark, which is kept longer. No mark
is left behind that would let a blob of the same name go too soon.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Collection, Iterable, Sequence
from contextlib import asynccontextmanager

import msgspec

from holdfast.blobs import Blob, Blobs
from holdfast.clock import Clock
from holdfast.content.blobs import BINARIES, PACKAGES, SNAPSHOTS, call
from holdfast.content.marks import (
    BlobMark,
    Marks,
    marked_shards,
    read_cleaned_ms,
    read_marks,
    shard_of,
    write_cleaned_ms,
    write_marks,
)
from holdfast.content.messages import decode_package
from holdfast.content.topics import ContentTopic
from holdfast.errors import DataLoss, InvalidArgument, InvalidState, NotFound
from holdfast.journal import Journal
from holdfast.limits import (
    CONTENT_BLOBS_KNOWN_MAX,
    CONTENT_CLEANUP_INTERVAL_MS,
    CONTENT_CLEANUP_SLICE,
    CONTENT_HEADS_AT_ONCE,
)

_TOPIC = ContentTopic.PACKAGES.topic
_PARTITION = 1


class BlobCleanup(msgspec.Struct, frozen=True):
    """What a clean-up did."""

    seen: int = 0  # blobs that were checked
    marked: int = 0  # that had no mark, and have one now
    referenced: int = 0  # whose mark is before the log, and which the log refers to all the same
    removed: int = 0
    removed_bytes: int = 0

    @property
    def kept(self) -> int:
        return self.seen - self.removed


class BlobKeeper:
    """The blobs of a log: which are there, which must stay, and which may go."""

    def __init__(self, blobs: Blobs, journal: Journal, clock: Clock) -> None:
        self._blobs = blobs
        self._journal = journal
        self._clock = clock
        self._in_use: Counter[str] = Counter()  # by who asks or publishes now: never removed
        self._known: dict[str, None] = {}  # to be stored, by the word of `missing`
        self._removing = asyncio.Lock()  # while marks are written and blobs removed
        self._cleaning = asyncio.Lock()  # one clean-up at a time
        self._due_ms: int | None = None

    # --- for publishers -------------------------------------------------------------------------

    async def missing(self, names: Sequence[str]) -> list[str]:
        """Which of these blobs are not stored; the others are kept for the next package."""
        async with self._using(names):
            missing = await self._not_stored(names)
            stored = set(names).difference(missing)
            await self._renew(stored)
            for name in stored:
                self._known.pop(name, None)
                self._known[name] = None
            while len(self._known) > CONTENT_BLOBS_KNOWN_MAX:
                del self._known[next(iter(self._known))]
            return missing

    @asynccontextmanager
    async def publishing(self, names: Sequence[str]) -> AsyncIterator[None]:
        """Around the append of a package: its blobs are there, and nothing removes them meanwhile.

        InvalidState if one is not there: then it is uploaded, and the package published again.
        """
        async with self._using(names):
            unknown = [name for name in names if name not in self._known]
            if missing := await self._not_stored(unknown):
                raise InvalidState(
                    f"Expected the blob {missing[0]} of the package in {self._blobs.url}, but it is"
                    f" not there ({len(missing)} of {len(names)} are missing); upload it, and"
                    " publish the package again",
                    missing=missing[:100],
                )
            yield

    @asynccontextmanager
    async def _using(self, names: Collection[str]) -> AsyncIterator[None]:
        """None of these is removed from here on; one that was being removed is gone by now."""
        for name in names:
            if not name.startswith((BINARIES, PACKAGES)):
                raise InvalidArgument(
                    f"Expected a blob of content, {BINARIES}SHA256 or {PACKAGES}SHA256, but found"
                    f" {name[:100]!r}",
                    blob=name[:100],
                )
        self._in_use.update(names)
        try:
            async with self._removing:
                pass
            yield
        finally:
            self._in_use.subtract(names)
            for name in names:
                if not self._in_use[name]:
                    del self._in_use[name]

    async def _not_stored(self, names: Sequence[str]) -> list[str]:
        def missing(some: Sequence[str]) -> list[str]:
            return [name for name in some if self._blobs.head(name) is None]

        parts = [names[at::CONTENT_HEADS_AT_ONCE] for at in range(CONTENT_HEADS_AT_ONCE)]
        found = await asyncio.gather(*(call(self._blobs, missing, part) for part in parts if part))
        absent = {name for part in found for name in part}
        return [name for name in names if name in absent]

    async def _renew(self, names: Iterable[str]) -> None:
        """Marks blobs anew whose marks are half over; those without a mark get one in time."""
        horizon, mark = self._horizon(), self._mark_now()
        half = BlobMark(
            (horizon.offset + mark.offset) // 2, mark.at_ms - CONTENT_CLEANUP_INTERVAL_MS // 2
        )

        def renew(shard: int, some: list[str]) -> None:
            marks = read_marks(self._blobs, shard)
            known = [name for name in some if name in marks]
            old = [name for name in known if not _is_newer(marks[name], half)]
            if old:
                marks.update(dict.fromkeys(old, mark))
                write_marks(self._blobs, shard, marks)

        for shard, some in _by_shard(names).items():
            async with self._removing:
                await call(self._blobs, renew, shard, some)

    # --- clean-up -------------------------------------------------------------------------------

    async def clean_if_due(self) -> BlobCleanup | None:
        """Cleans up if the last time was CONTENT_CLEANUP_INTERVAL_MS ago, by any node."""
        now_ms = self._clock.now_ms()
        if self._due_ms is None:
            last_ms = await call(self._blobs, read_cleaned_ms, self._blobs)
            self._due_ms = now_ms
            if last_ms is not None:
                self._due_ms = min(last_ms, now_ms) + CONTENT_CLEANUP_INTERVAL_MS
        return await self.clean() if now_ms >= self._due_ms else None

    async def clean(self) -> BlobCleanup:
        """Marks the blobs that have no mark, and removes those that nobody can refer to.

        It may be interrupted anywhere, and begins again at any later time.
        """
        async with self._cleaning:
            horizon = self._horizon()
            listed = await call(self._blobs, self._list)
            marked, old = await self._mark(listed, horizon)
            scan = _LogScan(self._journal, old)
            await scan.read_on()
            await self._renew(scan.found)
            removed: list[str] = []
            names = sorted(old.keys() - scan.found, key=shard_of)
            for at in range(0, len(names), CONTENT_CLEANUP_SLICE):
                async with self._removing:
                    await scan.read_on()  # what was published meanwhile
                    some = names[at : at + CONTENT_CLEANUP_SLICE]
                    removed += await self._remove(
                        [name for name in some if name not in scan.found], horizon
                    )
            now_ms = self._clock.now_ms()
            await call(self._blobs, write_cleaned_ms, self._blobs, now_ms)
            self._due_ms = now_ms + CONTENT_CLEANUP_INTERVAL_MS
            return BlobCleanup(
                len(listed),
                marked,
                len(scan.found),
                len(removed),
                sum(old[each] for each in removed),
            )

    def _list(self) -> list[Blob]:
        prefixes = (BINARIES, PACKAGES, SNAPSHOTS)
        return [blob for prefix in prefixes for blob in self._blobs.list(prefix)]

    async def _mark(self, listed: list[Blob], horizon: BlobMark) -> tuple[int, dict[str, int]]:
        """Marks what has no mark. How many, and the sizes of the blobs whose marks are over."""
        sizes = dict(listed)
        old: dict[str, int] = {}
        marked = 0

        def mark_new(shard: int, names: list[str], mark: BlobMark) -> int:
            before = read_marks(self._blobs, shard)
            marks = {name: before.get(name, mark) for name in names}
            if marks != before:  # marks of blobs that are gone go, too
                write_marks(self._blobs, shard, marks)
            old.update((each, sizes[each]) for each in names if _is_over(each, marks, horizon))
            return len(marks.keys() - before.keys())

        shards = _by_shard(sizes)
        for shard in await call(self._blobs, marked_shards, self._blobs):
            shards.setdefault(shard, [])
        for shard, names in shards.items():
            async with self._removing:
                marked += await call(self._blobs, mark_new, shard, names, self._mark_now())
        return marked, old

    async def _remove(self, names: list[str], horizon: BlobMark) -> list[str]:
        """Removes blobs, unless somebody uses them or has marked them anew; which ones."""
        removed: list[str] = []

        def remove(shard: int, some: list[str]) -> None:
            marks = read_marks(self._blobs, shard)
            over = [name for name in some if _is_over(name, marks, horizon)]
            if over:
                write_marks(self._blobs, shard, {k: v for k, v in marks.items() if k not in over})
            for name in over:
                self._blobs.delete(name)
                removed.append(name)

        free = [name for name in names if name not in self._in_use]
        for name in free:
            self._known.pop(name, None)
        for shard, some in _by_shard(free).items():
            await call(self._blobs, remove, shard, some)
        return removed

    # --- the log --------------------------------------------------------------------------------

    def _mark_now(self) -> BlobMark:
        return BlobMark(self._journal.bounds(_TOPIC, _PARTITION).next - 1, self._clock.now_ms())

    def _horizon(self) -> BlobMark:
        """Marks before it are over."""
        earliest = self._journal.bounds(_TOPIC, _PARTITION).earliest
        return BlobMark(earliest, self._clock.now_ms() - CONTENT_CLEANUP_INTERVAL_MS)


class _LogScan:
    """Which of some blobs the log refers to, as far as it was read."""

    def __init__(self, journal: Journal, names: Collection[str]) -> None:
        self.found: set[str] = set()
        self._journal = journal
        self._names = names
        self._at = 0

    async def read_on(self) -> None:
        """Reads what was written since the last time; nothing, if there is nothing to look for."""
        while self._names:
            earliest, end = self._journal.bounds(_TOPIC, _PARTITION)
            self._at = max(self._at, earliest)
            if self._at >= end:
                return
            try:
                entries = await self._journal.read(_TOPIC, _PARTITION, self._at)
            except NotFound:  # dropped in this moment: the bounds have moved
                continue
            for entry in entries:
                self._look(entry.offset, entry.payload)
            self._at = entries[-1].offset + 1 if entries else end

    def _look(self, offset: int, payload: bytes) -> None:
        try:
            package = decode_package(payload)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise DataLoss(
                f"The package at offset {offset} cannot be read, and may refer to any blob:"
                f" {error}; nothing is removed until it is dropped from the log",
                offset=offset,
            ) from error
        for name in (package.blob, *package.binaries):
            if name is not None and name in self._names:
                self.found.add(name)


def _by_shard(names: Iterable[str]) -> dict[int, list[str]]:
    shards: dict[int, list[str]] = {}
    for name in names:
        shards.setdefault(shard_of(name), []).append(name)
    return shards


def _is_newer(mark: BlobMark, than: BlobMark) -> bool:
    return mark.offset >= than.offset and mark.at_ms > than.at_ms


def _is_over(name: str, marks: Marks, horizon: BlobMark) -> bool:
    """Whether the log was dropped up to a mark, and the mark is old enough."""
    mark = marks.get(name)
    if mark is None or mark.at_ms > horizon.at_ms:
        return False
    # A subscriber goes on from a snapshot if the log has the package behind it.
    behind = 1 if name.startswith(SNAPSHOTS) else 0
    return mark.offset + behind < horizon.offset
