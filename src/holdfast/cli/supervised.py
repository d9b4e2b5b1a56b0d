"""A node of several processes: the supervisor of them, and one of them."""

import asyncio
import contextlib
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec

from holdfast.cli.beside import Beside
from holdfast.cli.exit_codes import ExitCode
from holdfast.cli.output import print_json
from holdfast.cli.serving import announce_start, let_first_in, serve
from holdfast.config import DEFAULT_PARTITIONS, Config
from holdfast.config.showing import running_settings
from holdfast.errors import DataLoss, HoldfastError, InvalidArgument, Unavailable
from holdfast.gateway.http.server import cannot_listen
from holdfast.gateway.http.tls import certificate_of
from holdfast.layout import divide, layout_of
from holdfast.logs import configure
from holdfast.members.member import Member
from holdfast.members.supervisor import MemberEnded, Supervisor

_REACHED_SECONDS_MAX = 10.0  # that the first start waits for all members to know one another
_ERRORS: dict[int, type[HoldfastError]] = {
    ExitCode.DATA_LOSS: DataLoss,
    ExitCode.USAGE: InvalidArgument,
}


class _Up(msgspec.Struct, rename="camel"):
    """What a member says when it is up."""

    url: str
    replayed_events: int


async def serve_members(
    folder: Path, config: Config, processes: int, *, as_json: bool, with_pipeline: bool
) -> None:
    """Starts all members, and keeps them until SIGINT or SIGTERM."""
    began, loop, stop = time.monotonic(), asyncio.get_running_loop(), asyncio.Event()
    certificate_of(config.tls_certificate, config.tls_key)  # a wrong one leaves no folder behind
    layout = divide(folder, processes, config.partitions, DEFAULT_PARTITIONS)
    with _reserved(config) as port:
        told = msgspec.structs.replace(config, port=port, partitions=layout.partitions)
        command = [sys.executable, "-m", "holdfast.cli", "member", str(folder)]
        supervisor = Supervisor(
            lambda member: [*command, str(member)], layout.members, msgspec.json.encode(told)
        )
        try:
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.add_signal_handler(number, stop.set)
            ups = [msgspec.json.decode(each, type=_Up) for each in await supervisor.start()]
            took_ms = round((time.monotonic() - began) * 1000)
            announce_start(
                ups[0].url, folder, layout.partitions, sum(each.replayed_events for each in ups),
                took_ms, config, processes=layout.members, as_json=as_json,
            )  # fmt: skip
            tables = ["--tables", config.tables] if config.tables else []
            beside = Beside(["pipeline", "run", str(folder), *tables]) if with_pipeline else None
            with beside or contextlib.nullcontext():
                await stop.wait()
        except MemberEnded as error:  # it has said why
            kind = _ERRORS.get(error.status, Unavailable)
            raise kind(f"Expected all processes of the node to start, but {error}") from error
        finally:
            await supervisor.stop()


@contextlib.contextmanager
def _reserved(config: Config) -> Iterator[int]:
    """Holds the port for the members, so that they get the same one and nobody else does."""
    family = socket.AF_INET6 if ":" in config.host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as holder:
        try:
            if config.port:  # another node that shares its port must not share it with us
                with socket.create_server((config.host, config.port), family=family):
                    pass
            holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            holder.bind((config.host, config.port))
        except OSError as error:
            raise cannot_listen(config.host, config.port, error) from error
        yield holder.getsockname()[1]


async def run_member(folder: Path, number: int) -> None:
    """One member; how it is set up comes by its standard input, which ends with the supervisor."""
    config = msgspec.json.decode(sys.stdin.buffer.readline(), type=Config)
    configure(json=config.log_json, level=config.log_level)
    layout, stop = layout_of(folder), asyncio.Event()
    _watch_supervisor(asyncio.get_running_loop(), stop)
    member = await Member.open(layout, number, config)
    try:
        member.node.gateway.show_settings(running_settings(config, folder))
        if number == layout.owner(1) and config.authorization:
            await member.reached(_REACHED_SECONDS_MAX)
            await let_first_in(member.node, folder, config)

        def announce(url: str) -> None:
            print_json({"url": url, "replayedEvents": member.node.replayed_events})

        await serve(member.node, config, announce, stop, is_shared=True)
    finally:
        await member.close()


def _watch_supervisor(loop: asyncio.AbstractEventLoop, stop: asyncio.Event) -> None:
    """The end of the supervisor is the end of its members, however it ended."""

    def watch() -> None:
        os.read(sys.stdin.fileno(), 1)  # not the buffer of sys.stdin: its lock would outlive us
        with contextlib.suppress(RuntimeError):  # the loop is closed already
            loop.call_soon_threadsafe(stop.set)

    threading.Thread(target=watch, name="supervisor", daemon=True).start()
