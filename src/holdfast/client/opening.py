"""An app that is being opened while an event loop goes on."""

import asyncio
import threading
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any

from holdfast.errors import Unavailable

if TYPE_CHECKING:
    from holdfast.client.app import Holdfast


class AppOpening:
    """An app on its way: `await` it, or use it in `async with`, which also closes it.

    It is opened in a thread, which reads files and loads modules. A caller that is cancelled
    meanwhile leaves nothing open.
    """

    def __init__(self, open_app: "Callable[[], Holdfast]") -> None:
        self._open_app = open_app
        self._lock = threading.Lock()
        self._app: Holdfast | None = None
        self._is_abandoned = False

    def __await__(self) -> "Generator[Any, Any, Holdfast]":
        return self._opened().__await__()

    async def __aenter__(self) -> "Holdfast":
        return await self._opened()

    async def __aexit__(self, *_: object) -> None:
        assert self._app is not None
        await self._app.close_async()

    async def _opened(self) -> "Holdfast":
        try:
            return await asyncio.to_thread(self._open)
        except asyncio.CancelledError:
            with self._lock:
                self._is_abandoned = True
                app = self._app
            if app is not None:
                await app.close_async()
            raise

    def _open(self) -> "Holdfast":
        app = self._open_app()
        with self._lock:
            if not self._is_abandoned:
                self._app = app
                return app
        app.close()
        raise Unavailable("This app was closed: its caller was cancelled while it was opened")
