"""The web console: of an embedded app, or of the node that an app is connected to."""

import asyncio
from typing import TYPE_CHECKING, Any

from holdfast.client.portal import Portal
from holdfast.errors import InvalidState
from holdfast.gateway.api import Api

if TYPE_CHECKING:
    from holdfast.gateway.http.server import HttpServer

_PATH = "/console"


class ConsoleCalls:
    """The part of `Holdfast` that is about the web console."""

    portal: Portal
    api: Api
    embedded: Any = None  # the gateway of an app with a node of its own
    _serving: "asyncio.Future[HttpServer] | None" = None

    def console(self, *, port: int = 0) -> str:
        """The address of the web console, for a browser on this machine.

        An embedded app serves it from the first call on until it is closed, on loopback only; port
        0 takes any free port. The console of a node elsewhere is at the address of that node.
        """
        return self.portal.call(self._console_url(port))

    async def console_async(self, *, port: int = 0) -> str:
        """Like `console`, for an event loop."""
        return await self.portal.reach(self._console_url(port))

    def close_console(self) -> None:
        """Stops serving the web console."""
        if self._serving is not None:
            self.portal.call(self._stop_serving(self._serving))
            self._serving = None

    async def close_console_async(self) -> None:
        """Like `close_console`, for an event loop."""
        if self._serving is not None:
            await self.portal.reach(self._stop_serving(self._serving))
            self._serving = None

    async def _console_url(self, port: int) -> str:
        if self.embedded is None:
            url = getattr(self.api, "url", None)
            if not isinstance(url, str):
                raise InvalidState(
                    "Expected an app with a node, but this process only works for one"
                )
            return url + _PATH
        if self._serving is None:
            self._serving = asyncio.ensure_future(_serve(self.embedded, port))
        try:
            return (await asyncio.shield(self._serving)).url + _PATH
        except BaseException:
            if self._serving.done():  # the port is taken: another may be tried
                self._serving = None
            raise

    async def _stop_serving(self, serving: "asyncio.Future[HttpServer]") -> None:
        await (await serving).close()


async def _serve(gateway: Any, port: int) -> "HttpServer":
    from holdfast.console import Console  # most apps never ask for it
    from holdfast.gateway.http.server import HttpServer

    server = HttpServer(gateway, port=port, console=Console(gateway))
    await server.start()
    return server
