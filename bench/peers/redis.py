"""A Redis server of our own: the append-only file is fsynced before every answer."""

import shutil
from pathlib import Path

from bench.peers.install import command
from bench.peers.process import Process, answers, data_folder, free_port

SETTINGS = {
    "appendonly": "yes",
    "appendfsync": "always",
    "auto-aof-rewrite-percentage": "0",  # no rewrite in the middle of a measurement
    "save": "",
    "bind": "127.0.0.1",
    "daemonize": "no",
}


class Redis:
    """Started on a free port with an empty database."""

    def __init__(self) -> None:
        self.port = 0
        self.folder: Path | None = None
        self._server: Process | None = None

    @property
    def pid(self) -> int:
        assert self._server is not None, "start() comes first"
        return self._server.pid

    def start(self) -> None:
        redis_server = command("redis-server", "redis-server")
        self.folder = data_folder("redis")
        self.port = free_port()
        options = [word for name, value in SETTINGS.items() for word in (f"--{name}", value)]
        place = ["--port", str(self.port), "--dir", str(self.folder)]
        self._server = Process(
            [redis_server, *place, *options, "--logfile", str(self.folder / "redis.log")],
            self.folder / "redis.log",
        )
        self._server.wait_until(lambda: answers(self.port))

    def stop(self) -> None:
        if self._server is not None:
            self._server.stop()
            self._server = None
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)
            self.folder = None
