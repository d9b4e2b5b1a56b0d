"""A way to etcd that loses what it is told to lose: requests, or answers."""

import asyncio
import contextlib
from enum import Enum


class Loss(Enum):
    """What the proxy does with the next bytes that arrive."""

    NOTHING = "it lets everything through"
    REQUEST = "a request does not arrive: the connection is cut"
    ANSWER = "a request arrives, its answer does not, and the connection stays"
    SILENCE = "neither arrives, and the connection stays"


class EtcdProxy:
    """Listens on loopback, and forwards to one server."""

    def __init__(self, port: int) -> None:
        self.loss = Loss.NOTHING
        self.port = 0
        self._to = port
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()

    @property
    def url(self) -> str:
        return f"etcd://127.0.0.1:{self.port}"

    async def __aenter__(self) -> "EtcdProxy":
        self._server = await asyncio.start_server(self._forward, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        self.cut()
        await self._server.wait_closed()

    def cut(self) -> None:
        """All connections end now."""
        for writer in self._writers:
            writer.close()

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            upstream, sender = await asyncio.open_connection("127.0.0.1", self._to)
        except OSError:
            writer.close()
            return
        ends = {writer, sender}
        self._writers |= ends
        try:
            await asyncio.gather(
                self._pump(reader, sender, ends, Loss.REQUEST),
                self._pump(upstream, writer, ends, Loss.ANSWER),
            )
        finally:
            for each in ends:
                each.close()
            self._writers -= ends

    async def _pump(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        ends: set[asyncio.StreamWriter],
        loss: Loss,
    ) -> None:
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(65_536):
                if self.loss is Loss.SILENCE or self.loss is loss is Loss.ANSWER:
                    continue
                if self.loss is loss:
                    break
                writer.write(data)
                await writer.drain()
        for each in ends:
            each.close()
