"""Restate: one durable no-op invocation at a time over its HTTP ingress."""

import http.client
import json
import shutil
import time
from pathlib import Path

from bench.harness import UnmeasurableError
from bench.peers.install import command, node_modules
from bench.peers.process import Process, answers, data_folder, free_port

PACKAGES = ("@restatedev/restate-server@1.7.12", "@restatedev/restate-sdk@1.17.2")
HERE = Path(__file__).parent
REGISTER_SECONDS_MAX = 30


class Restate:
    """A single-node server with its default, fsynced log, and a service in node."""

    name = "restate"

    def __init__(self) -> None:
        self.folder: Path | None = None
        self._processes: list[Process] = []
        self._ingress_port = 0

    def start(self) -> None:
        modules = node_modules(self.name, PACKAGES)
        node = command("node")
        self.folder = data_folder(self.name)
        service_port = free_port()
        self._processes.append(
            Process(
                [node, str(HERE / "service.cjs"), str(service_port)],
                self.folder / "service.log",
                environment={"NODE_PATH": str(modules)},
            )
        )
        admin_port = self._start_server(modules)
        self._processes[0].wait_until(lambda: answers(service_port))
        self._register(admin_port, service_port)

    def _start_server(self, modules: Path) -> int:
        """Starts the server's own binary, without the node script around it."""
        binaries = sorted(modules.glob("@restatedev/restate-server-*/bin/restate-server"))
        if not binaries:
            raise UnmeasurableError("npm brought no restate-server for this machine")
        assert self.folder is not None
        self._ingress_port, admin_port, node_port = free_port(), free_port(), free_port()
        environment = {
            "RESTATE_INGRESS__BIND_ADDRESS": f"127.0.0.1:{self._ingress_port}",
            "RESTATE_ADMIN__BIND_ADDRESS": f"127.0.0.1:{admin_port}",
            "RESTATE_BIND_ADDRESS": f"127.0.0.1:{node_port}",
            "RESTATE_ADVERTISED_ADDRESS": f"http://127.0.0.1:{node_port}",
            "RESTATE_LISTEN_MODE": "tcp",
            "RESTATE_LOG_FILTER": "warn",
            "DO_NOT_TRACK": "1",
        }
        arguments = [str(binaries[0]), "--no-logo", "--base-dir", str(self.folder / "data")]
        server = Process(arguments, self.folder / "server.log", environment=environment)
        self._processes.append(server)
        server.wait_until(lambda: answers(admin_port) and answers(self._ingress_port))
        return admin_port

    def _register(self, admin_port: int, service_port: int) -> None:
        """Tells the server where the service is, and waits until a no-op comes back."""
        body = json.dumps({"uri": f"http://127.0.0.1:{service_port}"})
        deadline = time.monotonic() + REGISTER_SECONDS_MAX
        while (status := _post(admin_port, "/deployments", body)) not in (200, 201):
            if time.monotonic() > deadline:
                raise self._processes[1].failure(f"answered {status} to the registration")
            time.sleep(0.1)
        while (status := _post(self._ingress_port, "/Bench/noop", "null")) != 200:
            if time.monotonic() > deadline:
                raise self._processes[1].failure(f"answered {status} to a no-op")
            time.sleep(0.1)

    def no_op_latency_seconds(self, count: int) -> list[float]:
        connection = http.client.HTTPConnection("127.0.0.1", self._ingress_port, timeout=30)
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
        while self._processes:
            self._processes.pop().stop()
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)
            self.folder = None


def _post(port: int, path: str, body: str) -> int:
    """The status of one request; 0 if nobody answered."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request("POST", path, body, {"Content-Type": "application/json"})
        return connection.getresponse().status
    except OSError:
        return 0
    finally:
        connection.close()
