"""How many connections a node keeps, and how much it keeps in memory for those that are slow."""

from collections import Counter
from dataclasses import dataclass

from holdfast.gateway.access.sites import LOOPBACK, site_of
from holdfast.limits import (
    BODY_BYTES_PER_SECOND_MIN,
    BODY_GRACE_MS,
    CONNECTIONS_MAX,
    CONNECTIONS_PER_ADDRESS_MAX,
    DRAIN_MS_MAX,
    HEAD_BYTES_MAX,
    HEAD_MS_MAX,
    HEADERS_MAX,
    REQUEST_TARGET_BYTES_MAX,
    SLOW_CLIENTS_BYTES_MAX,
)
from holdfast.metrics import HttpMetrics

_LOOPBACK_SHARE = 0.75  # of all connections: programs beside the node leave room for the others


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """What a client may ask of the server before it is known."""

    connections_max: int = CONNECTIONS_MAX
    per_address_max: int = CONNECTIONS_PER_ADDRESS_MAX
    head_bytes_max: int = HEAD_BYTES_MAX
    headers_max: int = HEADERS_MAX
    target_bytes_max: int = REQUEST_TARGET_BYTES_MAX
    head_ms_max: int = HEAD_MS_MAX
    body_grace_ms: int = BODY_GRACE_MS
    body_bytes_per_second_min: int = BODY_BYTES_PER_SECOND_MIN
    drain_ms_max: int = DRAIN_MS_MAX
    slow_bytes_max: int = SLOW_CLIENTS_BYTES_MAX


class Connections:
    """The connections that are open, and the bytes that wait for their clients."""

    def __init__(self, limits: ConnectionLimits, metrics: HttpMetrics) -> None:
        self.limits = limits
        self.metrics = metrics
        self._open: Counter[str] = Counter()
        self._slow_bytes = 0
        metrics.connections = self._open.total

    def opened(self, address: str) -> str | None:
        """Counts a connection; gives the reason instead if there are too many."""
        if self._open.total() >= self.limits.connections_max:
            return "connections"
        site = site_of(address)
        if self._open[site] >= self._bound(site):
            return "connections_of_address"
        self._open[site] += 1
        return None

    def closed(self, address: str) -> None:
        """A connection that was counted is gone."""
        site = site_of(address)
        self._open[site] -= 1
        if not self._open[site]:
            del self._open[site]

    def hold(self, size_bytes: int) -> None:
        """So many bytes more wait for a client, or fewer."""
        self._slow_bytes += size_bytes
        assert self._slow_bytes >= 0, "more was let go than was held"

    @property
    def is_full(self) -> bool:
        """Whether no more may wait."""
        return self._slow_bytes >= self.limits.slow_bytes_max

    def _bound(self, site: str) -> int:
        if site == LOOPBACK:
            return max(
                self.limits.per_address_max, int(self.limits.connections_max * _LOOPBACK_SHARE)
            )
        return self.limits.per_address_max
