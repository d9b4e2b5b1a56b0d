"""The HTTP server: uvicorn inside a loop that runs already."""

import asyncio
import errno
import os
import resource
import socket
from dataclasses import replace
from typing import Any

import uvicorn

from holdfast.errors import InvalidState, Unavailable
from holdfast.gateway.api import Api
from holdfast.gateway.http.app import BODY_BYTES_MAX, WebConsole, create_app
from holdfast.gateway.http.connections import ConnectionLimits, Connections
from holdfast.gateway.http.origins import Origins
from holdfast.gateway.http.polls import LongPolls
from holdfast.gateway.http.protocol import BoundedProtocol
from holdfast.gateway.http.tls import HANDSHAKE_S_MAX, Certificate
from holdfast.metrics import HttpMetrics

BACKLOG_CONNECTIONS = 2_048
KEEP_ALIVE_S = (
    75  # longer than clients keep an idle connection, so that they never write to a closed one
)
DEAD_AFTER_S = 60  # of silence a client is asked whether it is there, and then every ...
DEAD_ASK_S = 15  # ... until it was asked four times
FILES_KEPT = 256  # that the node has open beside its connections: segments, tables of the state
CLOSE_S_MAX = 5  # for requests that are being served; long polls end at once


class HttpServer:
    """Serves an Api over HTTP from `start` to `close`. Port 0 takes any free port."""

    def __init__(
        self,
        api: Api,
        host: str = "127.0.0.1",
        port: int = 0,
        *,
        body_bytes_max: int = BODY_BYTES_MAX,
        allowed_hosts: str = "",
        allowed_origins: str = "",
        tls: Certificate | None = None,
        limits: ConnectionLimits | None = None,
        metrics: HttpMetrics | None = None,
        is_shared: bool = False,
        console: WebConsole | None = None,
    ) -> None:
        """`is_shared`: other processes listen at the same address, and the system chooses one."""
        self._console = console
        self._is_shared = is_shared
        self._host = host
        self._port = port
        self._tls = tls
        self._polls = LongPolls()
        metrics = metrics or HttpMetrics()
        self._connections = Connections(_with_files(limits or ConnectionLimits()), metrics)
        config = uvicorn.Config(
            create_app(
                api,
                Origins(host, allowed_hosts, allowed_origins),
                metrics,
                polls=self._polls,
                body_bytes_max=body_bytes_max,
                console=console,
            ),
            http=BoundedProtocol,
            ws="none",
            lifespan="off",
            log_config=None,
            log_level="error",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            backlog=BACKLOG_CONNECTIONS,
            timeout_keep_alive=KEEP_ALIVE_S,
            timeout_graceful_shutdown=CLOSE_S_MAX,
        )
        self._server = uvicorn.Server(config)
        self._socket: socket.socket | None = None
        self._ticking: asyncio.Task[None] | None = None

    @property
    def url(self) -> str:
        """Where clients find the server."""
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"{'https' if self._tls else 'http'}://{host}:{self._port}"

    async def start(self) -> None:
        """Listens; `Unavailable` when the port is not to be had."""
        if self._socket is not None:
            raise InvalidState("Expected a server that is new, but it was started already")
        self._socket = self._listen()
        self._port = self._socket.getsockname()[1]
        # the steps of Server.serve without its signal handlers: the process is not the server's
        config = self._server.config
        config.load()
        self._server.lifespan = config.lifespan_class(config)
        await self._open(self._socket)
        self._ticking = asyncio.create_task(self._server.main_loop())

    async def close(self) -> None:
        """Ends long polls with what they have, lets other requests finish, and stops listening."""
        if self._ticking is None or self._socket is None:
            return
        self._polls.end()
        if self._console is not None:
            self._console.end()
        self._ticking.cancel()
        self._ticking = None
        await self._server.shutdown(sockets=[self._socket])

    async def _open(self, listening: socket.socket) -> None:
        """What Server.startup does, with a bound on the time of a handshake."""
        loop, config = asyncio.get_running_loop(), self._server.config

        def connection() -> BoundedProtocol:
            return BoundedProtocol(
                config=config, server_state=self._server.server_state, app_state={}, _loop=loop,
                connections=self._connections,
            )  # fmt: skip

        options: dict[str, Any] = {}
        if self._tls is not None:
            options = {"ssl": self._tls.context, "ssl_handshake_timeout": HANDSHAKE_S_MAX}
        server = await loop.create_server(
            connection, sock=listening, backlog=config.backlog, **options
        )
        self._server.servers = [server]
        self._server.started = True

    def _listen(self) -> socket.socket:
        family = socket.AF_INET6 if ":" in self._host else socket.AF_INET
        try:
            listening = socket.create_server(
                (self._host, self._port), family=family, backlog=BACKLOG_CONNECTIONS,
                reuse_port=self._is_shared,
            )  # fmt: skip
            _notice_the_dead(listening)
            return listening
        except OSError as error:
            raise cannot_listen(self._host, self._port, error) from error


def cannot_listen(host: str, port: int, error: OSError) -> Unavailable:
    """The error for a port that another process has, or that this one may not use."""
    if error.errno == errno.EADDRINUSE:
        reason = "another process listens there; stop it, or choose another port"
    elif (error.errno or 0) < 0:  # of getaddrinfo, whose numbers are a list of their own
        reason = "the name of the host is not known"
    elif error.errno == errno.EADDRNOTAVAIL:
        reason = "this machine has no such address"
    else:
        reason = os.strerror(error.errno or 0).lower()
    return Unavailable(f"Cannot listen on {host}:{port}: {reason}", host=host, port=port)


def _notice_the_dead(listening: socket.socket) -> None:
    """Connections inherit it: one whose client vanished, as in a long poll, is closed."""
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if hasattr(socket, "TCP_KEEPIDLE"):
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, DEAD_AFTER_S)
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, DEAD_ASK_S)
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 4)


def _with_files(limits: ConnectionLimits) -> ConnectionLimits:
    """No more connections than the process may have files open, beside those of the node."""
    files_max, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files_max == resource.RLIM_INFINITY:
        return limits
    room = max(files_max - FILES_KEPT, files_max // 2)
    return replace(limits, connections_max=min(limits.connections_max, room))
