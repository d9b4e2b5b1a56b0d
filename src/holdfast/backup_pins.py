"""One process of a node as a backup needs it: its files stay as they were at one moment.

The state is linked first and the log is pinned then, so the state stands for no more than the log
has. Between the two the process may be held: no step begins, and commands wait.
"""

import asyncio
from pathlib import Path
from typing import Protocol

from holdfast.backup.cut import MemberCut
from holdfast.engine.kernel.runner import Runner
from holdfast.engine.state import EngineState
from holdfast.errors import DataLoss, Unavailable
from holdfast.journal.local import LocalJournal
from holdfast.journal.local.extent import Pinned
from holdfast.limits import BACKUP_HOLD_MS_MAX, BACKUP_PIN_MS
from holdfast.state.snapshots import Snapshots
from holdfast.upkeep import Upkeep


class PinPort(Protocol):
    """What the process that makes a backup asks of every process; the token is the backup's."""

    async def prepare(self, token: str) -> None: ...

    async def hold(self, token: str) -> None: ...

    async def cut(self, token: str, is_held: bool) -> MemberCut: ...

    async def go_on(self, token: str) -> None: ...

    async def keep(self, token: str) -> bool: ...

    async def release(self, token: str) -> None: ...


class _Kept:
    """What a process keeps for a backup, until it is released or nobody asks for it any more."""

    def __init__(self, links: Path) -> None:
        self.links = links
        self.pinned: Pinned | None = None
        self.expiry: asyncio.TimerHandle | None = None


class BackupPins:
    """One process of the node, as a backup needs it."""

    def __init__(
        self, folder: Path, journal: LocalJournal, runner: Runner[EngineState], upkeep: Upkeep
    ) -> None:
        self._folder = folder.absolute()
        self._journal = journal
        self._runner = runner
        self._upkeep = upkeep
        self._kept: dict[str, _Kept] = {}
        self._holder = ""  # the backup that the process stands still for
        self._hold_end: asyncio.TimerHandle | None = None

    async def prepare(self, token: str) -> None:
        """Links the state. DataLoss while the log is known to be damaged."""
        for text in self._upkeep.damage():
            raise DataLoss(
                f"Expected a log without damage, but {text}; no backup is made until the node has"
                " replaced what is damaged: see its health"
            )
        self._kept[token] = _Kept(await self._upkeep.link_state(f"backup-{token}"))
        self._renew(token)

    async def hold(self, token: str) -> None:
        """No step begins until `go_on`; for a bounded time, should nobody say so."""
        if self._holder:
            raise Unavailable("Expected one backup at a time, but another one holds this process")
        self._holder = token
        loop = asyncio.get_running_loop()
        self._hold_end = loop.call_later(BACKUP_HOLD_MS_MAX / 1000, self._go_on, token)
        await self._runner.hold.begin()

    async def cut(self, token: str, is_held: bool) -> MemberCut:
        """Pins the log as it is now; with `is_held` it is as it was when all processes held."""
        kept = self._kept.get(token)
        if kept is None or (is_held and self._holder != token):
            raise Unavailable(
                "Expected all processes of the node to hold for a moment, but it took more than"
                f" {BACKUP_HOLD_MS_MAX} ms; try again"
            )
        kept.pinned = self._journal.pin()
        return MemberCut(str(self._folder), kept.pinned.extents, str(kept.links))

    async def go_on(self, token: str) -> None:
        self._go_on(token)

    def _go_on(self, token: str) -> None:
        if self._holder == token:
            self._holder = ""
            if self._hold_end is not None:
                self._hold_end.cancel()
            self._runner.hold.end()

    async def keep(self, token: str) -> bool:
        """Whether everything is kept still; it is, for a while from now."""
        if token in self._kept:
            self._renew(token)
        return token in self._kept

    def _renew(self, token: str) -> None:
        kept = self._kept[token]
        if kept.expiry is not None:
            kept.expiry.cancel()
        loop = asyncio.get_running_loop()
        kept.expiry = loop.call_later(BACKUP_PIN_MS / 1000, self._release, token)

    async def release(self, token: str) -> None:
        self._release(token)

    def _release(self, token: str) -> None:
        self._go_on(token)
        kept = self._kept.pop(token, None)
        if kept is not None:
            if kept.expiry is not None:
                kept.expiry.cancel()
            if kept.pinned is not None:
                kept.pinned.release()
            Snapshots.drop_links(kept.links)

    def close(self) -> None:
        """The node stops."""
        for token in list(self._kept):
            self._release(token)
