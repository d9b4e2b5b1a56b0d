"""`holdfast start`: a node over a folder, serving HTTP until it is told to stop."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli.help_text import examples
from holdfast.cli.options import DEFAULT_FOLDER, Json

if TYPE_CHECKING:
    import asyncio

    from holdfast.config import Config
    from holdfast.gateway.http.tls import Certificate
    from holdfast.node import LocalNode

ADMIN_TOKEN_FILE = "admin-token"
_RESERVED_FILES = 8  # to write the state and to end the loop
# how soon a node that cannot write any more takes its process down, and a new certificate is seen
_WATCH_SECONDS = 0.5


def register(app: typer.Typer) -> None:
    """Adds the verb to the command."""
    app.command(
        epilog=examples(
            "holdfast start                       the folder ./data, at http://127.0.0.1:8080",
            "holdfast start ./data --port 9000 --partitions 16",
            "holdfast start ./data --pipeline     and tables in ./data/tables, kept fresh by Spark",
            "holdfast start ./data --authorization --host 0.0.0.0 --tls-certificate cert.pem"
            " --tls-key key.pem   others say who they are, over HTTPS",
            "holdfast start ./data --snapshot-store s3://backups/node-1   snapshots go to S3, too",
            "read -r line < <(holdfast start ./data --port 0 --json)   any port; wait until up",
        )
    )(start)


def start(
    folder: Annotated[
        Path,
        typer.Argument(help="The data folder; a new one becomes a new node.", metavar="FOLDER"),
    ] = DEFAULT_FOLDER,
    partitions: Annotated[
        int | None, typer.Option(help="How many; fixed when the folder is first used.")
    ] = None,
    host: Annotated[str | None, typer.Option(help="Where to listen. [default: 127.0.0.1]")] = None,
    port: Annotated[
        int | None, typer.Option(help="0 takes any free port. [default: 8080]", min=0, max=65_535)
    ] = None,
    tls_certificate: Annotated[
        Path | None,
        typer.Option(
            help="Serve HTTPS with this certificate (PEM, with its chain). It is read again when it"
            " changes, and on SIGHUP.",
            metavar="FILE",
        ),
    ] = None,
    tls_key: Annotated[
        Path | None,
        typer.Option(help="Its key (PEM), if it is in another file.", metavar="FILE"),
    ] = None,
    allowed_hosts: Annotated[
        str | None,
        typer.Option(
            help="Further names by which clients call the node, with commas; * allows all.",
            metavar="NAMES",
        ),
    ] = None,
    allowed_origins: Annotated[
        str | None,
        typer.Option(
            help="Web pages that may use the node, as in https://ui.example.org, with commas.",
            metavar="ORIGINS",
        ),
    ] = None,
    snapshot_store: Annotated[
        str | None,
        typer.Option(
            help="Put each snapshot into this folder or s3://BUCKET/PREFIX, too. A node that lost"
            " its state starts from there and the log. Each node needs a folder or prefix of its"
            " own. Credentials of S3 come from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.",
            metavar="URL",
        ),
    ] = None,
    log_level: Annotated[
        str | None, typer.Option(help="debug, info, warning or error. [default: warning]")
    ] = None,
    log_json: Annotated[bool, typer.Option("--log-json", help="Logs as JSON lines.")] = False,
    allow_remote: Annotated[
        bool,
        typer.Option(
            "--allow-remote-without-authorization",
            help="Listen beyond this machine. Anybody who reaches the port may then do anything.",
        ),
    ] = False,
    authorization: Annotated[
        bool,
        typer.Option(
            "--authorization",
            help="Everybody says who they are, and does what they may. The first start writes the"
            " token of an administrator to FOLDER/admin-token.",
        ),
    ] = False,
    pipeline: Annotated[
        bool,
        typer.Option("--pipeline", help="Keep tables in FOLDER/tables, too, by Spark."),
    ] = False,
    json: Json = False,
) -> None:
    """Start a node over a folder and serve it until SIGINT or SIGTERM.

    Settings come from the options, then HOLDFAST_* in the environment, then holdfast.toml in the
    folder. The line that it prints says that it is up: url, folder, partitions, and what recovery
    took.
    """
    import os

    import uvloop

    from holdfast.config import load_config
    from holdfast.logs import configure

    os.umask(0o077)  # what is stored is for its owner alone

    config = load_config(
        folder, partitions=partitions, host=host, port=port, log_level=log_level,
        log_json=log_json or None, authorization=authorization or None,
        allowed_hosts=allowed_hosts, allowed_origins=allowed_origins,
        tls_certificate=_text(tls_certificate), tls_key=_text(tls_key),
        snapshot_store=snapshot_store,
    )  # fmt: skip
    if not config.authorization:
        _check_host(config.host, allow_remote)
    configure(json=config.log_json, level=config.log_level)
    if pipeline:
        from holdfast.cli.extras import check_installed

        check_installed()
    uvloop.run(_serve(folder, config, json, with_pipeline=pipeline))


def _text(path: Path | None) -> str | None:
    return None if path is None else str(path)


def _check_host(host: str, allow_remote: bool) -> None:
    """Without authorization only this machine may be let in by accident."""
    from ipaddress import ip_address

    from holdfast.errors import InvalidArgument

    try:
        is_here = host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        is_here = False
    if not is_here and not allow_remote:
        raise InvalidArgument(
            f"Expected a loopback address, but found {host}: whoever reaches the port may do"
            " anything; add --authorization, or, if that is wanted,"
            " --allow-remote-without-authorization",
            host=host,
        )


async def _serve(folder: Path, config: "Config", as_json: bool, *, with_pipeline: bool) -> None:
    import asyncio
    import contextlib
    import os
    import signal
    import time

    from holdfast.cli.beside import Beside
    from holdfast.gateway.http.connections import ConnectionLimits
    from holdfast.gateway.http.server import HttpServer
    from holdfast.gateway.http.tls import certificate_of
    from holdfast.node import LocalNode

    loop, stop = asyncio.get_running_loop(), asyncio.Event()
    certificate = certificate_of(config.tls_certificate, config.tls_key)
    began = time.monotonic()
    reserve = [os.open(os.devnull, os.O_RDONLY) for _ in range(_RESERVED_FILES)]
    node = await LocalNode.open(folder, config)
    try:
        recovery_ms = round((time.monotonic() - began) * 1000)
        if config.authorization:
            await _let_first_in(node, folder)
        server = HttpServer(
            node.gateway, config.host, config.port, allowed_hosts=config.allowed_hosts,
            allowed_origins=config.allowed_origins, metrics=node.metrics.http, tls=certificate,
            limits=ConnectionLimits(config.connections_max, config.connections_per_address_max),
        )  # fmt: skip
        await server.start()
        try:
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.add_signal_handler(number, stop.set)
            if certificate is not None:
                loop.add_signal_handler(signal.SIGHUP, certificate.reload)
            _announce(server.url, folder, node, recovery_ms, as_json)
            arguments = ["pipeline", "run", str(folder)]
            with Beside(arguments) if with_pipeline else contextlib.nullcontext():
                await _until_stopped(node, stop, certificate)
        finally:
            for descriptor in reserve:  # a node that has used up its files can still end in order
                os.close(descriptor)
            await server.close()
    finally:
        await node.close()


async def _let_first_in(node: "LocalNode", folder: Path) -> None:
    """The first start with authorization makes an administrator; its token goes to a file."""
    from holdfast.cli.output import print_note

    path = folder / ADMIN_TOKEN_FILE

    def keep(token: str) -> None:
        path.touch(mode=0o600)
        path.write_text(token + "\n")

    if await node.gateway.let_first_in(keep):
        print_note(f"the token of an administrator is in {path}; HOLDFAST_TOKEN takes it")


async def _until_stopped(
    node: "LocalNode", stop: "asyncio.Event", certificate: "Certificate | None"
) -> None:
    """Returns when asked to stop; raises when the node cannot go on: a supervisor sees it."""
    import asyncio
    import contextlib

    from holdfast.errors import DataLoss, Unavailable

    while not stop.is_set():
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), _WATCH_SECONDS)
        if certificate is not None:
            certificate.reload_if_changed()
        failure = node.runner.failure
        if isinstance(failure, DataLoss) and "path" in failure.fields:
            raise DataLoss(failure.message, **failure.fields)  # to start again would not help
        if failure is not None:
            raise Unavailable(f"Expected the node to run, but it stopped: {failure}")


def _announce(url: str, folder: Path, node: "LocalNode", recovery_ms: int, as_json: bool) -> None:
    import os

    from holdfast.cli.output import print_json, print_line
    from holdfast.version import VERSION

    partitions = len(node.runner.processors)
    if as_json:
        print_json(
            {
                "event": "started",
                "url": url,
                "folder": str(folder),
                "partitions": partitions,
                "replayedEvents": node.replayed_events,
                "recoveryMs": recovery_ms,
                "version": VERSION,
                "pid": os.getpid(),
            }
        )
    else:
        print_line(
            f"holdfast {VERSION} at {url} · {folder} · {partitions} partitions ·"
            f" ready in {recovery_ms / 1000:.2f} s ({node.replayed_events:,} events replayed)"
        )
