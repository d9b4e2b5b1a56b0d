"""The store of a subscriber: what is committed together, and what is known to be committed."""

import asyncio
from collections.abc import Callable, Sequence
from typing import ParamSpec, TypeVar

from holdfast.content.messages import Package, PackageStatus, encode
from holdfast.content.repository.api import Repository
from holdfast.content.subscriber.batch import Importer
from holdfast.content.subscriber.ledger import (
    STATUSES_NOTE,
    CommandsDone,
    StoreLedger,
    TouchedPath,
    changed_notes,
    read_ledger,
    read_statuses,
)
from holdfast.content.subscriber.telling import Teller

P = ParamSpec("P")
T = TypeVar("T")


class Keeper:
    """Commits content, progress and statuses in one; `saved` is what the store says."""

    def __init__(
        self, subscriber: str, repository: Repository, importer: Importer, teller: Teller
    ) -> None:
        self.ledger = StoreLedger(
            "", {}
        )  # as far as the subscriber is; may be ahead of what is saved
        self.saved = self.ledger
        self.unsaved = 0  # packages that were passed over since
        self._subscriber = subscriber
        self._repository = repository
        self._importer = importer
        self._teller = teller
        self._has_statuses = False  # whether the store's note has some

    async def open(self, store_id: str, commands_next: int) -> None:
        """Finds out where the store stands; one that is new is given its id."""
        if await self._read() is None:
            new = StoreLedger(store_id, {}, commands=CommandsDone(next=commands_next))
            await self._write((), changed_notes(None, new), ())
        found = await self._read()
        assert found is not None, "the store has its id"

    async def is_new(self) -> bool:
        """Whether no subscriber ever wrote to the store."""
        return await self.call(lambda: read_ledger(self._repository.get_note)) is None

    async def reload(self) -> None:
        """After a commit that failed: what the store says is so."""
        await self._read()

    async def commit(
        self,
        after: StoreLedger,
        statuses: Sequence[PackageStatus] = (),
        packages: Sequence[tuple[int, Package]] = (),
        untouched_by: Sequence[TouchedPath] = (),
    ) -> None:
        """Content, progress and statuses; ImportFailed if it was not committed, or may not be."""
        notes = changed_notes(self.saved, after)
        reported = self._teller.statuses
        if statuses or reported or self._has_statuses:
            notes[STATUSES_NOTE] = encode([*reported, *statuses])
        await self._write(packages, notes, untouched_by)
        self._has_statuses = bool(reported or statuses)
        self.ledger = self.saved = after
        self.unsaved = 0
        self._teller.tell(statuses)

    async def save(self) -> None:
        """Saves what was passed over."""
        if self.ledger is not self.saved:
            await self.commit(self.ledger)

    async def call(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Calls what may block: in a thread, unless the store is in memory."""
        if not self._repository.blocking:
            return function(*args, **kwargs)
        return await asyncio.to_thread(function, *args, **kwargs)

    async def call_with_blobs(
        self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Calls what uses the store and blobs: in a thread, unless both are in memory."""
        if not self._repository.blocking and not self._importer.blobs_block:
            return function(*args, **kwargs)
        return await asyncio.to_thread(function, *args, **kwargs)

    async def _write(
        self,
        packages: Sequence[tuple[int, Package]],
        notes: dict[str, bytes],
        untouched_by: Sequence[TouchedPath],
    ) -> None:
        if self._importer.blocks(packages):
            await asyncio.to_thread(self._importer.commit, packages, notes, untouched_by)
        else:
            self._importer.commit(packages, notes, untouched_by)

    async def _read(self) -> StoreLedger | None:
        def read() -> tuple[StoreLedger | None, list[PackageStatus]]:
            get_note = self._repository.get_note
            return read_ledger(get_note), read_statuses(get_note, self._subscriber)

        found, statuses = await self.call(read)
        if found is not None:
            self.ledger = self.saved = found
            self.unsaved = 0
            self._has_statuses = bool(statuses)
            known = set(self._teller.statuses)
            self._teller.tell([each for each in statuses if each not in known])
        return found
