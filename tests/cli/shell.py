"""Real processes: each test types the commands that a user would type."""

import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from holdfast.cli.main import run
from holdfast.client.portal import Portal
from holdfast.config import Config
from holdfast.gateway.http import HttpServer
from holdfast.node import LocalNode

COMMAND = [sys.executable, "-m", "holdfast.cli"]
DARK_NODE = [sys.executable, str(Path(__file__).with_name("dark_node.py"))]
SHOP = """
import time
from holdfast import BusinessError, Holdfast, Process, error, over, path

app = Holdfast.connect()

@app.task
def add(a: int, b: int) -> int:
    return a + b

@app.task(retries=0)
def broken() -> None:
    raise ValueError("no such luck")

@app.task
def nap(seconds: float) -> str:
    time.sleep(seconds)
    return "rested"

@app.task(retries=0)
def charge(total: float, fixed: bool = False) -> dict:
    if total > 1000 and not fixed:
        raise ValueError("the bank says no")
    if total < 0:
        raise BusinessError("NEGATIVE", "nothing to charge", refund=-total)
    return {"charged": total}

order = (
    Process("order", name="An order")
    .task("charge", retries=0, name="Charge the card",
          on=[error("NEGATIVE", path().end("refused"))])
    .wait("paid", message="payment", key="orderId", within="P3D")
    .end("done")
)
packing = Process("packing").task("pack", each=over("items", item="item"))
"""


class Finished:
    """A command that has ended."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code = code
        self.out = out
        self.err = err

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class Running:
    """A command that goes on until it is told to stop; it says in JSON when it is up."""

    def __init__(
        self, folder: Path, url: str, *arguments: str, command: Sequence[str] = COMMAND
    ) -> None:
        self.process = subprocess.Popen(
            [*command, *arguments, "--json"],
            cwd=folder,
            env=os.environ | {"HOLDFAST_URL": url},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise AssertionError(self.process.communicate()[1])
        self.started: dict[str, Any] = json.loads(line)

    def end(self, number: int = signal.SIGTERM) -> Finished:
        """Sends a signal and waits for the end."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        out, err = self.process.communicate(timeout=60)
        return Finished(self.process.returncode, out, err)


class Served:
    """A node in a folder, on a loop of its own in this process and on a port."""

    def __init__(self, folder: Path, config: Config) -> None:
        self.portal = Portal("node")
        self.node = self.portal.call(LocalNode.open(folder, config))
        self.server = HttpServer(self.node.gateway, port=0)
        self.portal.call(self.server.start())

    def close(self) -> None:
        self.portal.call(self.server.close())
        self.portal.call(self.node.close())
        self.portal.close()


class Shell:
    """A folder in which commands are typed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.url = "http://127.0.0.1:1"
        self._running: list[Running] = []
        self._served: list[Served] = []

    def run(self, *arguments: str, stdin: str = "") -> Finished:
        """A command in this process, which saves the half second that Python takes to start."""
        out, err = io.StringIO(), io.StringIO()
        with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
            patch.chdir(self.folder)
            patch.setenv("HOLDFAST_URL", self.url)
            patch.setattr(sys, "stdin", io.StringIO(stdin))
            code = run(arguments)
        return Finished(code, out.getvalue(), err.getvalue())

    def run_process(self, *arguments: str) -> Finished:
        """A command in a process of its own, to its end."""
        done = subprocess.run(
            [*COMMAND, *arguments],
            cwd=self.folder,
            env=os.environ | {"HOLDFAST_URL": self.url},
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )
        return Finished(done.returncode, done.stdout, done.stderr)

    def begin(self, *arguments: str, command: Sequence[str] = COMMAND) -> Running:
        """Types a command that goes on."""
        running = Running(self.folder, self.url, *arguments, command=command)
        self._running.append(running)
        return running

    def start_node(self, *options: str, command: Sequence[str] = COMMAND) -> Running:
        """A node in the folder `data`; the commands that follow talk to it."""
        node = self.begin("start", "data", "--port", "0", *options, command=command)
        self.url = node.started["url"]
        return node

    def serve_node(self, partitions: int = 4) -> None:
        """The same in this process, for tests in which nothing happens to the node itself."""
        served = Served(self.folder / "data", Config(partitions=partitions, log_level="error"))
        self._served.append(served)
        self.url = served.server.url

    @property
    def served(self) -> Served:
        """The last node that runs in this process."""
        return self._served[-1]

    def submit(self, task: str, payload: str = "{}", *options: str) -> str:
        """Submits a task and returns its key."""
        done = self.run("tasks", "submit", task, payload, "--json", *options)
        assert done.code == 0, done.err
        return done.json["taskKey"]

    def start(self, process: str, variables: str = "{}", *options: str) -> str:
        """Starts a process and returns the key of the instance."""
        done = self.run("start-process", process, "--variables", variables, "--json", *options)
        assert done.code == 0, done.err
        return done.json["processInstanceKey"]

    def close(self) -> None:
        """Ends whatever a test has left running."""
        for running in self._running:
            running.process.kill()
            running.process.wait()
        for served in self._served:
            served.close()
