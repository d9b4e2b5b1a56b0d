"""A node that wants to know who asks, over real HTTP."""

import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from holdfast.client.remote import RemoteApi
from holdfast.clock import SystemClock
from holdfast.config import Config
from holdfast.engine.identity.values import OwnerType, Permission, ResourceType
from holdfast.gateway.batch.tables import OpenTables
from holdfast.gateway.http import HttpServer
from holdfast.gateway.identity.shapes import NewAuthorization, NewToken
from holdfast.testing import MemoryNode


class Guarded:
    """The node, its URL, and clients of it."""

    def __init__(self, node: MemoryNode, url: str, admin_token: str) -> None:
        self.node = node
        self.url = url
        self.admin_token = admin_token
        self._clients: list[RemoteApi] = []
        self.admin = self.client(admin_token)

    def client(self, token: str | None) -> RemoteApi:
        self._clients.append(RemoteApi(self.url, token))
        return self._clients[-1]

    async def let(
        self, who: str, resource: ResourceType, id_: str, *permissions: Permission,
        type_: OwnerType = OwnerType.CLIENT,
    ) -> None:  # fmt: skip
        """Gives a client, or somebody else, some permissions."""
        new = NewAuthorization(type_, who, resource, id_, list(permissions))
        await self.admin.identity.create_authorization(new)

    async def machine(self, name: str) -> RemoteApi:
        """A client with a token of its own, which may do nothing yet."""
        return self.client((await self.admin.identity.create_token(NewToken(name))).token)

    async def close(self) -> None:
        for each in self._clients:
            await each.close()


@asynccontextmanager
async def guarded(open_tables: OpenTables | None = None, **settings: Any) -> AsyncIterator[Guarded]:
    """A node in memory with three partitions and authorization."""
    config = msgspec.structs.replace(Config(authorization=True), **settings)
    node = MemoryNode(partitions=3, clock=SystemClock(), config=config, open_tables=open_tables)
    await node.start()
    kept: list[str] = []
    assert await node.gateway.let_first_in(kept.append)
    server = HttpServer(node.gateway)
    await server.start()
    there = Guarded(node, server.url, kept[0])
    try:
        yield there
    finally:
        await there.close()
        await server.close()
        await node.close()


def basic(username: str, password: str) -> dict[str, str]:
    said = base64.b64encode(f"{username}:{password}".encode()).decode()
    return {"Authorization": f"Basic {said}"}


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}
