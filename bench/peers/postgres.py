"""A PostgreSQL server of our own: everything it acknowledges is fsynced, unless a test says no."""

import os
import pwd
import shutil
import signal
from pathlib import Path

from bench.harness import UnmeasurableError
from bench.peers.install import command
from bench.peers.process import Process, answers, data_folder, free_port

SETTINGS = {
    "fsync": "on",
    "synchronous_commit": "on",
    "full_page_writes": "on",
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "shared_buffers": "512MB",
    "max_wal_size": "4GB",  # no checkpoint in the middle of a measurement
    "checkpoint_timeout": "30min",
    "jit": "off",
}


SETTINGS_WITHOUT_DISK = {"fsync": "off", "synchronous_commit": "off", "shared_buffers": "32MB"}


class Postgres:
    """Started on a free port with an empty database cluster."""

    def __init__(self, *, durable: bool = True) -> None:
        self.durable = durable
        self.port = 0
        self.folder: Path | None = None
        self._server: Process | None = None

    @property
    def dsn(self) -> str:
        return f"postgresql://bench@127.0.0.1:{self.port}/postgres"

    @property
    def pid(self) -> int:
        assert self._server is not None, "start() comes first"
        return self._server.pid

    def start(self) -> None:
        postgres = command("postgres", "postgresql")
        initdb = command("initdb", "postgresql")
        user = _user_without_rights()
        self.folder = data_folder("postgres")
        cluster = self.folder / "cluster"
        if user is not None:
            shutil.chown(self.folder, user, user)
        arguments = [initdb, "-D", str(cluster), "-U", "bench", "--auth=trust", "-E", "UTF8"]
        if not self.durable:
            arguments.append("--no-sync")
        Process(arguments, self.folder / "initdb.log", user).finish(60)
        self.port = free_port()
        settings = SETTINGS if self.durable else SETTINGS | SETTINGS_WITHOUT_DISK
        options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        arguments = [postgres, "-D", str(cluster), "-p", str(self.port), *options]
        self._server = Process(arguments, self.folder / "postgres.log", user)
        self._server.wait_until(lambda: answers(self.port))

    def stop(self) -> None:
        if self._server is not None:
            # PostgreSQL's fast shutdown, or its immediate one where nothing is to be kept.
            self._server.stop(signal.SIGINT if self.durable else signal.SIGQUIT)
            self._server = None
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)
            self.folder = None


def _user_without_rights() -> str | None:
    """PostgreSQL refuses to run as root; anybody else runs it as themselves."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name).pw_name
        except KeyError:
            continue
    raise UnmeasurableError(
        "PostgreSQL refuses to run as root, and there is no user postgres or nobody"
    )
