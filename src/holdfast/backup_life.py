"""Backups beside a node over a folder: who makes them, and which of its processes are asked."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from holdfast.backup.stopped import no_backup_text
from holdfast.backup_pins import BackupPins, PinPort
from holdfast.clock import Clock
from holdfast.engine.kernel.runner import Runner
from holdfast.engine.state import EngineState
from holdfast.gateway.far import Call, far
from holdfast.gateway.node.service import BackupHome
from holdfast.gateway.service import Gateway
from holdfast.journal import DiskJournal, Journal
from holdfast.journal.local import LocalJournal
from holdfast.node_backup import BackupsRefused, NodeBackups
from holdfast.upkeep import Upkeep

_HOME, _MEMBER = "backup.", "cut."  # prefixes of what the processes of a node call of one another


class BackupLife:
    """The process that has partition 1 makes them; nobody does where the log is not the node's."""

    def __init__(
        self,
        folder: Path,
        home: Path,
        journal: Journal,
        runner: Runner[EngineState],
        upkeep: Upkeep,
        clock: Clock,
        to_home: Call | None,
        disk: DiskJournal | None,
    ) -> None:
        self._ports: dict[str, tuple[type[Any], object]] = {}
        self._backups: NodeBackups | None = None
        if not isinstance(journal, LocalJournal):
            self._home: BackupHome = BackupsRefused(no_backup_text(is_kafka=disk is None))
            return
        cuts = BackupPins(folder, journal, runner, upkeep)
        self._backups = NodeBackups(home, cuts, journal, clock, upkeep.metrics)
        self._ports = {_HOME: (BackupHome, self._backups), _MEMBER: (PinPort, cuts)}
        self._home = self._backups if to_home is None else far(BackupHome, to_home, _HOME)

    def serve(self, gateway: Gateway) -> dict[str, tuple[type[Any], object]]:
        """From now on they are asked of the gateway; what other processes call, by its prefix."""
        gateway.serve_backups(self._home)
        return self._ports

    def share(self, others: Sequence[Call]) -> None:
        """The node has other processes: a backup is of all of them."""
        if self._backups is not None:
            self._backups.others = [far(PinPort, each, _MEMBER) for each in others]

    async def close(self) -> None:
        """Gives up what is under way."""
        if self._backups is not None:
            await self._backups.close()
