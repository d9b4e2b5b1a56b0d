"""Serving a node over HTTP until it is told to stop."""

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from holdfast.cli.beside import Beside
from holdfast.cli.output import print_json, print_line, print_note
from holdfast.config import Config
from holdfast.config.showing import running_settings
from holdfast.errors import DataLoss, Unavailable
from holdfast.gateway.http.app import WebConsole
from holdfast.gateway.http.connections import ConnectionLimits
from holdfast.gateway.http.server import HttpServer
from holdfast.gateway.http.tls import Certificate, certificate_of
from holdfast.node import LocalNode, Node
from holdfast.version import VERSION

CONSOLE_PATH = "/console"
ADMIN_TOKEN_FILE = "admin-token"
_RESERVED_FILES = 8  # to write the state and to end the loop
# how soon a node that cannot write any more takes its process down, and a new certificate is seen
_WATCH_SECONDS = 0.5


async def serve_folder(folder: Path, config: Config, *, as_json: bool, with_pipeline: bool) -> None:
    """A node of one process."""
    began = time.monotonic()
    certificate_of(config.tls_certificate, config.tls_key)  # a wrong one leaves no folder behind
    node = await LocalNode.open(folder, config)
    try:
        node.gateway.show_settings(running_settings(config, folder))
        await let_first_in(node, folder, config)
        tables = ["--tables", config.tables] if config.tables else []
        beside = Beside(["pipeline", "run", str(folder), *tables]) if with_pipeline else None
        took_ms = round((time.monotonic() - began) * 1000)

        def announce(url: str) -> None:
            count = len(node.runner.processors)
            announce_start(
                url, folder, count, node.replayed_events, took_ms, config, as_json=as_json
            )

        with beside or contextlib.nullcontext():
            await serve(node, config, announce, asyncio.Event())
    finally:
        await node.close()


async def serve(
    node: Node,
    config: Config,
    announce: Callable[[str], None],
    stop: asyncio.Event,
    *,
    is_shared: bool = False,
    before_end: Callable[[], Awaitable[None]] | None = None,
) -> None:
    """Serves a node until SIGINT, SIGTERM or `stop`; raises when the node cannot go on.

    `before_end` is done while requests are still served.
    """
    loop = asyncio.get_running_loop()
    certificate = certificate_of(config.tls_certificate, config.tls_key)
    reserve = [os.open(os.devnull, os.O_RDONLY) for _ in range(_RESERVED_FILES)]
    server = HttpServer(
        node.gateway, config.host, config.port, allowed_hosts=config.allowed_hosts,
        allowed_origins=config.allowed_origins, metrics=node.metrics.http, tls=certificate,
        limits=ConnectionLimits(config.connections_max, config.connections_per_address_max),
        is_shared=is_shared, console=_console_of(node, config),
    )  # fmt: skip
    await server.start()
    try:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, stop.set)
        if certificate is not None:
            loop.add_signal_handler(signal.SIGHUP, certificate.reload)
        announce(server.url)
        await _until_stopped(node, stop, certificate)
        if before_end is not None:
            await before_end()
    finally:
        for descriptor in reserve:  # a node that has used up its files can still end in order
            os.close(descriptor)
        await server.close()


def _console_of(node: Node, config: Config) -> WebConsole | None:
    if not config.console:
        return None
    from holdfast.console import Console  # templates take a moment to load

    return Console(node.gateway)


async def let_first_in(node: Node, folder: Path, config: Config) -> None:
    """The first start with authorization makes an administrator; its token goes to a file."""
    path = folder / ADMIN_TOKEN_FILE

    def keep(token: str) -> None:
        path.touch(mode=0o600)
        path.write_text(token + "\n")

    if config.authorization and await node.gateway.let_first_in(keep):
        print_note(f"the token of an administrator is in {path}; HOLDFAST_TOKEN takes it")


async def _until_stopped(node: Node, stop: asyncio.Event, certificate: Certificate | None) -> None:
    """Returns when asked to stop; raises when the node cannot go on: a supervisor sees it."""
    while not stop.is_set():
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), _WATCH_SECONDS)
        if certificate is not None:
            certificate.reload_if_changed()
        failure = node.runner.failure
        if isinstance(failure, DataLoss) and "path" in failure.fields:
            raise DataLoss(failure.message, **failure.fields)  # to start again would not help
        if failure is not None:
            raise Unavailable(f"The node stopped: {failure}")


def announce_start(
    url: str,
    folder: Path,
    partitions: int,
    replayed_events: int,
    took_ms: int,
    config: Config,
    *,
    processes: int = 1,
    member: str | None = None,
    journal: str | None = None,
    as_json: bool,
) -> None:
    """Says that the node is up."""
    if as_json:
        started = {
            "event": "started",
            "url": url,
            "folder": str(folder),
            "partitions": partitions,
            "replayedEvents": replayed_events,
            "recoveryMs": took_ms,
            "version": VERSION,
            "pid": os.getpid(),
        }
        if config.console:
            started["console"] = f"{url}{CONSOLE_PATH}"
        if processes > 1:
            started["processes"] = processes
        if member is not None:
            started["member"] = member
        if journal is not None:
            started["journal"] = journal
        print_json(started)
        return
    several = f" · {processes} processes" if processes > 1 else ""
    several += f" · member {member}" if member is not None else ""
    several += f" · log at {journal}" if journal is not None else ""
    print_line(
        f"holdfast {VERSION} at {url} · {folder} · {partitions} partitions{several} ·"
        f" ready in {took_ms / 1000:.2f} s ({replayed_events:,} events replayed)"
    )
    if config.console:
        print_line(f"console at {url}{CONSOLE_PATH}")
