"""A way to a node on which answers get lost, as when the node is killed after its work."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit

from holdfast.client.portal import Portal


class LossyProxy:
    """Passes requests on; as many answers as `losses` says are dropped with their connection."""

    def __init__(self, url: str) -> None:
        self.losses = 0
        self.lost = 0
        self._node = urlsplit(url)
        self._server: asyncio.Server | None = None
        self._serving: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        assert self._server is not None
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)

    async def close(self) -> None:
        assert self._server is not None
        self._server.close()
        for each in self._serving:
            each.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        this = asyncio.current_task()
        assert this is not None
        self._serving.add(this)
        try:
            await self._answer(reader, writer)
        finally:
            self._serving.discard(this)

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        answers, requests = await asyncio.open_connection(self._node.hostname, self._node.port)
        passing = asyncio.create_task(self._pass(reader, requests))
        with suppress(ConnectionError):
            while piece := await answers.read(65_536):
                if self.losses > 0:
                    self.losses -= 1
                    self.lost += 1
                    break
                writer.write(piece)
        passing.cancel()
        for each in (writer, requests):
            each.close()

    async def _pass(self, reader: asyncio.StreamReader, requests: asyncio.StreamWriter) -> None:
        while piece := await reader.read(65_536):
            requests.write(piece)


@contextmanager
def lossy(url: str) -> Iterator[LossyProxy]:
    """A lossy way to the node at a URL, on a loop of its own."""
    portal, proxy = Portal("lossy"), LossyProxy(url)
    portal.call(proxy.start())
    try:
        yield proxy
    finally:
        portal.call(proxy.close())
        portal.close()
