"""How a client gets a node of its own, without this package knowing how a node is built.

The node is looked up by name when it is asked for: a remote client never loads RocksDB, and
`holdfast.node` stays the only module that knows every room.
"""

from importlib import import_module
from pathlib import Path
from typing import Protocol

from holdfast.config import Config, load_config
from holdfast.config.showing import running_settings
from holdfast.gateway.api import Api


class EmbeddedNode(Protocol):
    """What a client needs of a node."""

    @property
    def gateway(self) -> Api: ...

    async def close(self) -> None: ...


async def open_node(folder: Path, config: Config | None) -> EmbeddedNode:
    """Opens the node in a folder, on the loop that is running; None: with its own settings."""
    told = config or load_config(folder)
    node = await import_module("holdfast.node").LocalNode.open(folder, told)
    if config is None:
        node.gateway.show_settings(running_settings(told, folder))
    return node
