"""What is counted and measured of the files of a node, and of its HTTP."""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric


class HttpMetrics:
    """What is counted of the requests that were refused before anything was done for them."""

    def __init__(self) -> None:
        self._refused: dict[str, int] = {}
        self.connections: Callable[[], int] = lambda: 0

    def refuse(self, reason: str) -> None:
        """A request or a connection was refused."""
        self._refused[reason] = self._refused.get(reason, 0) + 1

    def collect(self) -> Iterable[Metric]:
        refused = CounterMetricFamily(
            "holdfast_http_refused", "Requests and connections refused before they were processed",
            labels=["reason"],
        )  # fmt: skip
        for reason, count in self._refused.items():
            refused.add_metric([reason], count)
        yield refused
        yield GaugeMetricFamily(
            "holdfast_http_connections", "Connections of clients", value=self.connections()
        )


class DiskNumbers(NamedTuple):
    """How much room a member takes, and how much its disk has."""

    log: int
    state: int
    free: int
    size: int


class StorageMetrics:
    """What is counted and measured of the files of a node."""

    def __init__(self) -> None:
        self.snapshots_taken = 0
        self.snapshots_failed = 0
        self.uploads = 0
        self.uploads_failed = 0
        self.backups = 0
        self.backups_failed = 0
        self.backup_taken_ms: int | None = None  # the moment that the last one shows
        self.rebuilds = 0
        self.scrubs = 0
        self.damaged_files = 0
        self.disk: Callable[[], DiskNumbers | None] = lambda: None  # None: it has no folder
        self._damage = {"state": 0, "snapshot": 0, "log": 0}

    def damage_found(self, what: str) -> None:
        """Stored bytes are not as they were written."""
        self._damage[what] += 1

    def collect(self) -> Iterable[Metric]:
        """The numbers of now, for Prometheus."""
        for name, text, value in (
            ("holdfast_snapshots", "Snapshots taken and verified", self.snapshots_taken),
            ("holdfast_snapshots_failed", "Snapshots that failed", self.snapshots_failed),
            ("holdfast_snapshots_stored", "Snapshots in the snapshot store", self.uploads),
            ("holdfast_snapshots_not_stored", "Failed uploads of snapshots", self.uploads_failed),
            ("holdfast_backups", "Backups made since the start", self.backups),
            ("holdfast_backups_failed", "Backups that failed", self.backups_failed),
            ("holdfast_state_rebuilds", "Damaged states that were rebuilt", self.rebuilds),
            ("holdfast_scrubs", "Completed scrubs of all stored data", self.scrubs),
        ):
            yield CounterMetricFamily(name, text, value=value)
        found = CounterMetricFamily(
            "holdfast_damage_found", "Damage found in stored data", labels=["what"]
        )
        for what, count in self._damage.items():
            found.add_metric([what], count)
        yield found
        yield GaugeMetricFamily(
            "holdfast_damaged_files", "Files that are damaged now", value=self.damaged_files
        )
        if self.backup_taken_ms is not None:
            yield GaugeMetricFamily(
                "holdfast_backup_taken_seconds",
                "The time that the last backup since the start shows, in seconds since 1970",
                value=self.backup_taken_ms / 1000,
            )
        if (disk := self.disk()) is None:
            return
        for name, text, value in (
            ("log", "Bytes of the log on disk, including preallocated space", disk.log),
            ("state", "Bytes of the state on disk, without snapshots", disk.state),
            ("disk_free", "Free bytes of the disk with the data", disk.free),
            ("disk_size", "Size of the disk with the data", disk.size),
        ):
            yield GaugeMetricFamily(f"holdfast_{name}_bytes", text, value=value)
