"""A Restate server of our own: a single node with its default, fsynced log."""

import http.client
import json
import shutil
import time
from pathlib import Path

from bench.harness import UnmeasurableError
from bench.peers.install import node_modules
from bench.peers.process import Process, answers, data_folder, free_port

PACKAGES = ("@restatedev/restate-server@1.7.12", "@restatedev/restate-sdk@1.17.2")
REGISTER_SECONDS_MAX = 30


class RestateServer:
    """Started on free ports with an empty log; services are registered with it."""

    def __init__(self) -> None:
        self.modules = Path()
        self.ingress_port = 0
        self.folder: Path | None = None
        self._admin_port = 0
        self._process: Process | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None, "start() comes first"
        return self._process.pid

    def start(self) -> None:
        """Starts the server's own binary, without the node script around it."""
        self.modules = node_modules("restate", PACKAGES)
        binaries = sorted(self.modules.glob("@restatedev/restate-server-*/bin/restate-server"))
        if not binaries:
            raise UnmeasurableError("npm brought no restate-server for this machine")
        self.folder = data_folder("restate")
        self.ingress_port, self._admin_port, node_port = free_port(), free_port(), free_port()
        environment = {
            "RESTATE_INGRESS__BIND_ADDRESS": f"127.0.0.1:{self.ingress_port}",
            "RESTATE_ADMIN__BIND_ADDRESS": f"127.0.0.1:{self._admin_port}",
            "RESTATE_BIND_ADDRESS": f"127.0.0.1:{node_port}",
            "RESTATE_ADVERTISED_ADDRESS": f"http://127.0.0.1:{node_port}",
            "RESTATE_LISTEN_MODE": "tcp",
            "RESTATE_LOG_FILTER": "warn",
            "DO_NOT_TRACK": "1",
        }
        arguments = [str(binaries[0]), "--no-logo", "--base-dir", str(self.folder / "data")]
        self._process = Process(arguments, self.folder / "server.log", environment=environment)
        self._process.wait_until(lambda: answers(self._admin_port) and answers(self.ingress_port))

    def register(self, service_port: int, path: str, body: str) -> None:
        """Tells the server where a service is, and waits until an invocation comes back."""
        assert self._process is not None, "start() comes first"
        place = json.dumps({"uri": f"http://127.0.0.1:{service_port}"})
        deadline = time.monotonic() + REGISTER_SECONDS_MAX
        while (status := _post(self._admin_port, "/deployments", place)) not in (200, 201):
            if time.monotonic() > deadline:
                raise self._process.failure(f"answered {status} to the registration")
            time.sleep(0.1)
        while (status := _post(self.ingress_port, path, body)) != 200:
            if time.monotonic() > deadline:
                raise self._process.failure(f"answered {status} to an invocation")
            time.sleep(0.1)

    def stop(self) -> None:
        if self._process is not None:
            self._process.stop()
            self._process = None
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
