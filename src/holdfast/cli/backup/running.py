"""A backup of a node that runs: the node makes it, the command watches."""

import asyncio
import ipaddress
from pathlib import Path
from urllib.parse import urlsplit

from holdfast.cli.backup.showing import bar, print_made
from holdfast.cli.remote import ask
from holdfast.errors import InvalidArgument, Unavailable, error_of
from holdfast.gateway.api import Api
from holdfast.gateway.node.shapes import BackupView

_LOOK_SECONDS = 0.2


def back_up_running(url: str, target: str, *, as_json: bool) -> None:
    """Has a node make a backup, and waits for its end."""
    wanted = _target(url, target)
    made = ask(url, lambda api: _make(api, wanted))
    if made.state == "FAILED":
        raise error_of(made.code, made.error)
    if made.state != "DONE":
        raise Unavailable(
            f"The node at {url} was started again in the middle of the backup, and none was made;"
            " begin it again"
        )
    print_made(
        made.generation, made.taken_ms, made.total_bytes, made.sent_bytes, made.target,
        as_json=as_json,
    )  # fmt: skip


async def _make(api: Api, target: str) -> BackupView:
    found = await api.node.back_up(target)
    with bar() as shown:
        task = shown.add_task("backing up", total=None)
        while found.state == "RUNNING":
            await asyncio.sleep(_LOOK_SECONDS)
            found = await api.node.backup()
            shown.update(task, completed=found.done_bytes, total=found.total_bytes or None)
    return found


def _target(url: str, target: str) -> str:
    """The target as the node has to understand it: it is written on the node's machine."""
    if len(urlsplit(target).scheme) > 1 or Path(target).is_absolute():
        return target
    host = urlsplit(url).hostname or ""
    if not _is_here(host):
        raise InvalidArgument(
            f"Expected the whole path of a folder on {host}, where the node writes the backup, but"
            f" found {target!r}"
        )
    return str(Path(target).absolute())


def _is_here(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
