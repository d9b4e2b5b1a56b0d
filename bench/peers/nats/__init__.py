"""NATS JetStream on files: a durable pull consumer for each reader.

The server of Debian's package syncs its files every two minutes; it cannot do so before it answers.
"""

import shutil
from pathlib import Path

from bench.peers.install import command, python_environment
from bench.peers.process import Process, answers, data_folder, free_port, race

REQUIREMENTS = ("nats-py==2.11.0",)
HERE = Path(__file__).parent


class Nats:
    """Messages are published side by side, fetched in batches and acknowledged once a batch."""

    name = "NATS JetStream"

    def __init__(self) -> None:
        self._port = 0
        self._folder: Path | None = None
        self._server: Process | None = None
        self._python = ""

    def start(self) -> None:
        self._python = str(python_environment("nats", REQUIREMENTS))
        server = command("nats-server", "nats-server")
        self._folder, self._port = data_folder("nats"), free_port()
        place = ["-a", "127.0.0.1", "-p", str(self._port), "-js", "-sd", str(self._folder)]
        self._server = Process([server, *place], self._folder / "nats.log")
        self._server.wait_until(lambda: answers(self._port))

    def deliveries_per_second(self, count: int, readers: int, size_bytes: int) -> float:
        """From the first message until the last reader has acknowledged the last."""
        assert self._folder is not None and self._server is not None, "start() comes first"
        seconds = race(
            self._script("submitter", count, size_bytes), self._script("readers", count, readers),
            self._folder, self._server.pid,
        ).seconds  # fmt: skip
        return count * readers / seconds

    def stop(self) -> None:
        if self._server is not None:
            self._server.stop()
            self._server = None
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def _script(self, name: str, *arguments: object) -> list[str]:
        return [self._python, str(HERE / f"{name}.py"), *map(str, (self._port, *arguments))]
