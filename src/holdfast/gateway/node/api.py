"""What can be asked of a node about itself."""

from typing import Protocol

from holdfast.engine.identity.values import Permission, ResourceType
from holdfast.gateway.access.needs import Everyone, one
from holdfast.gateway.node.shapes import (
    BackupRequest,
    BackupView,
    Health,
    NodeSettings,
    Topology,
)
from holdfast.gateway.operation import Namespace, operation

PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"


class NodeApi(Namespace, Protocol):
    """The node: what it is, how it is, and its numbers."""

    @operation("get_topology", "GET", "/v2/topology", Everyone.KNOWN)
    async def topology(self) -> Topology:
        """Show what the node is."""
        ...

    @operation("get_health", "GET", "/v2/health", Everyone.ANYBODY)
    async def health(self) -> Health:
        """Tell how the node is; costs it nothing. While it cannot work it is 503."""
        ...

    @operation(
        "get_metrics", "GET", "/metrics", one(ResourceType.SYSTEM, Permission.READ),
        media_type=PROMETHEUS,
    )  # fmt: skip
    async def metrics(self) -> bytes:
        """Metrics in the format of Prometheus."""
        ...

    @operation("get_settings", "GET", "/v2/settings", one(ResourceType.SYSTEM, Permission.READ))
    async def settings(self) -> NodeSettings:
        """Show every setting of the node and where it comes from. Secrets are left out."""
        ...

    @operation(
        "start_backup", "POST", "/v2/backup", one(ResourceType.SYSTEM, Permission.UPDATE),
        body=BackupRequest,
    )  # fmt: skip
    async def back_up(self, target: str) -> BackupView:
        """Start a backup, which the node writes to a folder or S3.

        Returns at once; `get_backup` tells how far it is. InvalidState while one is made, and for a
        member of a cluster.
        """
        ...

    @operation("get_backup", "GET", "/v2/backup", one(ResourceType.SYSTEM, Permission.READ))
    async def backup(self) -> BackupView:
        """Show the progress of the last backup."""
        ...
