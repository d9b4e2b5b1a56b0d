"""One durable no-op invocation at a time, by a service in node."""

import http.client
import time
from pathlib import Path

from bench.harness import UnmeasurableError
from bench.peers.install import command
from bench.peers.process import Process, answers, free_port
from bench.peers.restate.server import RestateServer

HERE = Path(__file__).parent


class Restate:
    """A single-node server with its default, fsynced log, and a service in node."""

    name = "restate"

    def __init__(self) -> None:
        self._server = RestateServer()
        self._service: Process | None = None

    def start(self) -> None:
        node = command("node")
        self._server.start()
        assert self._server.folder is not None
        port = free_port()
        self._service = Process(
            [node, str(HERE / "service.cjs"), str(port)],
            self._server.folder / "service.log",
            environment={"NODE_PATH": str(self._server.modules)},
        )
        self._service.wait_until(lambda: answers(port))
        self._server.register(port, "/Bench/noop", "null")

    def no_op_latency_seconds(self, count: int) -> list[float]:
        connection = http.client.HTTPConnection("127.0.0.1", self._server.ingress_port, timeout=30)
        try:
            return [self._invoke(connection) for _ in range(count)]
        except OSError as failed:
            raise UnmeasurableError(f"restate stopped answering: {failed}") from failed
        finally:
            connection.close()

    def _invoke(self, connection: http.client.HTTPConnection) -> float:
        begun = time.perf_counter()
        connection.request("POST", "/Bench/noop", "null", {"Content-Type": "application/json"})
        answer = connection.getresponse()
        answer.read()
        seconds = time.perf_counter() - begun
        if answer.status != 200:
            raise UnmeasurableError(f"restate answered {answer.status} to a no-op")
        return seconds

    def stop(self) -> None:
        if self._service is not None:
            self._service.stop()
            self._service = None
        self._server.stop()
